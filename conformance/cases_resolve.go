package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

func resolveCases() []Case {
	return []Case{
		core("S-4/resolve-applied", "Resolving an applied commit gives its original ack and changes nothing, whoever owns the record now.", resolveApplied),
		core("S-4/resolve-never", "Resolving a commit that did not arrive advances the revision by one and leaves head and log alone.", resolveNever),
		core("S-4/never-means-never", "A commit that was resolved as never does not apply when it arrives late, not even after a restart.", neverMeansNever),
		core("S-4/resolve-twice", "Resolving again gives the same answer.", resolveTwice),
		core("S-4/resolve-stale-fence", "An owner that was fenced can't settle a commit as never, and moves nothing.", resolveStaleFence),
		core("S-4/resolve-shared", "A commit of a shared record is resolved under its birth.", resolveShared),
		core("S-4/resolve-races-commit", "When a commit and its resolution race, either it is applied and reported so, or it never applies.", resolveRacesCommit),
	}
}

func resolveApplied(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("applied"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 1); err != nil {
		return err
	}
	id, ack := a.last.ID, a.ack
	settle := func(what string) error {
		before, err := a.look(ctx)
		if err != nil {
			return err
		}
		out, err := s.Resolve(ctx, a.key, a.fence, id)
		if err != nil {
			return failf("%s: want applied, got %w", what, err)
		}
		return errors.Join(wantEqual(what+": applied", out.Applied, true), wantAck(what, out.Ack, ack), expectUntouched(ctx, s, what, a.key, before))
	}
	bad := []error{settle("resolve at once"), a.advance(ctx, 2), settle("resolve two commits later")}
	now, err := a.rival(ctx, other)
	if err != nil {
		return errors.Join(append(bad, err)...)
	}
	return errors.Join(append(bad,
		settle("resolve under a stale fence"),
		now.advance(ctx, 1), settle("resolve under a stale fence after another owner's commit"),
		now.s.Release(ctx, now.key, now.fence), settle("resolve after the other owner's release"),
	)...)
}

func resolveNever(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("never"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 1); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	id := e.UUID()
	out, err := s.Resolve(ctx, a.key, a.fence, id)
	if err != nil {
		return failf("resolve a commit that never arrived: want never, got %w", err)
	}
	after, err := look(ctx, other, a.key)
	if err != nil {
		return err
	}
	want := store.Mark{Birth: a.mark.Birth, Revision: a.mark.Revision + 1, Chain: store.ChainNever(a.mark.Chain, id)}
	bad := []error{
		wantEqual("applied", out.Applied, false),
		wantEqual("mark of the outcome", out.Ack.Mark, want),
		wantEqual("log length of the outcome", out.Ack.LogLength, before.record.LogLength),
		wantEqual("mark as loaded", after.record.Mark, want),
		wantBytes("head", after.record.Head, before.record.Head),
		sameLog("log", after.log, before.log),
		wantEqual("fence", after.record.Fence, before.record.Fence),
		// a host asks by this id whether its commit was applied (L-20)
		wantEqual("last commit id", after.record.LastCommitID, before.record.LastCommitID),
	}
	_, err = a.send(ctx, a.commit()) // still builds on the revision before
	bad = append(bad, wantKind("a commit on the revision before the resolution", err, store.ErrConflict))
	a.mark = want
	return errors.Join(append(bad, a.advance(ctx, 1))...)
}

func neverMeansNever(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("late"))
	if err != nil {
		return err
	}
	late := a.commit()
	out, err := s.Resolve(ctx, a.key, a.fence, late.ID)
	if err != nil {
		return failf("resolve: want never, got %w", err)
	}
	if err := wantEqual("applied", out.Applied, false); err != nil {
		return err
	}
	a.mark = out.Ack.Mark
	arrive := func(what string, after store.Mark) error {
		before, err := a.look(ctx)
		if err != nil {
			return err
		}
		h, err := e.Open(ctx) // a fresh handle remembers nothing
		if err != nil {
			return err
		}
		c := late
		c.After = after
		_, err = h.Commit(ctx, a.key, a.fence, c)
		return errors.Join(
			wantKind(what, err, store.ErrConflict, store.ErrCommitIDReused, store.ErrFenced),
			expectUntouched(ctx, s, what, a.key, before),
		)
	}
	bad := []error{
		arrive("the commit arrives right after its resolution", late.After),
		arrive("the commit's id on the new revision", a.mark),
		a.advance(ctx, 3),
		arrive("the commit arrives 3 commits after its resolution", late.After),
	}
	if err := wantOK("close", s.Close()); err != nil {
		return errors.Join(append(bad, err)...)
	}
	if s, err = e.Open(ctx); err != nil {
		return errors.Join(append(bad, err)...)
	}
	a.s = s
	return errors.Join(append(bad, arrive("the commit arrives after a restart", late.After))...)
}

func resolveTwice(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("twice"))
	if err != nil {
		return err
	}
	id := e.UUID()
	for i, h := range []store.Store{s, other, s} {
		out, err := h.Resolve(ctx, a.key, a.fence, id)
		if err != nil {
			return failf("resolve number %d: want never, got %w", i+1, err)
		}
		if err := wantEqual(fmt.Sprintf("applied, resolve number %d", i+1), out.Applied, false); err != nil {
			return err
		}
		r, err := s.Load(ctx, a.key)
		if err := errors.Join(wantOK("load", err), wantEqual(fmt.Sprintf("mark of the outcome, resolve number %d", i+1), out.Ack.Mark, r.Mark)); err != nil {
			return err
		}
		a.mark = out.Ack.Mark
	}
	return a.advance(ctx, 1)
}

func resolveStaleFence(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	old, err := e.owner(ctx, s, e.Key("stale"))
	if err != nil {
		return err
	}
	lost := old.commit()
	now, err := old.rival(ctx, other)
	if err != nil {
		return err
	}
	before, err := now.look(ctx)
	if err != nil {
		return err
	}
	_, err = s.Resolve(ctx, old.key, old.fence, lost.ID)
	return errors.Join(
		wantKind("resolve an unknown id under a stale fence", err, store.ErrFenced),
		wantEqual("current fence in the error", asError(err).Fence, now.fence),
		expectUntouched(ctx, s, "the refused resolve", old.key, before),
		now.advance(ctx, 1),
	)
}

func resolveShared(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.SharedKey("scope"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 1); err != nil {
		return err
	}
	applied, err := s.Resolve(ctx, a.key, a.fence, a.last.ID)
	bad := []error{wantOK("resolve an applied commit", err), wantEqual("applied", applied.Applied, true), wantAck("resolved ack", applied.Ack, a.ack)}
	_, err = s.Resolve(ctx, a.key, store.Fence{Birth: a.fence.Birth + 1}, e.UUID())
	bad = append(bad, wantKind("resolve under another birth", err, store.ErrFenced))
	late := a.commit()
	never, err := s.Resolve(ctx, a.key, a.fence, late.ID)
	bad = append(bad, wantOK("resolve a commit that never arrived", err), wantEqual("applied", never.Applied, false),
		wantEqual("revision", never.Ack.Mark.Revision, a.mark.Revision+1))
	_, err = s.Commit(ctx, a.key, a.fence, late)
	bad = append(bad, wantKind("the late commit", err, store.ErrConflict, store.ErrCommitIDReused))
	a.mark = never.Ack.Mark
	return errors.Join(append(bad, a.advance(ctx, 1))...)
}

func resolveRacesCommit(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("race"))
	if err != nil {
		return err
	}
	for range 2 * rounds {
		before := a.ack.LogLength
		c := a.commit()
		var ack store.Ack
		var out store.Outcome
		errs, err := race(ctx, e, 2, func(i int, s store.Store) (err error) {
			if i == 0 {
				ack, err = s.Commit(ctx, a.key, a.fence, c)
			} else {
				out, err = s.Resolve(ctx, a.key, a.fence, c.ID)
			}
			return err
		})
		if err != nil {
			return err
		}
		if errs[1] != nil {
			return failf("resolve beside its commit: want an answer, got %w", errs[1])
		}
		r, err := s.Load(ctx, a.key)
		if err != nil {
			return failf("load: want success, got %w", err)
		}
		a.took(c, out.Ack)
		bad := []error{wantEqual("mark of the outcome", out.Ack.Mark, r.Mark)}
		if out.Applied {
			bad = append(bad, wantOK("a commit that was resolved as applied", errs[0]), wantAck("resolved ack", out.Ack, ack), wantEqual("log length", r.LogLength, before+1))
		} else {
			bad = append(bad, wantKind("a commit that was resolved as never", errs[0], store.ErrConflict, store.ErrCommitIDReused), wantEqual("log length", r.LogLength, before))
		}
		if err := errors.Join(bad...); err != nil {
			return err
		}
	}
	return nil
}
