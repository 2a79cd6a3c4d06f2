package fs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Acquire makes this process the owner: it locks a file named by run and
// generation for as long as it owns the record, and puts the fence into the journal.
func (s *Store) Acquire(ctx context.Context, key store.Key, claim store.Claim) (store.Fence, store.Record, error) {
	const op = "acquire"
	none := func(err error) (store.Fence, store.Record, error) { return store.Fence{}, store.Record{}, err }
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return none(err)
	}
	defer leave()
	if err := claim.Validate(key); err != nil {
		return none(err)
	}
	r, err := s.use(ctx, key)
	if err != nil {
		return none(err)
	}
	defer s.unuse(r)
	wait := patienceForced
	if !claim.Force {
		wait = patience
		// A live owner is known without the commit lock, which it may hold.
		if err := r.look(ctx); err != nil {
			return none(fail(op, key, err))
		}
		if err := r.claimable(claim); err != nil {
			return none(fail(op, key, err))
		}
	}
	if err := r.begin(ctx, wait); err != nil {
		return none(fail(op, key, err))
	}
	defer r.give()
	if r.poisoned != nil {
		if err := r.read(true); err != nil {
			return none(fail(op, key, err))
		}
	}
	if err := r.claimable(claim); err != nil {
		return none(fail(op, key, err))
	}
	if err := r.acquire(claim); err != nil {
		return none(fail(op, key, err))
	}
	return r.owning, r.snapshot(), nil
}

// claimable is the check of an Acquire, in the order of the error kinds.
func (r *record) claimable(claim store.Claim) error {
	if r.st.deleted {
		return r.deleted()
	}
	if claim.Generation != "" && claim.Generation != r.st.generation {
		return &store.Error{Kind: store.ErrConflict, Revision: r.st.rev, Fence: r.st.fence, Detail: "the record's generation is " + r.st.generation}
	}
	if !claim.Force {
		h, err := r.holder()
		if err != nil {
			return err
		}
		if h != nil {
			return &store.Error{Kind: store.ErrBusy, Holder: *h, Fence: r.st.fence}
		}
	}
	if r.broken != nil {
		return &store.Error{Kind: store.ErrCorrupt, Err: r.broken}
	}
	if claim.Seen == (store.Mark{}) {
		return nil
	}
	holds, err := r.holds(claim.Seen)
	if err == nil && !holds {
		err = &store.Error{Kind: store.ErrRegressed, Revision: r.st.rev}
	}
	return err
}

// holds reports whether the record's history holds seen (S-6).
func (r *record) holds(seen store.Mark) (bool, error) {
	switch {
	case seen.Birth != r.st.birth, seen.Revision > r.st.rev:
		return false, nil
	case seen.Revision == 0, seen.Chain == "":
		return true, nil
	case seen.Revision == r.st.rev:
		return seen.Chain == r.st.chain, nil
	}
	x := r.openIndex()
	defer x.close()
	l, _ := x.before(func(l format.IndexLine) bool { return l.Rev < seen.Revision })
	size, err := r.journal.Size()
	if err != nil {
		return false, err
	}
	in := &frames{f: r.journal, size: size}
	for at := l.At; at < r.st.end; {
		h, more, err := in.header(at)
		var d *damage
		switch {
		case errors.As(err, &d) && l.At > 0:
			l = format.IndexLine{} // the entry was no use
			at = 0
			continue
		case errors.As(err, &d):
			return false, &store.Error{Kind: store.ErrCorrupt, Err: d}
		case err != nil:
			return false, err
		case !more || h.Rev > seen.Revision:
			return false, nil
		case h.Rev == seen.Revision:
			return h.Chain == seen.Chain, nil
		}
		at = h.End()
	}
	return false, nil
}

func (r *record) acquire(claim store.Claim) error {
	generation, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	f := store.Fence{Birth: r.st.birth, Generation: generation.String(), Owner: claim.Owner, Run: claim.Run}
	lock, err := r.lockOwner(f)
	if err != nil {
		return err
	}
	err = r.extend(r.st.end)
	if err == nil {
		err = r.dropMark()
	}
	if err == nil {
		err = r.append(format.Acquire, format.Meta{Fence: &f})
	}
	if err != nil {
		if errors.Is(err, store.ErrUnknownOutcome) {
			r.s.log.Warn("an acquire may have landed; its owner is gone", "kind", r.key.Kind, "id", r.key.ID, "generation", f.Generation, "err", err)
		}
		return errors.Join(err, lock.Close(), r.dir.Remove(ownerName(f)))
	}
	if r.owner != nil {
		if err := r.owner.Close(); err != nil {
			r.s.log.Warn("the lock of the run before was not closed", "file", r.owner.Name(), "err", err)
		}
	}
	r.owner, r.owning = lock, f
	r.tidy()
	return nil
}

// lockOwner makes the lock file of one fence. It says who the owner is; its
// content decides nothing, so it is not flushed.
func (r *record) lockOwner(f store.Fence) (*os.File, error) {
	b, err := format.Owner{Fence: f, PID: os.Getpid(), Host: r.s.host, Started: r.s.now().UTC()}.Encode()
	if err != nil {
		return nil, err
	}
	file, err := r.dir.OpenFile(ownerName(f), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	ok, err := disk.TryLock(file.File)
	if err == nil && !ok {
		err = errHeld
	}
	if err == nil {
		_, err = file.Write(b)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), r.dir.Remove(ownerName(f)))
	}
	return file.File, nil
}

// dropMark takes the mark of a clean release away before the journal changes.
func (r *record) dropMark() error {
	err := r.dir.Remove(releasedName(r.number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.dir.Sync(".")
}

// tidy removes what runs before this one left behind.
func (r *record) tidy() {
	names, err := r.names()
	if err != nil {
		r.s.log.Warn("old files were not looked for", "kind", r.key.Kind, "id", r.key.ID, "err", err)
		return
	}
	for _, name := range names {
		old := strings.HasPrefix(name, "owner-") && name != ownerName(r.st.fence) ||
			strings.HasPrefix(name, signalPrefix) && !strings.HasPrefix(name, signalPrefix+r.st.fence.Run) ||
			strings.HasPrefix(name, disk.TempPrefix) && r.abandoned(name) ||
			r.outdated(name)
		if old {
			r.remove(name)
		}
	}
}

// outdated reports whether a file belongs to a lock that was gone past. The
// process that was may have made it when it woke.
func (r *record) outdated(name string) bool {
	for _, prefix := range [...]string{"journal-", "index-", "released-"} {
		if text, ok := strings.CutPrefix(name, prefix); ok {
			text, _, _ = strings.Cut(text, ".")
			n, err := strconv.ParseUint(text, 10, 64)
			return err == nil && n < r.number
		}
	}
	return false
}

// abandoned reports whether an unfinished file is so old that nobody finishes it.
func (r *record) abandoned(name string) bool {
	info, err := r.dir.Lstat(name)
	return err == nil && time.Since(info.ModTime()) > time.Hour
}

// remove takes away a file that nothing depends on.
func (r *record) remove(name string) {
	if err := r.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.s.log.Warn("an old file was not removed", "file", name, "err", err)
	}
}

// holder is the live owner, or nil. An owner lives while its lock file is locked.
func (r *record) holder() (*store.Holder, error) {
	if r.st.fence.IsZero() {
		return nil, nil
	}
	file, err := r.dir.Open(ownerName(r.st.fence))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read-only
	lives, err := disk.Locked(file)
	if err != nil || !lives {
		return nil, err
	}
	b, err := r.dir.ReadFile(ownerName(r.st.fence))
	if err != nil {
		b = nil
	}
	o := format.ParseOwner(b)
	return &store.Holder{Fence: r.st.fence, PID: o.PID, Host: o.Host, Started: o.Started}, nil
}
