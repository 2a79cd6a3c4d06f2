package conformance

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

func acquireCases() []Case {
	return []Case{
		core("S-2/acquire-mints-a-fence", "Acquire gives a fence of the record's birth, a new generation, and the claim's owner and run; the record shows it.", acquireMints),
		core("S-2/generations-are-new", "Every acquire mints a generation that was never there before.", generationsAreNew),
		core("S-8/busy", "A record with a live owner is busy; the error names the holder, and nothing changes.", busy),
		core("S-2/forced-take-over", "A forced acquire succeeds at once over a live owner.", forcedTakeOver),
		core("S-2/expected-generation", "An acquire that expects a generation succeeds only while it is the record's last one.", expectedGeneration),
		core("S-2/claim-bounds", "A claim with a run that is no UUID or an owner over 256 bytes is refused.", claimBounds),
	}
}

func acquireMints(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("mine"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	claim := store.Claim{Owner: `host <1> "é"`, Run: e.UUID()}
	f, r, err := s.Acquire(ctx, a.key, claim)
	if err != nil {
		return failf("acquire a free record: want success, got %w", err)
	}
	got, err := look(ctx, other, a.key)
	if err != nil {
		return err
	}
	_, notUUID := uuid.Parse(f.Generation)
	bad := []error{
		wantEqual("birth of the fence", f.Birth, before.record.Mark.Birth),
		wantEqual("owner of the fence", f.Owner, claim.Owner),
		wantEqual("run of the fence", f.Run, claim.Run),
		wantEqual("the generation is a UUID", notUUID == nil, true),
		wantEqual("key of the record it returned", r.Key, a.key),
		wantEqual("fence of the record it returned", r.Fence, f),
		wantEqual("mark of the record it returned", r.Mark, before.record.Mark),
		wantBytes("head of the record it returned", r.Head, before.record.Head),
		wantEqual("fence as loaded", got.record.Fence, f),
		wantEqual("generation as loaded", got.record.Generation, f.Generation),
		wantEqual("released as loaded", got.record.Released, false),
		wantEqual("a holder is loaded", got.record.Holder != nil, true),
		before.same("after acquire", got),
	}
	if got.record.Holder != nil {
		bad = append(bad, wantEqual("fence of the holder", got.record.Holder.Fence, f))
	}
	return errors.Join(bad...)
}

func generationsAreNew(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("many owners"))
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range 8 {
		claim := e.claim()
		claim.Force = i%2 == 1
		if err := a.acquire(ctx, claim); err != nil {
			return err
		}
		if seen[a.fence.Generation] {
			return failf("acquire number %d: want a new generation, got %s again", i+1, a.fence.Generation)
		}
		seen[a.fence.Generation] = true
		if i%2 == 1 {
			if err := wantOK("release", s.Release(ctx, a.key, a.fence)); err != nil {
				return err
			}
		}
	}
	return nil
}

func busy(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	a, err := e.owner(ctx, s, e.Key("held"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	var bad []error
	for i, h := range []store.Store{other, s} {
		_, _, err := h.Acquire(ctx, a.key, e.claim())
		at := "acquire a held record through " + []string{"another handle", "the same handle"}[i]
		held := asError(err).Holder
		bad = append(bad,
			wantKind(at, err, store.ErrBusy),
			wantEqual(at+": fence of the holder", held.Fence, a.fence),
			wantEqual(at+": the holder's lease has not run out", held.Expires.IsZero() || held.Expires.After(start), true),
			expectUntouched(ctx, s, at, a.key, before),
		)
	}
	bad = append(bad, a.advance(ctx, 1))
	if err := s.Release(ctx, a.key, a.fence); err != nil {
		bad = append(bad, failf("release: want success, got %w", err))
	}
	a.s = other
	return errors.Join(append(bad, a.acquire(ctx, e.claim()))...)
}

func forcedTakeOver(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	old, err := e.owner(ctx, s, e.Key("taken"))
	if err != nil {
		return err
	}
	if err := old.advance(ctx, 2); err != nil {
		return err
	}
	before, err := old.look(ctx)
	if err != nil {
		return err
	}
	now, err := old.rival(ctx, other)
	if err != nil {
		return failf("forced acquire over a live owner: %w", err)
	}
	after, err := now.look(ctx)
	if err != nil {
		return err
	}
	_, err = old.send(ctx, old.commit())
	return errors.Join(
		before.same("after the take-over", after),
		wantEqual("fence after the take-over", after.record.Fence, now.fence),
		wantKind("the old owner commits", err, store.ErrFenced),
		wantEqual("current fence in the error", asError(err).Fence, now.fence),
		now.advance(ctx, 2),
	)
}

func expectedGeneration(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("expected"))
	if err != nil {
		return err
	}
	with := func(generation string, force bool) store.Claim {
		c := e.claim()
		c.Generation, c.Force = generation, force
		return c
	}
	refuse := func(what, generation string) error {
		before, err := a.look(ctx)
		if err != nil {
			return err
		}
		var bad []error
		for _, force := range []bool{false, true} {
			_, _, err := s.Acquire(ctx, a.key, with(generation, force))
			bad = append(bad, wantKind(what, err, store.ErrConflict), expectUntouched(ctx, s, what, a.key, before))
		}
		return errors.Join(bad...)
	}
	bad := []error{refuse("expect a generation of a record that was never acquired", e.UUID())}
	if err := a.acquire(ctx, e.claim()); err != nil {
		return errors.Join(append(bad, err)...)
	}
	first := a.fence.Generation
	bad = append(bad, refuse("expect another generation of a held record", e.UUID()))
	_, _, err = s.Acquire(ctx, a.key, with(first, false))
	bad = append(bad, wantKind("expect the live owner's generation, without force", err, store.ErrBusy))
	bad = append(bad, a.acquire(ctx, with(first, true)))
	second := a.fence.Generation
	bad = append(bad, refuse("expect the generation before the last", first), wantOK("release", s.Release(ctx, a.key, a.fence)))
	bad = append(bad, refuse("expect the generation before the last of a released record", first))
	bad = append(bad, a.acquire(ctx, with(second, false)))
	return errors.Join(bad...)
}

func claimBounds(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("claimed"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	long := strings.Repeat("o", store.MaxOwnerBytes)
	var bad []error
	for _, t := range []struct {
		name  string
		claim store.Claim
		kind  error
	}{
		{"no run", store.Claim{Owner: "o"}, store.ErrUnsupported},
		{"a run that is no UUID", store.Claim{Owner: "o", Run: "../../run"}, store.ErrUnsupported},
		{"a run in capitals", store.Claim{Owner: "o", Run: strings.ToUpper("a" + e.UUID()[1:])}, store.ErrUnsupported},
		{"an owner that is too long", store.Claim{Owner: long + "o", Run: e.UUID()}, store.ErrTooLarge},
		{"an owner that is no UTF-8", store.Claim{Owner: "\xff", Run: e.UUID()}, store.ErrUnsupported},
	} {
		_, _, err := s.Acquire(ctx, a.key, t.claim)
		bad = append(bad, wantKind("a claim with "+t.name, err, t.kind), expectUntouched(ctx, s, "a claim with "+t.name, a.key, before))
	}
	bad = append(bad, a.acquire(ctx, store.Claim{Owner: long, Run: e.UUID()}), wantEqual("an owner of the greatest length", a.fence.Owner, long))
	return errors.Join(bad...)
}
