package fs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
)

// How long a caller waits for the commit lock before it goes past whoever
// holds it. Going past is always safe, it costs a copy of the journal.
const (
	patienceForced = time.Second
	patience       = 10 * time.Second
	glance         = 250 * time.Millisecond // of a reader, which never goes past
)

// The commit lock is an OS lock on the file lock-<n>, held for one change. Its
// holder may write journal-<n>.jsonl, no other file of that kind.
//
// A process can be stopped while it holds the lock. Whoever loses patience makes
// lock-<n+1> and goes on with that: it copies the newest journal to
// journal-<n+1>.jsonl and writes there. The stopped process, when it wakes,
// writes to a journal that nobody reads, and sees lock-<n+1> before it reports
// success, so it answers ErrUnknownOutcome:
//
//	stopped:  lock-1 … write journal-1, flush …… is there a lock-2?  yes: unknown outcome
//	other:              make lock-2, ring, copy journal-1 → journal-2, write there
//
// A lock file is a bell as well. It is empty at first; who has news for its holder
// appends a byte, and a holder that finds it as long as before need look no further:
// one question instead of four. There are two kinds of news: a newer lock is being
// used (the bell of every older one is rung before the journal is looked for there),
// and a signal was posted (see signal.go).
//
// If the stopped process looked before the bell was rung, its write was complete
// before the copy began, so the copy holds it. Lock files are never removed, so
// the newest one is found by counting.

// openLock opens the newest lock file.
func (r *record) openLock() error {
	if r.lock != nil && !r.passed() {
		return nil
	}
	if r.number == 0 {
		newest, err := r.newest()
		if err != nil {
			return err
		}
		r.number = newest
	}
	n := max(r.number, 1)
	for r.exists(lockName(n + 1)) {
		n++
	}
	if r.lock != nil {
		err := r.lock.Close()
		r.lock = nil
		if err := errors.Join(err, r.forget()); err != nil {
			return err
		}
		if n == r.number {
			return r.reopen()
		}
	}
	flags := os.O_RDONLY
	if r.writes {
		flags = os.O_RDWR | os.O_CREATE
	}
	for ; ; n++ {
		f, err := r.dir.OpenFile(lockName(n), flags)
		if errors.Is(err, fs.ErrNotExist) && r.exists(journalName(n)) {
			r.number, r.bell = n, silent // somebody removed the lock file; a reader can do without
			return nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return errAbsent
		}
		if err != nil {
			return err
		}
		at, err := disk.SightOf(f.File)
		if err != nil {
			return errors.Join(err, f.Close())
		}
		// In this order: a newer lock that is not there yet will ring.
		if !r.exists(lockName(n + 1)) {
			r.lock, r.number, r.lockAt, r.bell, r.mail = f.File, n, at, at.Size, mail{}
			return nil
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
}

// silent as record.bell says that no bell tells whether there is news.
const silent = -1

// passed reports whether somebody went past this lock, or took its file away, as
// an operator does who removes or replaces the folder under a running host.
func (r *record) passed() bool {
	seen, err := r.dir.Look(lockName(r.number))
	if err != nil || seen.Device != r.lockAt.Device || seen.Inode != r.lockAt.Inode {
		return true
	}
	r.bell = seen.Size
	if seen == r.lockAt {
		return false
	}
	if r.exists(lockName(r.number + 1)) {
		return true
	}
	r.lockAt = seen
	return false
}

// ring rings the bell of every lock: a process may have stopped at any of them.
func (r *record) ring() error {
	for n := uint64(1); ; n++ {
		f, err := r.dir.OpenFile(lockName(n), os.O_WRONLY|os.O_APPEND)
		if errors.Is(err, fs.ErrNotExist) {
			if n >= r.number {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write([]byte{format.Filler})
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}

// reopen begins anew with the folder that is there now.
func (r *record) reopen() error {
	err := r.dir.Close()
	r.dir, r.number = nil, 0
	if err != nil {
		return err
	}
	if err := r.openDir(); err != nil {
		return err
	}
	return r.openLock()
}

// newest is the greatest number of a lock or journal in the folder, or 0.
func (r *record) newest() (uint64, error) {
	names, err := r.names()
	if err != nil {
		return 0, err
	}
	var n uint64
	for _, name := range names {
		for _, part := range [...]struct{ before, after string }{{"lock-", ""}, {"journal-", ".jsonl"}} {
			text, isLock := strings.CutPrefix(name, part.before)
			text, ends := strings.CutSuffix(text, part.after)
			if m, err := strconv.ParseUint(text, 10, 64); err == nil && isLock && ends {
				n = max(n, m)
			}
		}
	}
	return n, nil
}

// names lists the record's folder.
func (r *record) names() ([]string, error) { return r.dir.Names(".") }

// exists answers false only when the name is surely not there.
func (r *record) exists(name string) bool {
	_, err := r.dir.Look(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// take takes the newest commit lock. After wait it goes past the holder, or,
// with pass false, answers errHeld.
func (r *record) take(ctx context.Context, wait time.Duration, pass bool) error {
	pause := 50 * time.Microsecond
	var since time.Time
	stale := false
	for held := uint64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		// What is open is usually still the newest; passed tells, once it is held.
		if r.lock == nil || stale {
			if err := r.openLock(); err != nil {
				return err
			}
		}
		ok, err := disk.TryLock(r.lock)
		if err != nil {
			return err
		}
		stale = true
		if ok {
			if !r.passed() {
				return nil
			}
			if err := disk.Unlock(r.lock); err != nil {
				return err
			}
			continue
		}
		if held != r.number {
			held, since = r.number, time.Now()
		}
		if time.Since(since) >= wait {
			if !pass {
				return errHeld
			}
			if err := r.goPast(); err != nil {
				return err
			}
			continue
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, 5*time.Millisecond)
	}
}

var errHeld = errors.New("another process holds the record's commit lock")

// goPast makes the next lock file.
func (r *record) goPast() error {
	r.s.log.Warn("going past a process that does not give the commit lock back", "kind", r.key.Kind, "id", r.key.ID, "lock", lockName(r.number))
	f, err := r.dir.OpenFile(lockName(r.number+1), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), r.dir.Sync("."), r.ring())
}

func (r *record) give() {
	if r.lock == nil {
		return
	}
	if err := disk.Unlock(r.lock); err != nil {
		// A closed descriptor has no lock either.
		r.s.log.Error("the commit lock was not given back", "file", r.lock.Name(), "err", err)
		_ = r.lock.Close()
		r.lock = nil
	}
}

// copyJournal brings the journal to the lock's own number. The lock is held. A
// mark of a clean release stays behind: the stopped process may be writing it.
func (r *record) copyJournal() error {
	if r.of == r.number {
		return nil
	}
	from, to := r.of, r.number
	tmp := disk.TempPrefix + journalName(to)
	f, err := r.dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	src, err := r.dir.Open(journalName(from))
	if err == nil {
		_, err = io.Copy(f, src)
		err = errors.Join(err, src.Close())
	}
	if err == nil {
		_, err = f.Write(filler(stepShared)) // a journal without a mark has space behind its last frame
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = r.dir.Rename(tmp, journalName(to))
	}
	if err == nil {
		err = r.dir.Sync(".")
	}
	if err != nil {
		return err
	}
	if err := r.forget(); err != nil {
		return err
	}
	for n := from; n > 0; n-- {
		for _, name := range []string{journalName(n), indexName(n), releasedName(n)} {
			if err := r.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.s.log.Warn("an old file was not removed", "file", name, "err", err)
			}
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
