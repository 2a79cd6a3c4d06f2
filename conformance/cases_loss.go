package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

func lossCases() []Case {
	return []Case{
		inLoss("S-2/lossy-failover-brings-old-numbers-back", "An owner that saw revisions which a failover lost is fenced by whoever made them anew, though the numbers are equal.", oldNumbersFenced),
		inLoss("S-2/lossy-failover-loses-an-owner", "An owner whose acquisition a failover lost can't write, and the owner before it can.", ownerLost),
		inLoss("S-6/lossy-failover-is-noticed", "An owner whose acknowledged commits a failover lost is told that data was lost, and nothing is written.", lossNoticed),
		inLoss("S-6/lossy-failover-is-noticed-by-a-claim", "A claim that saw what a failover lost is refused.", lossNoticedByClaim),
		inLoss("S-6/lossy-failover-and-shared-records", "A writer of a shared record that saw a revision which a failover lost is refused, though another one made that revision anew.", lossNoticedOnShared),
		inLoss("S-6/lossy-failover-loses-a-record", "A commit to a record that a failover lost makes no record.", recordLost),
	}
}

func oldNumbersFenced(ctx context.Context, e *Env, n nodes) error {
	old, err := n.owner(ctx, e.Key("old numbers"))
	if err != nil {
		return err
	}
	if err := errors.Join(n.isolate(ctx), old.advance(ctx, 2), n.failOver(ctx)); err != nil {
		return err
	}
	now, err := old.rival(ctx, n.s)
	if err != nil {
		return err
	}
	if err := n.advance(ctx, now, 2); err != nil {
		return err
	}
	if err := wantEqual("the revision that was made anew", now.mark.Revision, old.mark.Revision); err != nil {
		return err
	}
	before, err := now.look(ctx)
	if err != nil {
		return err
	}
	_, err = old.send(ctx, old.commit())
	return errors.Join(
		wantKind("a commit on numbers that came back", err, store.ErrFenced),
		expectUntouched(ctx, n.s, "it", old.key, before),
		n.advance(ctx, now, 1),
	)
}

func ownerLost(ctx context.Context, e *Env, n nodes) error {
	first, err := n.owner(ctx, e.Key("an owner lost"))
	if err != nil {
		return err
	}
	if err := n.isolate(ctx); err != nil {
		return err
	}
	second, err := first.rival(ctx, n.s)
	if err != nil {
		return err
	}
	if err := errors.Join(second.advance(ctx, 1), n.failOver(ctx)); err != nil {
		return err
	}
	before, err := first.look(ctx)
	if err != nil {
		return err
	}
	_, err = second.send(ctx, second.commit())
	return errors.Join(
		wantKind("a commit of the owner that was lost", err, store.ErrFenced),
		expectUntouched(ctx, n.s, "it", first.key, before),
		n.advance(ctx, first, 1),
	)
}

func lossNoticed(ctx context.Context, e *Env, n nodes) error {
	a, err := n.owner(ctx, e.Key("lost"))
	if err != nil {
		return err
	}
	kept, err := a.look(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(n.isolate(ctx), a.advance(ctx, 2), n.failOver(ctx)); err != nil {
		return err
	}
	var bad []error
	for i := range 2 { // the loss does not heal by asking again
		_, err = a.send(ctx, a.commit())
		bad = append(bad, wantKind(fmt.Sprintf("commit %d on what was lost", i+1), err, store.ErrRegressed))
	}
	return errors.Join(append(bad, expectUntouched(ctx, n.s, "the loss", a.key, kept))...)
}

func lossNoticedByClaim(ctx context.Context, e *Env, n nodes) error {
	a, err := n.owner(ctx, e.Key("lost and claimed"))
	if err != nil {
		return err
	}
	kept, err := a.look(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(n.isolate(ctx), a.advance(ctx, 1), n.failOver(ctx)); err != nil {
		return err
	}
	claim := e.force()
	claim.Seen = a.mark
	_, _, err = n.s.Acquire(ctx, a.key, claim)
	return errors.Join(
		wantKind("a claim that saw what was lost", err, store.ErrRegressed),
		expectUntouched(ctx, n.s, "it", a.key, kept),
	)
}

func lossNoticedOnShared(ctx context.Context, e *Env, n nodes) error {
	a, err := e.create(ctx, n.s, e.SharedKey("lost"))
	if err != nil {
		return err
	}
	if err := n.advance(ctx, a, 1); err != nil {
		return err
	}
	other := *a
	if err := errors.Join(n.isolate(ctx), a.advance(ctx, 1), n.failOver(ctx)); err != nil {
		return err
	}
	other.n = 1000
	if err := n.advance(ctx, &other, 1); err != nil {
		return err
	}
	if err := wantEqual("the revision that was made anew", other.mark.Revision, a.mark.Revision); err != nil {
		return err
	}
	before, err := other.look(ctx)
	if err != nil {
		return err
	}
	_, err = a.send(ctx, a.commit())
	return errors.Join(
		wantKind("a commit on a revision that was lost", err, store.ErrRegressed),
		expectUntouched(ctx, n.s, "it", a.key, before),
		n.advance(ctx, &other, 1),
	)
}

func recordLost(ctx context.Context, e *Env, n nodes) error {
	if err := n.isolate(ctx); err != nil {
		return err
	}
	a, err := e.owner(ctx, n.s, e.Key("a record lost"))
	if err != nil {
		return err
	}
	if err := errors.Join(a.advance(ctx, 1), n.failOver(ctx)); err != nil {
		return err
	}
	_, err = a.send(ctx, a.commit())
	after, lookErr := a.look(ctx)
	return errors.Join(
		wantKind("a commit to a record that was lost", err, store.ErrNotFound),
		lookErr, wantEqual("record absent", after.absent, true),
	)
}
