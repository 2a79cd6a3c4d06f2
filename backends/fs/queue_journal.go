package fs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store/ledger"
)

// Names of a queue. No kind of record has a dot, so none can be called like the folder
// of the queues.
const (
	queuesName       = "queue.d"
	queueLockName    = "lock"
	queueJournalName = "journal.jsonl"
)

// queueSlack is how long a journal may get before it is asked whether most of it is past.
const queueSlack = 1 << 20

func (q *queue) path() string { return queuesName + "/" + q.name }

// make makes the queue's folder and files, durably, and opens them.
func (q *queue) make() error {
	if err := q.open(); err != nil || q.named && q.dir != nil {
		return err
	}
	for _, step := range []struct{ name, above string }{{queuesName, "."}, {q.path(), queuesName}} {
		if err := q.s.root.Mkdir(step.name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := q.s.root.Sync(step.above); err != nil {
			return err
		}
	}
	dir, err := q.s.root.Sub(q.path())
	if err != nil {
		return err
	}
	for _, name := range []string{queueJournalName, queueLockName} { // the lock last: with it, the queue is there
		f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return errors.Join(err, dir.Close())
		}
		if err := f.Close(); err != nil {
			return errors.Join(err, dir.Close())
		}
	}
	if err := errors.Join(dir.Sync("."), dir.Close()); err != nil {
		return err
	}
	q.named = true // whoever made them may not have come that far
	return q.open()
}

// open opens the queue's folder and lock if they are there, anew where somebody replaced
// them. dir stays nil where they are not.
func (q *queue) open() error {
	if q.dir != nil {
		now, err := q.s.root.Look(q.path() + "/" + queueLockName)
		if err == nil {
			var mine disk.Sight
			if mine, err = disk.SightOf(q.lock); err == nil && mine == now {
				return nil
			}
		}
		if err != nil && !isAbsent(err) {
			return err
		}
		if err := q.close(); err != nil { // and with it the lock
			return err
		}
	}
	dir, err := q.s.root.Sub(q.path())
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	lock, err := dir.OpenFile(queueLockName, os.O_RDONLY)
	if err != nil {
		err = errors.Join(err, dir.Close())
		if isAbsent(err) {
			return nil
		}
		return err
	}
	q.dir, q.lock = dir, lock.File
	return nil
}

// close frees everything.
func (q *queue) close() error {
	err := q.forget()
	if q.dir != nil {
		err = errors.Join(err, q.letGo(), q.lock.Close(), q.dir.Close())
		q.dir, q.lock, q.named = nil, nil, false
	}
	return err
}

// forget closes the journal; the next use reads it from its beginning.
func (q *queue) forget() error {
	var err error
	if q.journal != nil {
		err = q.journal.Close()
	}
	q.journal, q.at, q.last, q.end, q.sum, q.live, q.st = nil, disk.Sight{}, 0, 0, 0, 0, ledger.Queue[place]{}
	q.by, q.placed = map[string]string{}, false
	return err
}

// news reads what others wrote since. With locked, nobody writes now: what is left of a
// writer that was killed is set aside. Without, it may be a line on its way.
func (q *queue) news(locked bool) error {
	if !locked { // whoever has the lock looked before
		if err := q.open(); err != nil {
			return err
		}
	}
	if q.dir == nil {
		return nil
	}
	seen, err := q.dir.Look(queueJournalName)
	if err != nil && !isAbsent(err) {
		return err
	}
	if err == nil && q.journal != nil && seen.Inode == q.at.Inode && seen.Device == q.at.Device && seen.Size >= q.end && (q.writes || !locked) {
		if !locked && (seen.Size == q.end || seen.Size == q.at.Size) {
			return nil
		}
		// What was read without the lock may have been cut off again (see undo): then it
		// is all read anew.
		if !locked || q.stands() {
			if rest, err := q.replay(); err == nil && rest == nil {
				return nil
			}
		}
	}
	if err := errors.Join(q.forget(), q.openJournal(locked)); err != nil || q.journal == nil {
		return err
	}
	rest, err := q.replay()
	return q.judged(rest, err, locked)
}

// stands reports whether the last line that was read is still there.
func (q *queue) stands() bool {
	if q.end == 0 {
		return true
	}
	want := format.QueueLineStart(q.sum)
	got := make([]byte, len(want))
	_, err := q.journal.ReadAt(got, q.last)
	return err == nil && bytes.Equal(got, want)
}

// openJournal opens the journal, which may not be there. Counting works also where
// nothing can be written.
func (q *queue) openJournal(locked bool) error {
	f, err := q.dir.OpenFile(queueJournalName, os.O_RDWR)
	q.writes = err == nil
	switch {
	case isAbsent(err) && locked: // somebody moved it away
		f, err = q.dir.OpenFile(queueJournalName, os.O_RDWR|os.O_CREATE)
		q.writes = err == nil
	case isAbsent(err):
		return nil
	case err != nil && !locked:
		f, err = q.dir.OpenFile(queueJournalName, os.O_RDONLY)
	}
	if err != nil {
		return err
	}
	at, err := disk.SightOf(f.File)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	q.journal, q.at = q.s.wrap(f), at
	return nil
}

// replay takes in the whole lines from end on. rest is what stands behind them and is no
// line; nil: nothing.
func (q *queue) replay() (rest []byte, err error) {
	size, err := q.journal.Size()
	if err != nil {
		return nil, err
	}
	q.at.Size = size
	in := bufio.NewReaderSize(io.NewSectionReader(q.journal, q.end, size-q.end), 64<<10)
	for {
		b, err := in.ReadBytes('\n')
		if len(b) == 0 && errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		l, sum, perr := format.ParseQueueLine(b, q.sum)
		if perr == nil {
			p := place{at: q.end, n: int64(len(b)), before: q.sum}
			if perr = q.apply(l, p); perr != nil {
				return nil, perr
			}
			q.last, q.end, q.sum = q.end, q.end+p.n, sum
			continue
		}
		more, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		if len(more) > 0 { // one write is one line, and each was flushed before the next
			return nil, q.corrupt(q.end, perr)
		}
		return append(b, more...), nil
	}
}

// judged ends a replay.
func (q *queue) judged(rest []byte, err error, locked bool) error {
	if err != nil {
		return errors.Join(err, q.forget())
	}
	if rest == nil || !locked {
		return nil
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("torn-%d-%s", q.end, id)
	if len(bytes.Trim(rest, format.Blank)) > 0 {
		q.s.log.Warn("an unfinished change of a queue was set aside", "queue", q.name, "file", name)
		if err := q.dir.WriteAtomic(name, rest); err != nil {
			return err
		}
	}
	return errors.Join(q.journal.Truncate(q.end), q.journal.Flush())
}

// compact writes the journal anew, without what is past. The lock is held.
func (q *queue) compact() (err error) {
	tmp := disk.TempPrefix + queueJournalName
	f, err := q.dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 64<<10)
	sum := uint32(0)
	put := func(l format.QueueLine) {
		var b []byte
		if err == nil {
			b, sum, err = l.Encode(sum)
		}
		if err == nil {
			_, err = out.Write(b)
		}
	}
	q.st.All(func(u *ledger.Unit[place]) {
		add, rerr := q.added(u.Data)
		err = errors.Join(err, rerr)
		add.Before = u.Delivery
		if u.Token != "" {
			add.Before--
		}
		put(add)
		if u.Token != "" {
			put(format.QueueLine{Do: format.QueueLease, Items: []format.QueueItem{{ID: u.ID, Token: u.Token}}, Worker: u.Worker, By: q.by[u.Token], Until: u.Expires})
		}
	})
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = q.dir.Rename(tmp, queueJournalName)
	}
	if err == nil {
		err = q.dir.Sync(".")
	}
	if err != nil {
		return err
	}
	return q.news(true)
}
