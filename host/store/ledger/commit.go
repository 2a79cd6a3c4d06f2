package ledger

import (
	"time"

	"github.com/loophost/loophost/host/store"
)

// Create is a record's first commit, at now; grave is the tombstone of the record
// before it (0: none), reached the durability that the backend's write reaches. The
// backend writes all it gets, with c's head and entries. Errors: ErrNotDurable,
// ErrUnsupported. c was validated.
func Create(key store.Key, c store.Commit, now time.Time, grave store.Birth, reached store.Durability) (*State, Settled, error) {
	const op = "create"
	if err := durableEnough(op, key, c, reached); err != nil {
		return nil, Settled{}, err
	}
	if c.After != (store.Mark{}) {
		return nil, Settled{}, &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Detail: "a first commit builds on nothing; its After must be zero"}
	}
	s := &State{Mark: store.Mark{Birth: store.BirthAt(now, grave)}, Released: true}
	return s, s.apply(c, reached), nil
}

// Again is what Create answers where the record exists: the acknowledgement of the
// same commit (S-3), or ErrExists, ErrCommitIDReused. known is what was kept for c's
// id; nil: nothing.
func Again(key store.Key, c store.Commit, known *Settled) (store.Ack, error) {
	const op = "create"
	if known == nil || known.Never {
		return store.Ack{}, &store.Error{Op: op, Key: key, Kind: store.ErrExists}
	}
	return known.replay(op, key, c)
}

// Commit applies c under f (S-2, S-3, S-5, S-6). known is what was kept for c's id;
// nil: nothing. fresh is not nil where the state changed: then the backend writes
// state, fresh, and c's head and entries. Errors: ErrCommitIDReused, ErrFenced,
// ErrConflict, ErrRegressed, ErrNotDurable. c was validated.
func (s *State) Commit(key store.Key, f store.Fence, c store.Commit, known *Settled, reached store.Durability) (ack store.Ack, fresh *Settled, err error) {
	const op = "commit"
	if known != nil && !known.Never {
		ack, err = known.replay(op, key, c)
		ack.Signals = s.Pending(f.Run)
		return ack, nil, err
	}
	if err := s.admits(op, key, f, c); err != nil {
		return store.Ack{}, nil, err
	}
	if known != nil {
		return store.Ack{}, nil, &store.Error{Op: op, Key: key, Kind: store.ErrCommitIDReused, Detail: "this id was resolved as never applied"}
	}
	if err := durableEnough(op, key, c, reached); err != nil {
		return store.Ack{}, nil, err
	}
	settled := s.apply(c, reached)
	ack = settled.Ack
	ack.Signals = s.Pending(f.Run)
	return ack, &settled, nil
}

// Resolve settles the commit id for good (S-4). known is what was kept for it; nil:
// nothing. fresh is not nil where the state changed: then the backend writes state and
// fresh. Errors: ErrFenced. id was validated, as by store.Commit.Validate.
func (s *State) Resolve(key store.Key, f store.Fence, id string, known *Settled, reached store.Durability) (out store.Outcome, fresh *Settled, err error) {
	if known != nil && !known.Never {
		ack := known.Ack
		ack.Signals = s.Pending(f.Run)
		return store.Outcome{Applied: true, Ack: ack}, nil, nil
	}
	if err := s.Owned("resolve", key, f); err != nil {
		return store.Outcome{}, nil, err
	}
	// Resolving twice must not advance twice: the first answer may have been lost.
	if known == nil {
		s.Mark.Chain = store.ChainNever(s.Mark.Chain, id)
		s.Mark.Revision++
		fresh = &Settled{Never: true, Ack: s.ack(reached)}
	}
	ack := s.ack(reached)
	ack.Signals = s.Pending(f.Run)
	return store.Outcome{Ack: ack}, fresh, nil
}

// replay answers a commit id that was applied before (S-3).
func (known *Settled) replay(op string, key store.Key, c store.Commit) (store.Ack, error) {
	if known.Content != store.ContentHash(c) {
		return store.Ack{}, &store.Error{Op: op, Key: key, Kind: store.ErrCommitIDReused}
	}
	return known.Ack, nil
}

// admits is the check of S-2 and S-6.
func (s *State) admits(op string, key store.Key, f store.Fence, c store.Commit) error {
	current := s.CurrentFence(key.Kind)
	held := f == current && !f.IsZero()
	if key.Kind.Shared() {
		held = held || f.IsZero()
	}
	switch {
	case !held || c.After.Birth != s.Mark.Birth:
		return &store.Error{Op: op, Key: key, Kind: store.ErrFenced, Fence: current}
	case c.After.Revision < s.Mark.Revision:
		return &store.Error{Op: op, Key: key, Kind: store.ErrConflict, Revision: s.Mark.Revision}
	case c.After.Revision > s.Mark.Revision, c.After.Chain != "" && c.After.Chain != s.Mark.Chain:
		return &store.Error{Op: op, Key: key, Kind: store.ErrRegressed, Revision: s.Mark.Revision}
	}
	return nil
}

func durableEnough(op string, key store.Key, c store.Commit, reached store.Durability) error {
	if reached.Reaches(c.Require) {
		return nil
	}
	return &store.Error{Op: op, Key: key, Kind: store.ErrNotDurable, Detail: "required " + c.Require.String() + ", reached " + reached.String()}
}

// apply makes c the newest revision; all was checked.
func (s *State) apply(c store.Commit, reached store.Durability) Settled {
	chain, content := store.Hashes(s.Mark.Chain, c)
	s.Mark.Revision++
	s.Mark.Chain = chain
	s.LogLength += uint64(len(c.Entries))
	s.LastCommitID = c.ID
	return Settled{Content: content, Ack: s.ack(reached)}
}

func (s *State) ack(reached store.Durability) store.Ack {
	return store.Ack{Mark: s.Mark, LogLength: s.LogLength, Durability: reached}
}
