package scope

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

// doubt is a commit of which it is not known whether it was applied (S-4, T-3).
//
//	commit ──unknown outcome──▶ resolve ──applied──▶ published
//	                               │    ──never────▶ reread, decided anew
//	                               └─can't tell────▶ doubt: read-only until Reopen
type doubt struct {
	id  string
	err error
}

// writable is nil, or says why this handle writes nothing. The caller has the turn.
func (s *Scope) writable() error {
	if s.gone != nil {
		return s.gone
	}
	if s.doubt != nil {
		return &store.Error{Op: "commit", Key: scopeKey(s.binding.ScopeID), Kind: store.ErrUnknownOutcome, Detail: "what became of an earlier commit is not known, so the handle is read-only; reopen the scope", Err: s.doubt.err}
	}
	return nil
}

// commit makes next the scope's state, if it is still as in v, and publishes it.
// The caller has the turn. Errors: store.ErrConflict where another writer was faster,
// or where the commit's outcome was settled as never; store.ErrUnknownOutcome, after
// which the handle is read-only; store.ErrNotDurable, also where it was applied.
func (s *Scope) commit(ctx context.Context, v, next *view, entries [][]byte) error {
	key := scopeKey(s.binding.ScopeID)
	head, err := next.head.Encode()
	if err != nil {
		return err
	}
	c := store.Commit{ID: uuid.NewString(), After: v.mark, Head: head, Entries: entries, Require: s.cfg.Require}
	attempt, cancel := s.cfg.bounded(ctx)
	ack, err := s.store.Commit(attempt, key, store.Fence{}, c)
	cancel()
	if errors.Is(err, store.ErrUnknownOutcome) {
		out, rerr := s.resolve(ctx, c.ID)
		switch {
		case rerr != nil:
			s.doubt = &doubt{c.ID, errors.Join(err, rerr)}
			return s.writable()
		case !out.Applied:
			return &store.Error{Op: "commit", Key: key, Kind: store.ErrConflict, Revision: out.Ack.Mark.Revision, Detail: "its outcome was not known, and was settled as never", Err: err}
		}
		ack, err = out.Ack, nil
	}
	if errors.Is(err, store.ErrNotDurable) {
		s.weak = true // it may be applied all the same
	}
	if err != nil {
		return s.note(err)
	}
	next.mark = ack.Mark
	s.publish(next)
	if s.weak = !ack.Durability.Reaches(s.cfg.Require); s.weak {
		return notDurable("commit", key, ack, s.cfg.Require)
	}
	s.snapshotIfDue(&v.head, next)
	return nil
}

func (s *Scope) resolve(ctx context.Context, id string) (store.Outcome, error) {
	ctx, cancel := s.cfg.bounded(ctx)
	defer cancel()
	return s.store.Resolve(ctx, scopeKey(s.binding.ScopeID), store.Fence{Birth: s.view.Load().mark.Birth}, id)
}

// Reopen settles the commit that made the handle read-only, and reads the newest
// state (T-3). An error leaves the handle as it was. A handle that is fenced,
// regressed or corrupt can't be reopened: Open the scope.
func (s *Scope) Reopen(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.busy.Done()
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	if s.gone != nil {
		return s.gone
	}
	if s.doubt != nil {
		if _, err := s.resolve(ctx, s.doubt.id); err != nil {
			return s.note(err)
		}
	}
	if _, err := s.reread(ctx); err != nil {
		return err
	}
	s.doubt = nil
	return nil
}
