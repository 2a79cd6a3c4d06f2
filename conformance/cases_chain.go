package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

func chainCases() []Case {
	return []Case{
		core("S-7/chain", "Every ack's chain is the hash over the whole history that the port defines, so that marks can be compared between stores.", chainIsThePorts),
		core("S-7/whole-record-checks-clean", "A record that nothing damaged checks clean, commit by commit.", checksClean),
		{
			ID: "S-7/damage-is-found", Profile: ProfileCrash, Needs: []Need{NeedDamage}, Run: damageIsFound,
			Sentence: "A byte changed in stored data makes the record corrupt; it is never repaired silently, and the records beside it stay whole.",
		},
	}
}

func chainIsThePorts(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	key := e.Key("chained")
	first := store.Commit{ID: e.UUID(), Head: []byte("h"), Entries: [][]byte{[]byte("e")}}
	ack, err := s.Create(ctx, key, first)
	if err != nil {
		return failf("create: want success, got %w", err)
	}
	want := store.Chain("", first)
	if err := wantEqual("chain of the first commit", ack.Mark.Chain, want); err != nil {
		return err
	}
	a := &actor{e: e, s: s, key: key, mark: ack.Mark}
	if err := a.acquire(ctx, e.claim()); err != nil {
		return err
	}
	for i := range 6 {
		var c store.Commit
		if i == 3 {
			id := e.UUID()
			out, err := s.Resolve(ctx, key, a.fence, id)
			if err != nil {
				return failf("resolve: want never, got %w", err)
			}
			ack, want = out.Ack, store.ChainNever(want, id)
			a.mark = ack.Mark
		} else {
			c = a.with([]byte(fmt.Sprint("head ", i)), make([][]byte, i)...)
			if ack, err = a.send(ctx, c); err != nil {
				return failf("commit: want success, got %w", err)
			}
			want = store.Chain(want, c)
		}
		r, err := s.Load(ctx, key)
		if err := errors.Join(wantOK("load", err), wantEqual(fmt.Sprintf("chain at revision %d", ack.Mark.Revision), ack.Mark.Chain, want), wantEqual("chain as loaded", r.Mark.Chain, want)); err != nil {
			return err
		}
	}
	return nil
}

func checksClean(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("clean"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 4); err != nil {
		return err
	}
	out, err := s.Resolve(ctx, a.key, a.fence, e.UUID())
	if err != nil {
		return failf("resolve: want never, got %w", err)
	}
	a.mark = out.Ack.Mark
	if err := errors.Join(a.advance(ctx, 1), s.Release(ctx, a.key, a.fence)); err != nil {
		return err
	}
	k, ok := other.(store.Checker)
	if !ok {
		e.Note("the store has no Checker: the record was only read back")
		return holdsOnly(ctx, e, a.key, a.last, a.ack, a.ack.LogLength)
	}
	rep, err := k.Check(ctx, a.key)
	if err != nil {
		return failf("check: want success, got %w", err)
	}
	_, missing := k.Check(ctx, e.Key("missing"))
	return errors.Join(
		wantEqual("findings", fmt.Sprint(rep.Findings), "[]"),
		wantEqual("key", rep.Key, a.key),
		wantEqual("birth", rep.Birth, a.mark.Birth),
		wantEqual("revision", rep.Revision, a.mark.Revision),
		wantEqual("entries verified", rep.Entries, a.ack.LogLength),
		wantKind("check a record that is not there", missing, store.ErrNotFound),
	)
}

func damageIsFound(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	beside, err := e.owner(ctx, s, e.Key("beside"))
	if err != nil {
		return err
	}
	var bad []error
	for _, revision := range []uint64{1, 3, 5} {
		at := fmt.Sprintf("one byte changed in the commit of revision %d of 5", revision)
		a, err := e.owner(ctx, s, e.Key(at))
		if err != nil {
			return err
		}
		if err := errors.Join(a.advance(ctx, 4), s.Release(ctx, a.key, a.fence)); err != nil {
			return err
		}
		if err := e.Harness.(Damager).Damage(ctx, a.key, revision); err != nil {
			return failf("the harness damages the record: %w", err)
		}
		h, err := e.Open(ctx)
		if err != nil {
			return err
		}
		bad = append(bad, failsCorrupt(ctx, h, at, a))
	}
	return errors.Join(append(bad, beside.advance(ctx, 1))...)
}

// failsCorrupt checks that the damage is found by a check, or by reading, and
// that no commit builds on it.
func failsCorrupt(ctx context.Context, h store.Store, what string, a *actor) error {
	found := false
	if k, ok := h.(store.Checker); ok {
		rep, err := k.Check(ctx, a.key)
		found = err == nil && len(rep.Findings) > 0 || errors.Is(err, store.ErrCorrupt)
	}
	if _, err := h.Load(ctx, a.key); errors.Is(err, store.ErrCorrupt) {
		found = true
	}
	if _, err := h.ReadLog(ctx, a.key, 1, 0); errors.Is(err, store.ErrCorrupt) {
		found = true
	}
	return wantEqual(what+": found by check or by reading", found, true)
}
