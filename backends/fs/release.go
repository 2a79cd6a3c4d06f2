package fs

import (
	"context"
	"strings"
	"time"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Renew checks the fence. The owner's liveness is its lock, so there is no
// lease to extend, and nothing is written.
func (s *Store) Renew(ctx context.Context, key store.Key, f store.Fence, _ time.Duration) error {
	const op = "renew"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return err
	}
	defer leave()
	if err := ownable(op, key); err != nil {
		return err
	}
	r, err := s.use(ctx, key)
	if err != nil {
		return err
	}
	defer s.unuse(r)
	if err := r.look(ctx); err != nil {
		return fail(op, key, err)
	}
	return fail(op, key, r.owned(f))
}

func ownable(op string, key store.Key) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if key.Kind.Shared() {
		return &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Detail: "records of a shared kind have no owner"}
	}
	return nil
}

// change runs do under the commit lock if f is the record's fence.
func (s *Store) change(ctx context.Context, op string, key store.Key, f store.Fence, do func(*record) error) error {
	r, err := s.use(ctx, key)
	if err != nil {
		return err
	}
	defer s.unuse(r)
	if err := r.begin(ctx, patience); err != nil {
		return fail(op, key, err)
	}
	defer r.give()
	if err := r.owned(f); err != nil {
		return fail(op, key, err)
	}
	return fail(op, key, do(r))
}

// Release ends the ownership: a frame, then a mark that says that the journal
// ends whole here, and the space written ahead is cut off.
func (s *Store) Release(ctx context.Context, key store.Key, f store.Fence) error {
	const op = "release"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return err
	}
	defer leave()
	if err := ownable(op, key); err != nil {
		return err
	}
	return s.change(ctx, op, key, f, func(r *record) error {
		if err := r.append(format.Release, format.Meta{Fence: &f}); err != nil {
			return err
		}
		if err := r.markReleased(); err != nil {
			r.s.log.Warn("the released record was not marked as whole", "kind", r.key.Kind, "id", r.key.ID, "err", err)
		}
		r.disown(f)
		return nil
	})
}

// markReleased writes the mark and cuts the filler off. The release itself is
// durable already, and with the mark the filler is no longer needed.
func (r *record) markReleased() error {
	mark := format.Released{Birth: r.st.birth, End: r.st.end, Last: r.st.prev}
	if err := r.dir.WriteAtomic(releasedName(r.of), mark.Encode()); err != nil {
		return err
	}
	r.size = r.st.end
	return r.journal.Truncate(r.st.end)
}

// disown gives up the lock of f's run and takes its files away.
func (r *record) disown(f store.Fence) {
	if r.owner != nil && r.owning == f {
		if err := r.owner.Close(); err != nil {
			r.s.log.Warn("the owner's lock was not closed", "file", r.owner.Name(), "err", err)
		}
		r.owner = nil
	}
	r.remove(ownerName(f))
	for _, k := range signalKinds {
		r.remove(signalName(f.Run, k))
	}
}

// Delete ends the record with a frame, so that every open handle sees it; then
// a journal that holds nothing but the tombstone takes the place of the old one.
func (s *Store) Delete(ctx context.Context, key store.Key, f store.Fence) error {
	const op = "delete"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return err
	}
	return s.change(ctx, op, key, f, func(r *record) error {
		tombstone := store.BirthAt(r.s.now(), r.st.birth)
		if err := r.append(format.Delete, format.Meta{Birth: tombstone, Fence: &f}); err != nil {
			return err
		}
		if err := r.bury(tombstone); err != nil {
			r.s.log.Warn("the content of the deleted record was not removed", "kind", r.key.Kind, "id", r.key.ID, "err", err)
		}
		r.disown(f)
		return r.forget()
	})
}

// bury leaves the tombstone and removes the rest (S-12). The deletion itself is durable already.
func (r *record) bury(tombstone store.Birth) error {
	var grave state
	_, b, err := grave.frame(format.Tombstone, format.Meta{Key: &r.key, Birth: tombstone, Time: r.time()})
	if err != nil {
		return err
	}
	if err := r.dir.WriteAtomic(journalName(r.number), b); err != nil {
		return err
	}
	names, err := r.names()
	for _, name := range names {
		for _, prefix := range []string{"index-", "released-", "owner-", signalPrefix, tornPrefix} {
			if strings.HasPrefix(name, prefix) {
				r.remove(name)
			}
		}
	}
	return err
}
