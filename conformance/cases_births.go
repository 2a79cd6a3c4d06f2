package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/host/store"
)

func birthCases() []Case {
	return []Case{
		core("S-12/deleted-is-gone", "A deleted record is not found by anything, and not listed.", deletedIsGone),
		core("S-12/commit-after-delete", "A commit of a deleted record is refused and makes no record.", commitAfterDelete),
		core("S-12/new-birth", "A record created again has a later birth and nothing of the old one: no log, no fence, no generation, revision 1.", newBirth),
		core("S-12/stale-birth", "A writer of the deleted birth is fenced by the new one, also where revision and chain would fit.", staleBirth),
		core("S-12/many-births", "Births grow strictly, however quickly a record is deleted and created again.", manyBirths),
		core("S-12/old-claims", "An acquire that saw the deleted birth is a regression.", oldClaims),
	}
}

func deletedIsGone(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("gone"))
	if err != nil {
		return err
	}
	if err := errors.Join(a.advance(ctx, 2), wantOK("delete", s.Delete(ctx, a.key, a.fence))); err != nil {
		return err
	}
	var bad []error
	for i, h := range []store.Store{s, other} {
		for _, c := range a.calls() {
			if c.name != "create" {
				bad = append(bad, wantKind(fmt.Sprintf("%s of a deleted record through handle %d", c.name, i+1), c.do(ctx, h), store.ErrNotFound))
			}
		}
	}
	listed, err := listAll(ctx, other, e.kind, 0)
	return errors.Join(append(bad, err, wantEqual("records listed", len(listed), 0))...)
}

func commitAfterDelete(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("gone"))
	if err != nil {
		return err
	}
	if err := errors.Join(a.advance(ctx, 1), wantOK("delete", s.Delete(ctx, a.key, a.fence))); err != nil {
		return err
	}
	var bad []error
	for i, h := range []store.Store{s, other} {
		_, err := h.Commit(ctx, a.key, a.fence, a.commit())
		bad = append(bad, wantKind(fmt.Sprintf("a commit through handle %d", i+1), err, store.ErrNotFound))
		_, err = h.Load(ctx, a.key)
		bad = append(bad, wantKind("load afterwards", err, store.ErrNotFound))
	}
	return errors.Join(bad...)
}

func newBirth(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	old, err := e.owner(ctx, s, e.Key("again"))
	if err != nil {
		return err
	}
	if err := errors.Join(old.advance(ctx, 3), s.Signal(ctx, old.key, store.Signal{Kind: store.SignalStop, Run: old.fence.Run})); err != nil {
		return err
	}
	before := time.Now()
	if err := wantOK("delete", s.Delete(ctx, old.key, old.fence)); err != nil {
		return err
	}
	c := store.Commit{ID: e.UUID(), Head: []byte("new"), Entries: [][]byte{[]byte("new entry")}}
	ack, err := other.Create(ctx, old.key, c)
	if err != nil {
		return failf("create again: want success, got %w", err)
	}
	got, err := look(ctx, s, old.key)
	if err != nil {
		return err
	}
	again := &actor{e: e, s: s, key: old.key, mark: ack.Mark}
	return errors.Join(
		wantEqual("the birth is later than the old one", ack.Mark.Birth > old.mark.Birth, true),
		wantEqual("the birth is no time before the delete by more than an hour", ack.Mark.Birth.Time().After(before.Add(-time.Hour)), true),
		wantEqual("revision", ack.Mark.Revision, 1),
		wantEqual("chain", ack.Mark.Chain, store.Chain("", c)),
		wantEqual("mark as loaded", got.record.Mark, ack.Mark),
		wantBytes("head", got.record.Head, c.Head),
		sameLog("log", got.log, []store.Entry{{Seq: 1, Revision: 1, Data: []byte("new entry")}}),
		wantEqual("fence", got.record.Fence, store.Fence{}),
		wantEqual("last generation", got.record.Generation, ""),
		wantEqual("pending signals", len(got.record.Signals), 0),
		again.acquire(ctx, e.claim()), again.advance(ctx, 1),
	)
}

func staleBirth(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	old, err := e.owner(ctx, s, e.Key("again"))
	if err != nil {
		return err
	}
	if err := errors.Join(old.advance(ctx, 2), wantOK("delete", s.Delete(ctx, old.key, old.fence))); err != nil {
		return err
	}
	now := &actor{e: e, s: other, key: old.key}
	c := now.commit()
	ack, err := other.Create(ctx, old.key, c)
	if err != nil {
		return failf("create again: want success, got %w", err)
	}
	now.took(c, ack)
	unowned, err := now.look(ctx)
	if err != nil {
		return err
	}
	if err := old.refusedUnder(ctx, "of the deleted birth on the unowned new one", old.fence, unowned); err != nil {
		return err
	}
	// The same run and owner acquire the new birth: only birth and generation differ.
	if err := errors.Join(now.acquire(ctx, store.Claim{Owner: old.fence.Owner, Run: old.fence.Run}), now.advance(ctx, 2)); err != nil {
		return err
	}
	owned, err := now.look(ctx)
	if err != nil {
		return err
	}
	mixed := now.fence
	mixed.Birth = old.fence.Birth
	repeat := old.last // applied in the deleted birth, unknown to the new one
	_, err = s.Commit(ctx, old.key, old.fence, repeat)
	return errors.Join(
		old.refusedUnder(ctx, "of the deleted birth on the owned new one", old.fence, owned),
		now.refusedUnder(ctx, "with the new generation and the deleted birth", mixed, owned),
		wantKind("an old birth's applied commit repeated", err, store.ErrFenced),
		expectUntouched(ctx, s, "the repeated commit", old.key, owned),
		now.advance(ctx, 1),
	)
}

func manyBirths(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	var last store.Birth
	for i := range 12 {
		a, err := e.owner(ctx, s, e.Key("reborn"))
		if err != nil {
			return err
		}
		if a.fence.Birth <= last {
			return failf("birth number %d: want later than %d, got %d", i+1, last, a.fence.Birth)
		}
		if last = a.fence.Birth; i%2 == 1 {
			if err := a.advance(ctx, 1); err != nil {
				return err
			}
		}
		if err := wantOK("delete", s.Delete(ctx, a.key, a.fence)); err != nil {
			return err
		}
	}
	return nil
}

func oldClaims(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	old, err := e.owner(ctx, s, e.Key("claimed"))
	if err != nil {
		return err
	}
	if err := wantOK("delete", s.Delete(ctx, old.key, old.fence)); err != nil {
		return err
	}
	now, err := e.create(ctx, s, old.key)
	if err != nil {
		return err
	}
	before, err := now.look(ctx)
	if err != nil {
		return err
	}
	claim := e.claim()
	claim.Seen = old.mark
	_, _, err = s.Acquire(ctx, old.key, claim)
	generation := e.claim()
	generation.Generation = old.fence.Generation
	_, _, genErr := s.Acquire(ctx, old.key, generation)
	return errors.Join(
		wantKind("a claim that saw the deleted birth", err, store.ErrRegressed),
		wantKind("a claim that expects the deleted birth's generation", genErr, store.ErrConflict),
		expectUntouched(ctx, s, "the refused claims", old.key, before),
		now.acquire(ctx, e.claim()),
	)
}
