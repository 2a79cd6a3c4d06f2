package ledger

import (
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

// Acquire makes claim's run the owner at now. generation is a UUID that was never used.
// holds reports whether a mark is in the record's history (S-6); it is asked only where
// the claim has seen one, and not for a mark of another birth or of the future. The
// backend writes the state. Errors: ErrConflict, ErrBusy, ErrRegressed, or holds'. The
// claim was validated.
func (s *State) Acquire(key store.Key, claim store.Claim, now time.Time, generation uuid.UUID, holds func(store.Mark) (bool, error)) (store.Fence, error) {
	const op = "acquire"
	holder := s.holder(now)
	switch {
	case claim.Generation != "" && claim.Generation != s.Generation:
		return store.Fence{}, &store.Error{
			Op: op, Key: key, Kind: store.ErrConflict, Revision: s.Mark.Revision, Fence: s.Fence,
			Detail: "the record's generation is " + s.Generation,
		}
	case holder != nil && !claim.Force:
		return store.Fence{}, &store.Error{Op: op, Key: key, Kind: store.ErrBusy, Holder: *holder, Fence: s.Fence}
	}
	if seen := claim.Seen; seen != (store.Mark{}) {
		ok := seen.Birth == s.Mark.Birth && seen.Revision <= s.Mark.Revision
		if ok && seen.Revision > 0 && seen.Chain != "" {
			var err error
			if ok, err = holds(seen); err != nil {
				return store.Fence{}, err
			}
		}
		if !ok {
			return store.Fence{}, &store.Error{Op: op, Key: key, Kind: store.ErrRegressed, Revision: s.Mark.Revision}
		}
	}
	if s.Fence.Run != claim.Run {
		s.Signals = nil
	}
	s.Generation = generation.String()
	s.Fence = store.Fence{Birth: s.Mark.Birth, Generation: s.Generation, Owner: claim.Owner, Run: claim.Run}
	s.Started, s.Expires, s.Released = now, now.Add(ttlOr(claim.TTL)), false
	return s.Fence, nil
}

// Renew extends f's lease to ttl from now. The kind is one with owners. Errors: ErrFenced.
func (s *State) Renew(key store.Key, f store.Fence, now time.Time, ttl time.Duration) error {
	if err := s.Owned("renew", key, f); err != nil {
		return err
	}
	s.Expires = now.Add(ttlOr(ttl))
	return nil
}

// Release ends f's ownership. The kind is one with owners. Errors: ErrFenced.
func (s *State) Release(key store.Key, f store.Fence) error {
	if err := s.Owned("release", key, f); err != nil {
		return err
	}
	s.Fence, s.Released, s.Signals = store.Fence{}, true, nil
	return nil
}

// Delete is the tombstone that the backend leaves when it removes the record of f, at
// now (S-12). Errors: ErrFenced.
func (s *State) Delete(key store.Key, f store.Fence, now time.Time) (store.Birth, error) {
	if err := s.Owned("delete", key, f); err != nil {
		return 0, err
	}
	return store.BirthAt(now, s.Mark.Birth), nil
}

// Signal keeps sig for the run that owns the record (S-13). changed: the backend
// writes the state. Errors: ErrNotFound. sig was validated.
func (s *State) Signal(key store.Key, sig store.Signal) (changed bool, err error) {
	if sig.Run == "" || sig.Run != s.Fence.Run {
		return false, &store.Error{Op: "signal", Key: key, Kind: store.ErrNotFound, Detail: "the run " + sig.Run + " does not own the record"}
	}
	for _, have := range s.Signals {
		if have.Kind == sig.Kind {
			return false, nil
		}
	}
	sig.Time = sig.Time.UTC().Round(0)
	kept := append([]store.Signal{}, s.Signals...)
	if sig.Kind == store.SignalStop {
		s.Signals = append([]store.Signal{sig}, kept...)
	} else {
		s.Signals = append(kept, sig)
	}
	return true, nil
}

// ownerless is the error of a method that a shared record does not have.
func ownerless(op string, key store.Key) error {
	return &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Detail: "records of a shared kind have no owner"}
}

func ttlOr(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		return store.DefaultTTL
	}
	return ttl
}
