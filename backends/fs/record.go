package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Names in a record's folder. The number is the lock's: see lock.go.
const idName = "id.json"

func lockName(n uint64) string     { return "lock-" + strconv.FormatUint(n, 10) }
func journalName(n uint64) string  { return "journal-" + strconv.FormatUint(n, 10) + ".jsonl" }
func indexName(n uint64) string    { return "index-" + strconv.FormatUint(n, 10) + ".jsonl" }
func releasedName(n uint64) string { return "released-" + strconv.FormatUint(n, 10) + ".json" }
func ownerName(f store.Fence) string {
	return "owner-" + f.Run + "-" + f.Generation + ".json"
}

// record is one record as one handle sees it. Its fields belong to whoever
// holds turn.
type record struct {
	s    *Store
	key  store.Key
	turn chan struct{} // one token; taking it is entering
	uses int           // calls that want or have the turn; guarded by Store.mu

	dir    *disk.Dir
	lock   *os.File
	number uint64 // of lock
	writes bool   // opened for writing

	lockAt disk.Sight // lock when a newer one was last looked for
	bell   int64      // length of lock when it was last asked, or silent
	mail   mail

	journal  disk.File
	of       uint64 // number of the journal; may be below number until a writer copied it
	fresh    bool   // the last frame was not flushed through this descriptor
	poisoned error  // a flush failed on this descriptor
	unsure   bool   // with poisoned: a frame may have landed
	st       state
	tail     tail  // a torn tail not set aside yet
	broken   error // damage that stands behind st; nil: none
	ending   []byte
	size     int64  // of the journal; another handle may have made it longer since
	buf      []byte // room for frames
	peek     [2 * endingLen]byte

	owner  *os.File // the lock that says this process lives; nil: not the owner
	owning store.Fence
}

// errAbsent says that there is no such record on disk.
var errAbsent = errors.New("no such record")

func newRecord(s *Store, key store.Key) *record {
	return &record{s: s, key: key, turn: make(chan struct{}, 1)}
}

// openDir opens the record's folder once.
func (r *record) openDir() error {
	if r.dir != nil {
		return nil
	}
	dir, err := r.s.root.Sub(folderPath(r.key))
	if errors.Is(err, fs.ErrNotExist) {
		return errAbsent
	}
	r.dir = dir
	return err
}

// close frees everything, the ownership too.
func (r *record) close() error {
	err := r.forget()
	if r.owner != nil {
		err = errors.Join(err, r.owner.Close())
		r.owner = nil
	}
	if r.lock != nil {
		err = errors.Join(err, r.lock.Close())
		r.lock = nil
	}
	r.number, r.bell = 0, silent
	if r.dir != nil {
		err = errors.Join(err, r.dir.Close())
		r.dir = nil
	}
	return err
}

// forget closes the journal; the next use opens and reads it anew.
func (r *record) forget() error {
	var err error
	if r.journal != nil {
		err = r.journal.Close()
	}
	r.journal, r.poisoned, r.unsure, r.st, r.tail, r.broken, r.ending, r.size = nil, nil, false, state{}, tail{}, nil, nil, 0
	return err
}

// openJournal opens the newest journal that is not newer than the lock.
func (r *record) openJournal() error {
	for n := r.number; n > 0; n-- {
		f, err := r.dir.OpenFile(journalName(n), r.mode())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		r.journal, r.of, r.fresh = r.s.wrap(f), n, true
		return nil
	}
	return errAbsent
}

func (r *record) mode() int {
	if r.writes {
		return os.O_RDWR
	}
	return os.O_RDONLY
}

// read opens the journal and replays it, from the index if there is one. With
// locked, nobody else writes, and a bad tail is judged; without, it may be a
// frame on its way, and r.broken says only that a look under the lock is needed.
func (r *record) read(locked bool) error {
	if err := r.forget(); err != nil {
		return err
	}
	if err := r.openJournal(); err != nil {
		return err
	}
	size, err := r.journal.Size()
	if err != nil {
		return err
	}
	r.size = size
	lines, fromStart, err := r.replayFromIndex(size)
	var bad *damage
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	if err := r.settle(size, bad, locked); err != nil {
		return err
	}
	if fromStart && locked && r.writes && r.broken == nil {
		r.rebuildIndex(lines)
	}
	return nil
}

// settle judges what stands behind the last whole frame.
func (r *record) settle(size int64, bad *damage, locked bool) error {
	mark, marked, err := r.releasedMark()
	if err != nil {
		r.broken = err
		return r.remember()
	}
	st := &r.st
	// What was released or created whole was flushed by whoever did it.
	r.fresh = !marked && st.lastKind != format.Create
	t, err := judge(r.journal, st.end, size, marked, bad)
	var d *damage
	if err != nil && !errors.As(err, &d) {
		return err
	}
	switch {
	case d != nil:
		r.broken = fmt.Errorf("%s: %w", r.journal.Name(), d)
	case !st.began:
		r.broken = fmt.Errorf("%s: it holds no whole frame", r.journal.Name())
	case st.deleted:
	case marked && (mark.End != st.end || mark.Last != st.prev || mark.Birth != st.birth):
		r.broken = fmt.Errorf("%s: at byte %d: the record was released cleanly at byte %d, and the journal has changed since", r.journal.Name(), st.end, mark.End)
	case !marked && size == st.end:
		// Whoever takes the mark away, or makes a record without one, first writes space behind the last frame.
		r.broken = fmt.Errorf("%s: at byte %d: the file was cut short: the space behind the last frame is missing", r.journal.Name(), st.end)
	case t.to > t.from:
		r.tail = t
		if !locked {
			r.broken = errors.New("the last frame is not whole")
		}
	}
	return r.remember()
}

// releasedMark reads the mark of a clean release, if the record has one.
func (r *record) releasedMark() (format.Released, bool, error) {
	b, err := r.dir.ReadFile(releasedName(r.of))
	if errors.Is(err, fs.ErrNotExist) {
		return format.Released{}, false, nil
	}
	if err != nil {
		return format.Released{}, false, err
	}
	m, err := format.ParseReleased(b)
	if err != nil {
		return m, false, fmt.Errorf("%s: %w", releasedName(r.of), err)
	}
	return m, true, nil
}

// endingLen is how many bytes of the last frame are compared before each write.
const endingLen = 16

// remember keeps the last bytes of the last frame, to see that they still stand there.
func (r *record) remember() error {
	r.ending = make([]byte, min(endingLen, r.st.end))
	_, err := r.journal.ReadAt(r.ending, r.st.end-int64(len(r.ending)))
	return err
}

// errMoved says that the journal is not what this handle read.
var errMoved = errors.New("the end of the journal has changed")

// refresh takes in what others appended. It reads a few bytes when there is nothing new.
func (r *record) refresh(locked bool) error {
	if r.journal == nil || r.of != r.number || (locked && r.poisoned != nil && !r.unsure) || r.broken != nil || r.tail.to > r.tail.from || r.st.deleted {
		return r.read(locked)
	}
	b := &r.peek
	have := len(r.ending)
	n, err := r.journal.ReadAt(b[:have+endingLen], r.st.end-int64(have))
	if n < have || !bytes.Equal(b[:have], r.ending) {
		r.s.log.Warn("the journal has changed under this handle", "file", r.journal.Name(), "offset", r.st.end, "err", errors.Join(errMoved, err))
		return r.read(locked)
	}
	if isBlank(b[have:n]) {
		if n < have+endingLen {
			r.size = r.st.end + int64(n-have) // here the file ends
		}
		return nil
	}
	size, err := r.journal.Size()
	if err != nil {
		return err
	}
	r.size = size
	before := r.st.end
	if err := r.st.replay(r.key, r.journal, size, nil); err != nil || r.st.end == before || r.st.deleted {
		return r.read(locked)
	}
	r.fresh = true
	return r.remember()
}

// enter waits for the turn.
func (r *record) enter(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *record) leave() { <-r.turn }

// begin takes the commit lock, going past a stopped process after wait, and
// brings the state up to date. The turn is the caller's. On success the caller
// must give the lock back.
func (r *record) begin(ctx context.Context, wait time.Duration) error {
	err := r.beginNew(ctx, wait)
	if err == nil && r.journal == nil {
		r.give()
		return errAbsent
	}
	return err
}

// beginNew is begin for a record that need not be there; then r.journal is nil.
func (r *record) beginNew(ctx context.Context, wait time.Duration) error {
	if !r.writes {
		if err := r.close(); err != nil {
			return err
		}
		r.writes = true
	}
	if err := r.openDir(); err != nil {
		return err
	}
	if err := r.take(ctx, wait, true); err != nil {
		return err
	}
	var err error
	if r.number > 1 && (r.journal == nil || r.of != r.number) && !r.exists(journalName(r.number)) {
		err = r.ring() // whoever uses a new lock first
	}
	if err == nil {
		err = r.refresh(true)
	}
	if err == nil && r.broken == nil && r.of != r.number {
		if err = r.copyJournal(); err == nil {
			err = r.read(true)
		}
	}
	if err != nil && !errors.Is(err, errAbsent) {
		r.give()
		return err
	}
	return nil
}

// look brings the state up to date without the commit lock, so that it never
// waits for a writer. Only a tail that is not whole needs a moment of the lock,
// to tell a frame on its way from damage; if a stopped process holds it, the
// state up to the last whole frame is the answer.
func (r *record) look(ctx context.Context) error {
	if err := r.openDir(); err != nil {
		return err
	}
	if err := r.openLock(); err != nil {
		return err
	}
	if err := r.refresh(false); err != nil || r.broken == nil {
		return err
	}
	if r.lock == nil {
		return r.read(true) // no lock file: nobody can be writing
	}
	err := r.take(ctx, glance, false)
	if errors.Is(err, errHeld) {
		if r.st.began { // a journal's first frame is never on its way
			r.broken = nil
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer r.give()
	return r.read(true)
}
