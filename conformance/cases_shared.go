package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/loophost/loophost/host/store"
)

func sharedCases() []Case {
	return []Case{
		core("S-2/shared-kind", "Records of a shared kind commit with an empty fence, or one that has only the birth; birth and revision must still be equal.", sharedKind),
		core("S-2/shared-kind-has-no-owner", "A record of a shared kind can't be acquired, renewed or released.", sharedNoOwner),
		core("S-2/shared-kind-delete", "A record of a shared kind is deleted under its birth, and only under it.", sharedDelete),
	}
}

func sharedKind(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.SharedKey("scope"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 1); err != nil {
		return failf("under the birth alone: %w", err)
	}
	b := &actor{e: e, s: other, key: a.key, mark: a.mark, n: 100}
	if err := b.advance(ctx, 1); err != nil {
		return failf("a second writer, under an empty fence: %w", err)
	}
	b.fence = a.fence
	before, err := b.look(ctx)
	if err != nil {
		return err
	}
	_, stale := a.send(ctx, a.commit())
	bad := []error{wantKind("the first writer on the older revision", stale, store.ErrConflict), wantEqual("revision in the error", asError(stale).Revision, b.mark.Revision)}
	try := func(what string, kind error, f store.Fence, change func(*store.Commit)) {
		c := b.commit()
		change(&c)
		_, err := other.Commit(ctx, b.key, f, c)
		bad = append(bad, wantKind(what, err, kind), expectUntouched(ctx, s, what, b.key, before))
	}
	birth := a.fence.Birth
	try("another birth in the fence", store.ErrFenced, store.Fence{Birth: birth + 1}, func(*store.Commit) {})
	try("another birth in fence and commit", store.ErrFenced, store.Fence{Birth: birth - 1}, func(c *store.Commit) { c.After.Birth-- })
	try("another birth in the commit", store.ErrFenced, a.fence, func(c *store.Commit) { c.After.Birth++ })
	try("no birth in the commit", store.ErrFenced, a.fence, func(c *store.Commit) { c.After.Birth = 0 })
	try("an owner's fence", store.ErrFenced, store.Fence{Birth: birth, Generation: e.UUID(), Owner: "o", Run: e.UUID()}, func(*store.Commit) {})
	try("a revision that is not there", store.ErrRegressed, a.fence, func(c *store.Commit) { c.After.Revision++; c.After.Chain = "" })
	a.mark = b.mark
	return errors.Join(append(bad, a.advance(ctx, 1))...)
}

func sharedNoOwner(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.SharedKey("scope"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	_, _, acquired := s.Acquire(ctx, a.key, e.claim())
	_, _, forced := s.Acquire(ctx, a.key, e.force())
	return errors.Join(
		wantKind("acquire", acquired, store.ErrUnsupported),
		wantKind("forced acquire", forced, store.ErrUnsupported),
		wantKind("renew", s.Renew(ctx, a.key, a.fence, time.Minute), store.ErrUnsupported, store.ErrFenced),
		wantKind("release", s.Release(ctx, a.key, a.fence), store.ErrUnsupported, store.ErrFenced),
		wantKind("signal", s.Signal(ctx, a.key, store.Signal{Kind: store.SignalStop, Run: e.UUID()}), store.ErrNotFound, store.ErrUnsupported),
		expectUntouched(ctx, s, "calls for an owner", a.key, before),
		a.advance(ctx, 1),
	)
}

func sharedDelete(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.SharedKey("scope"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	bad := []error{
		wantKind("delete under another birth", s.Delete(ctx, a.key, store.Fence{Birth: a.fence.Birth + 1}), store.ErrFenced),
		expectUntouched(ctx, s, "the refused delete", a.key, before),
		wantOK("delete under the birth", s.Delete(ctx, a.key, a.fence)),
	}
	_, err = s.Commit(ctx, a.key, a.fence, a.commit())
	bad = append(bad, wantKind("commit after the delete", err, store.ErrNotFound))
	again, err := e.create(ctx, s, a.key)
	if err != nil {
		return errors.Join(append(bad, err)...)
	}
	_, err = s.Commit(ctx, a.key, a.fence, a.commit())
	return errors.Join(append(bad,
		wantEqual("the new birth is later", again.fence.Birth > a.fence.Birth, true),
		wantKind("a commit of the deleted birth", err, store.ErrFenced),
		again.advance(ctx, 1))...)
}
