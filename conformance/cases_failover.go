package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/host/store"
)

func failoverCases() []Case {
	return []Case{
		inFailover("S-1/failover-keeps-commits", "What was acknowledged by as many replicas as a failover needs is there after it: head, log, revision, chain.", failoverKeepsCommits),
		inFailover("S-1/failover-under-way", "Commits that are under way while the node dies are whole or absent, and repeated they are there once, in order.", failoverUnderWay),
		inFailover("S-2/failover-keeps-the-fence", "After a failover the owner writes on under its fence, and whoever it fenced stays out.", failoverKeepsTheFence),
		inFailover("S-3/failover-keeps-commit-ids", "A commit that is repeated after a failover gets its original ack, and other content under its id is refused.", failoverKeepsCommitIDs),
		inFailover("S-4/failover-resolves", "After a failover a commit from before it is resolved as applied where it was, and one that was never sent can never apply.", failoverResolves),
		inFailover("S-8/failover-keeps-the-lease", "A lease that runs keeps others out after a failover too, and a forced take-over still fences its owner.", failoverKeepsTheLease, NeedLeases),
		inFailover("S-10/failover-lists", "After a failover the list has the records that there are, and no others.", failoverLists),
		inFailover("S-11/failover-keeps-long-logs", "A log of several pages is read whole after a failover.", failoverKeepsLongLogs),
		inFailover("S-12/failover-keeps-tombstones", "After a failover a deleted birth stays out, and the next birth is a later one.", failoverKeepsTombstones),
		inFailover("S-13/failover-keeps-signals", "A signal that was posted before a failover reaches its run with the next ack after it.", failoverKeepsSignals),
	}
}

func failoverKeepsCommits(ctx context.Context, e *Env, n nodes) error {
	a, err := n.owner(ctx, e.Key("kept"))
	if err != nil {
		return err
	}
	if err := n.advance(ctx, a, 3); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	if err := n.failOver(ctx); err != nil {
		return err
	}
	if err := expectUntouched(ctx, n.s, "the failover", a.key, before); err != nil {
		return err
	}
	fresh, err := e.openPatient(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		expectUntouched(ctx, fresh, "the failover, through a new handle", a.key, before),
		n.advance(ctx, a, 2),
	)
}

// underWay is how many commits are made before the node dies, and how many after it.
const underWay = 5

func failoverUnderWay(ctx context.Context, e *Env, n nodes) error {
	a, err := n.owner(ctx, e.Key("under way"))
	if err != nil {
		return err
	}
	made, stop, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var writer error
	go func() {
		defer close(ended)
		for {
			if writer = n.advance(ctx, a, 1); writer != nil {
				return
			}
			select {
			case made <- struct{}{}:
			case <-stop:
				return
			}
		}
	}()
	some := func() { // or none any more: the writer says why
		for range underWay {
			select {
			case <-made:
			case <-ended:
			}
		}
	}
	some()
	err = n.failOver(ctx)
	some()
	close(stop)
	<-ended
	if err := errors.Join(err, writer); err != nil {
		return err
	}
	after, err := a.look(ctx)
	if err != nil {
		return err
	}
	bad := []error{
		wantEqual("mark", after.record.Mark, a.mark),
		wantBytes("head", after.record.Head, a.last.Head),
		wantEqual("entries", len(after.log), a.n),
	}
	for i, en := range after.log {
		bad = append(bad, wantBytes(fmt.Sprintf("entry %d", i+1), en.Data, fmt.Appendf(nil, `{"entry":%d}`, i+1)))
	}
	return errors.Join(bad...)
}

func failoverKeepsTheFence(ctx context.Context, e *Env, n nodes) error {
	old, err := n.owner(ctx, e.Key("fenced"))
	if err != nil {
		return err
	}
	now, err := old.rival(ctx, n.s)
	if err != nil {
		return err
	}
	if err := n.advance(ctx, now, 1); err != nil {
		return err
	}
	if err := n.failOver(ctx); err != nil {
		return err
	}
	before, err := now.look(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		old.refusedUnder(ctx, "after the failover", old.fence, before),
		n.advance(ctx, now, 2),
	)
}

func failoverKeepsCommitIDs(ctx context.Context, e *Env, n nodes) error {
	a, err := n.owner(ctx, e.Key("repeated"))
	if err != nil {
		return err
	}
	if err := n.advance(ctx, a, 1); err != nil {
		return err
	}
	c, first := a.last, a.ack
	if err := n.failOver(ctx); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	again, err := a.send(ctx, c)
	bad := []error{wantOK("the commit again", err), wantEqual("mark", again.Mark, first.Mark), wantEqual("log length", again.LogLength, first.LogLength)}
	other := c
	other.Head = append(bytes.Clone(c.Head), ' ')
	_, err = a.send(ctx, other)
	return errors.Join(append(bad,
		wantKind("other content under its id", err, store.ErrCommitIDReused),
		expectUntouched(ctx, n.s, "both", a.key, before),
		n.advance(ctx, a, 1),
	)...)
}

func failoverResolves(ctx context.Context, e *Env, n nodes) error {
	a, err := n.owner(ctx, e.Key("resolved"))
	if err != nil {
		return err
	}
	if err := n.advance(ctx, a, 1); err != nil {
		return err
	}
	if err := n.failOver(ctx); err != nil {
		return err
	}
	out, err := n.s.Resolve(ctx, a.key, a.fence, a.last.ID)
	if err := errors.Join(
		wantOK("resolve a commit from before the failover", err),
		wantEqual("applied", out.Applied, true), wantEqual("its mark", out.Ack.Mark, a.ack.Mark),
	); err != nil {
		return err
	}
	unsent := a.commit()
	out, err = n.s.Resolve(ctx, a.key, a.fence, unsent.ID)
	if err := errors.Join(wantOK("resolve a commit that was not sent", err), wantEqual("applied", out.Applied, false)); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	_, err = a.send(ctx, unsent)
	if err := errors.Join(
		wantKind("the commit that can never apply", err, store.ErrConflict, store.ErrCommitIDReused),
		expectUntouched(ctx, n.s, "it", a.key, before),
	); err != nil {
		return err
	}
	a.mark, a.n = out.Ack.Mark, a.n-1
	return n.advance(ctx, a, 1)
}

func failoverKeepsTheLease(ctx context.Context, e *Env, n nodes) error {
	a, err := e.create(ctx, n.s, e.Key("leased"))
	if err != nil {
		return err
	}
	claim := e.claim()
	claim.TTL = time.Hour
	if err := errors.Join(a.acquire(ctx, claim), n.advance(ctx, a, 1)); err != nil {
		return err
	}
	if err := n.failOver(ctx); err != nil {
		return err
	}
	_, _, err = n.s.Acquire(ctx, a.key, e.claim())
	if err := errors.Join(
		wantKind("a claim beside a lease that runs", err, store.ErrBusy),
		wantEqual("the holder that it names", asError(err).Holder.Fence, a.fence),
		n.advance(ctx, a, 1),
	); err != nil {
		return err
	}
	now, err := a.rival(ctx, n.s)
	if err != nil {
		return err
	}
	before, err := now.look(ctx)
	if err != nil {
		return err
	}
	return errors.Join(a.refusedUnder(ctx, "after the take-over", a.fence, before), n.advance(ctx, now, 1))
}

func failoverLists(ctx context.Context, e *Env, n nodes) error {
	want := map[string]bool{}
	var last *actor
	for i := range 5 {
		a, err := n.owner(ctx, e.Key(fmt.Sprintf("record %d", i)))
		if err != nil {
			return err
		}
		want[a.key.ID], last = true, a
	}
	if err := wantOK("delete", n.s.Delete(ctx, last.key, last.fence)); err != nil {
		return err
	}
	delete(want, last.key.ID)
	if _, err := n.owner(ctx, e.Key("and one more")); err != nil { // it goes to the heir after the delete
		return err
	}
	want["and one more"] = true
	if err := n.failOver(ctx); err != nil {
		return err
	}
	page, err := n.s.List(ctx, store.Query{Kind: e.kind})
	if err != nil {
		return err
	}
	var bad []error
	for _, it := range page.Items {
		if id := it.Record.Key.ID; !want[id] {
			bad = append(bad, failf("the list has %q, which is not there or was listed before", id))
		} else {
			delete(want, id)
		}
	}
	for id := range want {
		bad = append(bad, failf("want %q in the list, got a list without it", id))
	}
	return errors.Join(bad...)
}

func failoverKeepsLongLogs(ctx context.Context, e *Env, n nodes) error {
	a, err := n.owner(ctx, e.Key("long"))
	if err != nil {
		return err
	}
	const commits, entries = 6, 100 // more than a page
	for i := range commits {
		var data [][]byte
		for j := range entries {
			data = append(data, fmt.Appendf(nil, `{"of":%d,"entry":%d}`, i, j))
		}
		if _, err := a.send(ctx, n.copied(a.with([]byte(`{}`), data...))); err != nil {
			return failf("commit %d entries: %w", entries, err)
		}
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	if err := n.failOver(ctx); err != nil {
		return err
	}
	return expectUntouched(ctx, n.s, "the failover", a.key, before)
}

func failoverKeepsTombstones(ctx context.Context, e *Env, n nodes) error {
	old, err := n.owner(ctx, e.Key("deleted"))
	if err != nil {
		return err
	}
	if err := wantOK("delete", n.s.Delete(ctx, old.key, old.fence)); err != nil {
		return err
	}
	now, err := n.owner(ctx, old.key)
	if err != nil {
		return err
	}
	if err := wantOK("delete again", n.s.Delete(ctx, now.key, now.fence)); err != nil {
		return err
	}
	if _, err := n.owner(ctx, e.Key("written after it")); err != nil {
		return err
	}
	if err := n.failOver(ctx); err != nil {
		return err
	}
	_, err = now.send(ctx, now.commit())
	if err := wantKind("a commit of the deleted record", err, store.ErrNotFound); err != nil {
		return err
	}
	third, err := e.create(ctx, n.s, now.key)
	if err != nil {
		return err
	}
	if third.mark.Birth <= now.mark.Birth {
		return failf("the birth after the failover: want one later than %d, got %d", now.mark.Birth, third.mark.Birth)
	}
	if err := third.acquire(ctx, e.claim()); err != nil {
		return err
	}
	before, err := third.look(ctx)
	if err != nil {
		return err
	}
	return errors.Join(now.refusedUnder(ctx, "of the deleted birth", now.fence, before), n.advance(ctx, third, 1))
}

func failoverKeepsSignals(ctx context.Context, e *Env, n nodes) error {
	a, err := n.owner(ctx, e.Key("signalled"))
	if err != nil {
		return err
	}
	sig := store.Signal{Kind: store.SignalStop, Run: a.fence.Run, Reason: "enough"}
	if err := wantOK("signal", n.s.Signal(ctx, a.key, sig)); err != nil {
		return err
	}
	if err := n.advance(ctx, a, 1); err != nil {
		return err
	}
	want := a.ack.Signals
	if len(want) != 1 {
		return failf("signals with the ack before the failover: want one, got %v", want)
	}
	if err := n.failOver(ctx); err != nil {
		return err
	}
	if err := n.advance(ctx, a, 1); err != nil {
		return err
	}
	if len(a.ack.Signals) != 1 {
		return failf("signals with the ack after the failover: want %v, got %v", want, a.ack.Signals)
	}
	return wantEqual("the signal", a.ack.Signals[0], want[0])
}
