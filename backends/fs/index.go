package fs

import (
	"errors"
	"io"
	"os"
	"sort"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// indexEvery is how many commits lie between two index entries.
const indexEvery = 64

// index is the sparse index of one journal. It is a hint: each entry is checked
// by its checksum, by the record's key, and by the frame that it points to.
type index struct {
	f     *os.File
	key   string
	birth store.Birth // 0: not known yet
	n     int         // entries, whole or not
}

// openIndex gives nil when there is no index to use.
func (r *record) openIndex() *index {
	f, err := r.dir.Open(indexName(r.of))
	if err != nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() < format.LineLen {
		_ = f.Close() // read-only
		return nil
	}
	return &index{f: f, key: format.KeySum(r.key), birth: r.st.birth, n: int(info.Size() / format.LineLen)}
}

func (x *index) close() {
	if x != nil {
		_ = x.f.Close() // read-only: nothing can be lost
	}
}

// line is entry i, if it is whole and this record's.
func (x *index) line(i int) (format.IndexLine, bool) {
	b := make([]byte, format.LineLen)
	if _, err := x.f.ReadAt(b, int64(i)*format.LineLen); err != nil {
		return format.IndexLine{}, false
	}
	l, err := format.ParseIndexLine(b)
	return l, err == nil && l.Key == x.key && (x.birth == 0 || l.Birth == x.birth)
}

// before is the last usable entry for which ok holds; entries are in order, so
// ok must hold for a run of them from the first.
func (x *index) before(ok func(format.IndexLine) bool) (format.IndexLine, bool) {
	if x == nil {
		return format.IndexLine{}, false
	}
	i := sort.Search(x.n, func(i int) bool {
		l, whole := x.line(i)
		return !whole || !ok(l)
	})
	if i == 0 {
		return format.IndexLine{}, false
	}
	return x.line(i - 1)
}

// start is the state at entry l, if the journal has a commit frame there that follows from it.
func start(f io.ReaderAt, size int64, l format.IndexLine) (state, bool) {
	r := &frames{f: f, size: size}
	h, more, err := r.header(l.At)
	if err != nil || !more || h.Kind != format.Commit || h.Prev != l.Prev || h.Rev != l.Rev+1 {
		return state{}, false
	}
	return fromIndex(l), true
}

// replayFromIndex replays the journal from one of the newest index entries that
// leaves enough commits to remember (S-3), or from the start. lines are the
// entries that a new index would have; they are whole only with fromStart.
func (r *record) replayFromIndex(size int64) (lines []format.IndexLine, fromStart bool, err error) {
	const tries = 4
	if x := r.openIndex(); x != nil {
		defer x.close()
		for i := x.n - 1; i >= max(0, x.n-tries); i-- {
			l, whole := x.line(i)
			if !whole {
				continue
			}
			st, ok := start(r.journal, size, l)
			if !ok {
				continue
			}
			r.st = st
			if err = r.st.replay(r.key, r.journal, size, nil); len(r.st.acks) >= store.MinRememberedCommits {
				return nil, false, err
			}
		}
	}
	r.st = state{}
	err = r.st.replay(r.key, r.journal, size, func(st *state) {
		if st.sinceIndex >= indexEvery {
			lines = append(lines, st.indexLine(r.key))
			st.sinceIndex = 0
		}
	})
	return lines, true, err
}

// rebuildIndex writes the index anew when it does not say what the journal does.
// Nothing depends on it, so a failure is only logged.
func (r *record) rebuildIndex(lines []format.IndexLine) {
	var b []byte
	for _, l := range lines {
		b = l.AppendTo(b)
	}
	old, err := r.dir.ReadFile(indexName(r.of))
	if (err == nil && string(old) == string(b)) || (len(b) == 0 && errors.Is(err, os.ErrNotExist)) {
		return
	}
	if err := r.dir.WriteAtomic(indexName(r.of), b); err != nil {
		r.s.log.Warn("the index was not rebuilt", "file", indexName(r.of), "err", err)
	}
}

// extendIndex appends the entry for the state as it is, before a commit that is now
// written. It is not flushed: a lost or damaged entry costs time only.
func (r *record) extendIndex() {
	r.st.sinceIndex = 0
	f, err := r.dir.OpenFile(indexName(r.of), os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err == nil {
		_, err = f.Write(r.st.indexLine(r.key).AppendTo(nil))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.s.log.Warn("the index was not extended", "file", indexName(r.of), "err", err)
	}
}
