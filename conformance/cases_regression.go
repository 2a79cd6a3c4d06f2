package conformance

import (
	"context"
	"errors"

	"github.com/loophost/loophost/host/store"
)

func regressionCases() []Case {
	return []Case{
		core("S-6/commit-on-lost-state", "A commit that builds on a state which the record doesn't hold is a regression, not a conflict; nothing is written.", commitOnLostState),
		core("S-6/claim-saw-lost-state", "An acquire that saw a state which the record's history doesn't hold is refused and leaves the fence alone, also with force.", claimSawLost),
		core("S-6/claim-saw-history", "An acquire that saw an older state of the same history succeeds.", claimSawHistory),
	}
}

const otherChain = "00000000000000000000000000000000000000000000000000000000deadbeef"

func commitOnLostState(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("lost"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 2); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	now := a.mark
	var bad []error
	for _, t := range []struct {
		name  string
		after store.Mark
	}{
		{"another history of the same length", store.Mark{Birth: now.Birth, Revision: now.Revision, Chain: otherChain}},
		{"another history of the same length, differing in one digit", store.Mark{Birth: now.Birth, Revision: now.Revision, Chain: flipLast(now.Chain)}},
		{"a longer history", store.Mark{Birth: now.Birth, Revision: now.Revision + 1, Chain: otherChain}},
		{"a longer history that ends alike", store.Mark{Birth: now.Birth, Revision: now.Revision + 1, Chain: now.Chain}},
	} {
		c := a.commit()
		c.After = t.after
		_, err := s.Commit(ctx, a.key, a.fence, c)
		at := "a commit on " + t.name
		bad = append(bad, wantKind(at, err, store.ErrRegressed), expectUntouched(ctx, s, at, a.key, before))
	}
	unchecked := a.commit()
	unchecked.After.Chain = ""
	_, err = a.send(ctx, unchecked)
	return errors.Join(append(bad, wantOK("a commit that does not check the chain", err), a.advance(ctx, 1))...)
}

func flipLast(s string) string {
	if s == "" {
		return "0"
	}
	last := byte('0')
	if s[len(s)-1] == last {
		last = '1'
	}
	return s[:len(s)-1] + string(last)
}

func claimSawLost(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("lost"))
	if err != nil {
		return err
	}
	older := a.mark
	if err := errors.Join(a.advance(ctx, 2), s.Release(ctx, a.key, a.fence)); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	now := a.mark
	var bad []error
	for _, t := range []struct {
		name string
		seen store.Mark
	}{
		{"a later revision", store.Mark{Birth: now.Birth, Revision: now.Revision + 1, Chain: otherChain}},
		{"a later revision, chain unknown", store.Mark{Birth: now.Birth, Revision: now.Revision + 1}},
		{"another chain at this revision", store.Mark{Birth: now.Birth, Revision: now.Revision, Chain: otherChain}},
		{"another chain at an older revision", store.Mark{Birth: now.Birth, Revision: older.Revision, Chain: otherChain}},
		{"this chain at an older revision", store.Mark{Birth: now.Birth, Revision: older.Revision, Chain: now.Chain}},
		{"another birth", store.Mark{Birth: now.Birth + 1, Revision: now.Revision, Chain: now.Chain}},
		{"an earlier birth", store.Mark{Birth: now.Birth - 1, Revision: older.Revision, Chain: older.Chain}},
	} {
		for _, force := range []bool{false, true} {
			claim := e.claim()
			claim.Seen, claim.Force = t.seen, force
			_, _, err := s.Acquire(ctx, a.key, claim)
			at := "a claim that saw " + t.name
			bad = append(bad, wantKind(at, err, store.ErrRegressed), expectUntouched(ctx, s, at, a.key, before))
		}
	}
	return errors.Join(append(bad, a.acquire(ctx, e.claim()), a.advance(ctx, 1))...)
}

func claimSawHistory(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("seen"))
	if err != nil {
		return err
	}
	seen := []store.Mark{a.mark}
	for range 3 {
		if err := a.advance(ctx, 1); err != nil {
			return err
		}
		seen = append(seen, a.mark)
	}
	out, err := s.Resolve(ctx, a.key, a.fence, e.UUID())
	if err != nil {
		return failf("resolve: want never, got %w", err)
	}
	seen = append(seen, out.Ack.Mark)
	if err := wantOK("release", s.Release(ctx, a.key, a.fence)); err != nil {
		return err
	}
	var bad []error
	for _, m := range seen {
		claim := e.claim()
		claim.Seen = m
		if err := a.acquire(ctx, claim); err != nil {
			bad = append(bad, failf("a claim that saw revision %d of %d: %w", m.Revision, len(seen), err))
			continue
		}
		bad = append(bad, wantOK("release", s.Release(ctx, a.key, a.fence)))
	}
	return errors.Join(bad...)
}
