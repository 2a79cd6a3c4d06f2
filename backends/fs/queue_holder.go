package fs

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
)

// A handle that leases from a queue has a file there, holder-<uuid>, locked for as long
// as it lives, and its leases name it. The kernel gives the lock back when the process
// ends, so a worker that waits finds out that a lease has nobody any more, and ends it.

// holderEvery is how often a worker that waits looks whether the holders live.
const holderEvery = 500 * time.Millisecond

const holderPrefix = "holder-"

func holderName(id string) string { return holderPrefix + id }

// hold makes this handle's file before its first lease, and removes those of handles that
// are gone: a killed process leaves its file. The queue's lock is held, so there is none
// that is not locked yet.
func (q *queue) hold() error {
	if q.holder != nil {
		return nil
	}
	names, err := q.dir.Names(".")
	if err != nil {
		return err
	}
	for _, name := range names {
		by, ok := strings.CutPrefix(name, holderPrefix)
		if !ok {
			continue
		}
		gone, err := q.isGone(by)
		q.warn("whether a holder lives is not known", err)
		if gone {
			q.remove(by)
		}
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	f, err := q.dir.OpenFile(holderName(id.String()), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	ok, err := disk.TryLock(f.File)
	if err == nil && !ok {
		err = errors.New(f.Name() + ": it is locked by somebody else")
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	q.holder, q.me = f.File, id.String()
	return nil
}

// letGo gives up what this handle holds, as the end of its process does.
func (q *queue) letGo() error {
	if q.holder == nil {
		return nil
	}
	err := q.holder.Close()
	if rerr := q.dir.Remove(holderName(q.me)); rerr != nil && !isAbsent(rerr) {
		err = errors.Join(err, rerr)
	}
	q.holder, q.me = nil, ""
	return err
}

// bury ends the leases of holders that are gone.
func (q *queue) bury(ctx context.Context) error {
	if time.Since(q.buried) < holderEvery {
		return nil
	}
	q.buried = time.Now()
	known := map[string]bool{q.me: true, "": true}
	for token, by := range q.by {
		if q.st.Holds(token) == nil {
			delete(q.by, token)
			continue
		}
		if known[by] {
			continue
		}
		known[by] = true
		gone, err := q.isGone(by)
		q.warn("whether a holder lives is not known", err)
		if !gone {
			continue
		}
		err = q.change(ctx, func(now time.Time) (format.QueueLine, error) {
			return format.QueueLine{Do: format.QueueGone, By: by, Until: now.UTC().Round(0)}, nil
		})
		if err != nil {
			return err
		}
		q.remove(by)
		return nil // what changed may have changed q.by: the others come next time
	}
	return nil
}

// remove removes the file of a holder that is gone. Where that fails, it says so for as
// long as it is there, and no more.
func (q *queue) remove(by string) {
	if err := q.dir.Remove(holderName(by)); !isAbsent(err) {
		q.warn("the file of a holder that is gone was not removed", err)
	}
}

func (q *queue) isGone(by string) (bool, error) {
	f, err := q.dir.OpenFile(holderName(by), os.O_RDONLY)
	if isAbsent(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	lives, err := disk.Locked(f.File)
	return !lives && err == nil, errors.Join(err, f.Close())
}

func (q *queue) warn(what string, err error) {
	if err != nil {
		q.s.log.Warn(what, "queue", q.name, "err", err)
	}
}

// gone takes in that a holder is gone: its leases end then, if not before.
func (q *queue) gone(by string, at time.Time) {
	for token, holder := range q.by {
		if u := q.st.Holds(token); u != nil && holder == by && u.Expires.After(at) {
			q.st.Extend(token, at)
		}
	}
}

// isHolder reports whether id is what hold made: it becomes part of a name.
func isHolder(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.String() == id
}
