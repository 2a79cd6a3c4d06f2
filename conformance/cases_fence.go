package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/loophost/loophost/host/store"
)

func fenceCases() []Case {
	cases := []Case{
		core("S-2/unowned-record", "Nobody writes to an unowned record: an empty fence and the birth alone are refused.", unownedRecord),
		core("S-2/released-fence", "A released fence writes nothing, and releasing twice is refused.", releasedFence),
		core("S-2/taken-over-fence", "After a take-over the old owner can't commit, renew, release, resolve or delete, and is told the new fence.", takenOverFence),
		core("S-2/same-run-again", "A run that acquires again has a new generation, and its old fence is stale.", sameRunAgain),
		core("S-2/any-handle", "A fence is what counts, not the handle: its owner commits through another handle too.", anyHandle),
		core("S-2/older-revision", "A commit that builds on an older revision is a conflict that names the current one.", olderRevision),
		core("S-2/newer-revision", "A commit that builds on a revision that is not there is refused, also where numbers overflow or round.", newerRevision),
		core("S-2/large-revisions", "Revisions above 2^53 are compared exactly.", largeRevisions),
	}
	for _, f := range fenceFields {
		cases = append(cases, core("S-2/other-"+f.name,
			fmt.Sprintf("A fence with another %s commits, renews, releases, resolves and deletes nothing, be it older or newer.", f.name),
			func(ctx context.Context, e *Env) error { return otherField(ctx, e, f) }))
	}
	return cases
}

// fenceField changes one field of a fence in several ways.
type fenceField struct {
	name   string
	change func(*Env, store.Fence) []store.Fence
}

var fenceFields = []fenceField{
	{"birth", func(e *Env, f store.Fence) []store.Fence {
		var all []store.Fence
		for _, b := range []store.Birth{f.Birth - 1, f.Birth + 1, f.Birth + store.Birth(time.Hour), 0, math.MaxInt64} {
			g := f
			g.Birth = b
			all = append(all, g)
		}
		return all
	}},
	{"generation", func(e *Env, f store.Fence) []store.Fence {
		return withText(f, func(g *store.Fence) *string { return &g.Generation }, e.UUID(), "", "00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff")
	}},
	{"owner", func(e *Env, f store.Fence) []store.Fence {
		return withText(f, func(g *store.Fence) *string { return &g.Owner }, "somebody else", "", f.Owner+" ", f.Owner[:1])
	}},
	{"run", func(e *Env, f store.Fence) []store.Fence {
		return withText(f, func(g *store.Fence) *string { return &g.Run }, e.UUID(), "", "00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff")
	}},
}

func withText(f store.Fence, field func(*store.Fence) *string, values ...string) []store.Fence {
	var all []store.Fence
	for _, v := range values {
		g := f
		*field(&g) = v
		all = append(all, g)
	}
	return all
}

func otherField(ctx context.Context, e *Env, field fenceField) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("fenced"))
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
	var bad []error
	for _, f := range field.change(e, a.fence) {
		bad = append(bad, a.refusedUnder(ctx, fmt.Sprintf("under a fence with %s %v", field.name, fieldOf(field.name, f)), f, before))
	}
	return errors.Join(append(bad, a.advance(ctx, 1))...)
}

func fieldOf(name string, f store.Fence) any {
	switch name {
	case "birth":
		return int64(f.Birth)
	case "generation":
		return fmt.Sprintf("%q", f.Generation)
	case "owner":
		return fmt.Sprintf("%q", f.Owner)
	default:
		return fmt.Sprintf("%q", f.Run)
	}
}

// refusedUnder checks that nothing that needs a fence works under f, that each
// refusal names the current fence, and that the record stays as before.
func (a *actor) refusedUnder(ctx context.Context, what string, f store.Fence, before snapshot) error {
	stale := &actor{e: a.e, s: a.s, key: a.key, fence: f, mark: before.record.Mark, n: 5000}
	c := stale.commit()
	tries := []struct {
		name string
		do   func() error
	}{
		{"commit", func() error { _, err := a.s.Commit(ctx, a.key, f, c); return err }},
		{"renew", func() error { return a.s.Renew(ctx, a.key, f, time.Minute) }},
		{"resolve", func() error { _, err := a.s.Resolve(ctx, a.key, f, a.e.UUID()); return err }},
		{"release", func() error { return a.s.Release(ctx, a.key, f) }},
		{"delete", func() error { return a.s.Delete(ctx, a.key, f) }},
	}
	for _, t := range tries {
		err := t.do()
		at := t.name + " " + what
		if e := wantKind(at, err, store.ErrFenced); e != nil {
			return e
		}
		if err := errors.Join(
			wantEqual(at+": current fence in the error", asError(err).Fence, before.record.Fence),
			wantEqual(at+": key in the error", asError(err).Key, a.key),
			expectUntouched(ctx, a.s, at, a.key, before),
		); err != nil {
			return err
		}
	}
	return nil
}

func unownedRecord(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("free"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	b := before.record.Mark.Birth
	return errors.Join(
		a.refusedUnder(ctx, "with an empty fence", store.Fence{}, before),
		a.refusedUnder(ctx, "with the birth alone", store.Fence{Birth: b}, before),
		a.refusedUnder(ctx, "with a made-up fence", store.Fence{Birth: b, Generation: e.UUID(), Owner: "x", Run: e.UUID()}, before),
	)
}

func releasedFence(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("released"))
	if err != nil {
		return err
	}
	if err := errors.Join(a.advance(ctx, 1), s.Release(ctx, a.key, a.fence)); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		wantEqual("fence after release", before.record.Fence, store.Fence{}),
		wantEqual("last generation after release", before.record.Generation, a.fence.Generation),
		wantEqual("released", before.record.Released, true),
		wantEqual("holder is nil", before.record.Holder == nil, true),
		a.refusedUnder(ctx, "under a released fence", a.fence, before),
	)
}

func takenOverFence(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	old, err := e.owner(ctx, s, e.Key("taken"))
	if err != nil {
		return err
	}
	if err := old.advance(ctx, 1); err != nil {
		return err
	}
	now, err := old.rival(ctx, other)
	if err != nil {
		return err
	}
	for _, moment := range []string{"right after the take-over", "after the new owner's commit", "after the new owner's release"} {
		before, err := now.look(ctx)
		if err != nil {
			return err
		}
		if err := old.refusedUnder(ctx, moment, old.fence, before); err != nil {
			return err
		}
		switch moment {
		case "right after the take-over":
			err = now.advance(ctx, 1)
		case "after the new owner's commit":
			err = now.s.Release(ctx, now.key, now.fence)
		}
		if err != nil {
			return failf("the new owner: want success, got %w", err)
		}
	}
	return nil
}

func sameRunAgain(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("again"))
	if err != nil {
		return err
	}
	old := a.fence
	if err := a.acquire(ctx, store.Claim{Owner: old.Owner, Run: old.Run, Force: true}); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		wantEqual("the generation is a new one", a.fence.Generation != old.Generation, true),
		a.refusedUnder(ctx, "under the same run's older fence", old, before),
		a.advance(ctx, 1),
	)
}

func anyHandle(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("shared fence"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 1); err != nil {
		return err
	}
	a.s = other
	if err := a.advance(ctx, 2); err != nil {
		return failf("through another handle: %w", err)
	}
	a.s = s
	return a.advance(ctx, 1)
}

func olderRevision(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("behind"))
	if err != nil {
		return err
	}
	first := a.mark
	if err := a.advance(ctx, 3); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	var bad []error
	for _, after := range []store.Mark{first, {Birth: first.Birth, Revision: first.Revision + 1}, {Birth: first.Birth, Revision: a.mark.Revision - 1}, {Birth: first.Birth}} {
		c := a.commit()
		c.After = after
		_, err := other.Commit(ctx, a.key, a.fence, c)
		at := fmt.Sprintf("a commit on revision %d of %d", after.Revision, a.mark.Revision)
		bad = append(bad, wantKind(at, err, store.ErrConflict),
			wantEqual(at+": current revision in the error", asError(err).Revision, a.mark.Revision),
			expectUntouched(ctx, s, at, a.key, before))
	}
	return errors.Join(bad...)
}

func newerRevision(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("ahead"))
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
	now := a.mark.Revision
	var bad []error
	for _, rev := range []uint64{now + 1, now + 1000, now + 1<<16, now + 1<<32, 1<<53 + now, 1 << 63, 1<<63 + now, math.MaxUint64, math.MaxInt64} {
		c := a.commit()
		c.After.Revision, c.After.Chain = rev, ""
		_, err := s.Commit(ctx, a.key, a.fence, c)
		at := fmt.Sprintf("a commit on revision %d of %d", rev, now)
		bad = append(bad, wantKind(at, err, store.ErrRegressed), expectUntouched(ctx, s, at, a.key, before))
	}
	return errors.Join(bad...)
}

// largeRevisions needs a record at a revision that no test can reach by
// committing; only the harness can put one there.
func largeRevisions(ctx context.Context, e *Env) error {
	fw, ok := e.Harness.(Forwarder)
	if !ok {
		e.Note("not tried with a record above revision 2^53: the harness can't put one there (conformance.Forwarder)")
		return newerRevision(ctx, e)
	}
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("far"))
	if err != nil {
		return err
	}
	for _, rev := range []uint64{1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<63 + 1} {
		if err := fw.Forward(ctx, a.key, rev); err != nil {
			return failf("the harness puts the record at revision %d: %w", rev, err)
		}
		for _, near := range []uint64{rev - 1, rev + 1} {
			c := a.commit()
			c.After.Revision, c.After.Chain = near, ""
			_, err := s.Commit(ctx, a.key, a.fence, c)
			kind := store.ErrConflict
			if near > rev {
				kind = store.ErrRegressed
			}
			if err := wantKind(fmt.Sprintf("a commit on revision %d of %d", near, rev), err, kind); err != nil {
				return err
			}
		}
		c := a.commit()
		c.After.Revision, c.After.Chain = rev, ""
		ack, err := s.Commit(ctx, a.key, a.fence, c)
		if err := errors.Join(wantOK(fmt.Sprintf("a commit on revision %d", rev), err), wantEqual("revision of the ack", ack.Mark.Revision, rev+1)); err != nil {
			return err
		}
		r, err := s.Load(ctx, a.key)
		if err := errors.Join(wantOK("load", err), wantEqual("revision as loaded", r.Mark.Revision, rev+1)); err != nil {
			return err
		}
	}
	return nil
}
