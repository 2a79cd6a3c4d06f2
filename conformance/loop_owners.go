package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

func ownerCases() []Case {
	return []Case{
		inLoop("M-6/paused-in-the-provider", "An owner that was taken over while its provider call hung ends fenced: the successor's record stays byte-identical, and one of the two completes.", pausedInProvider),
		inLoop("M-6/paused-in-a-tool", "An owner that was taken over while a tool ran ends fenced, and the tool's result is unknown to the successor.", pausedInTool),
		inLoop("M-6/between-boundary-and-mirror", "An owner that was taken over between boundary and final mirror ends fenced, without a Complete event.", takenOverAtMirror),
		inLoop("M-6/at-the-boundary", "An owner that was taken over right before its boundary checkpoint ends fenced, without a Complete event.", takenOverAtBoundary),
		{
			ID: "M-6/lease-expired", Profile: ProfileLoop, Needs: []Need{NeedLeases},
			Sentence: "An owner whose lease expired while it was paused, and whose session another one acquired, ends fenced.", Run: leaseExpired,
		},
		inLoop("M-6/deleted", "An owner whose session was deleted and made again writes nothing to the new one.", deletedAndRecreated),
	}
}

// succeed takes the session of r over, runs a new loop in it to its end, and
// returns the record as it is then.
func (r *loopRig) succeed(ctx context.Context) (snapshot, error) {
	if _, err := r.host.TakeOver(ctx, r.id, "the owner hangs"); err != nil {
		return snapshot{}, failf("take over: want success, got %w", err)
	}
	return r.completeAnew(ctx)
}

// completeAnew runs a new loop in the session and returns the record as it is then.
func (r *loopRig) completeAnew(ctx context.Context) (snapshot, error) {
	s, err := r.host.Open(ctx, host.OpenRequest{ID: r.id})
	if err != nil {
		return snapshot{}, failf("the successor opens the session: want success, got %w", err)
	}
	m := &model{answer: func(_ context.Context, n int) (pluginapi.Message, error) {
		return pluginapi.Message{Text: fmt.Sprintf("the successor's answer %d", n)}, nil
	}}
	spec := r.spec(m, 1, 1)
	spec.NewLoop = true
	_, err = s.Run(ctx, spec)
	if err := errors.Join(wantOK("the successor's run", err), wantOK("the successor's close", s.Close(ctx))); err != nil {
		return snapshot{}, err
	}
	return look(ctx, r.other, r.key())
}

// wantFenced checks how the old owner ended.
func wantFenced(ctx context.Context, first, second *loopRig, run *running, s *host.Session, after snapshot) error {
	bad := []error{
		wantKind("the old owner's run", run.err, store.ErrFenced),
		wantEqual("fenced events of the old owner", first.count(host.EventFenced), 1),
		wantEqual("Complete events of both", first.count(host.EventComplete)+second.count(host.EventComplete), 1),
		wantEqual("terminal events of the old owner", first.count(host.EventFailed)+first.count(host.EventCancelled)+first.count(host.EventComplete), 0),
		expectUntouched(ctx, second.other, "the old owner's end", first.key(), after),
		wantKind("an explicit checkpoint of the old owner", s.Checkpoint(ctx), store.ErrFenced),
		wantKind("settling by the old owner", s.Finish(ctx, s.Expected(), loop.OutcomeFailed, loop.ReasonHost, "late"), store.ErrFenced),
		wantOK("close of the old owner", s.Close(ctx)),
		expectUntouched(ctx, second.other, "the old owner's last words", first.key(), after),
	}
	return errors.Join(bad...)
}

// two is a first owner and the rig of its successor.
func (e *Env) two(ctx context.Context, id string) (first, second *loopRig, err error) {
	if first, err = e.loop(ctx, id, never); err != nil {
		return nil, nil, err
	}
	second, err = e.second(ctx, first)
	return first, second, err
}

func pausedInProvider(ctx context.Context, e *Env) error {
	return pausedOwner(ctx, e, "provider", func(r *loopRig, g *gate) host.RunSpec {
		return r.spec(&model{answer: func(ctx context.Context, n int) (pluginapi.Message, error) {
			g.pass()
			return direct(ctx, n)
		}}, 1, 1)
	}, func(ctx context.Context, r *loopRig) (snapshot, error) { return r.succeed(ctx) }, nil)
}

func pausedInTool(ctx context.Context, e *Env) error {
	return pausedOwner(ctx, e, "tool", func(r *loopRig, g *gate) host.RunSpec {
		spec := r.spec(&model{answer: asksThenAnswers}, 1, 2)
		spec.Tools = []plugin.Tool{workTool(new(counter), func(context.Context) error {
			g.pass()
			return nil
		})}
		return spec
	}, func(ctx context.Context, r *loopRig) (snapshot, error) { return r.succeed(ctx) },
		func(ctx context.Context, r *loopRig) error {
			messages, err := r.messages(ctx)
			if err != nil {
				return err
			}
			for _, m := range messages {
				if m.Result != nil && m.Result.CallID == "call-1" {
					return wantEqual("the status of the tool's result", m.Result.Status, pluginapi.ResultUnknown)
				}
			}
			return failf("want a result for the tool call that was under way, got none in %+v", messages)
		})
}

// pausedOwner lets a first owner stand at a gate while a second one succeeds it.
func pausedOwner(ctx context.Context, e *Env, id string, spec func(*loopRig, *gate) host.RunSpec, succeed func(context.Context, *loopRig) (snapshot, error), check func(context.Context, *loopRig) error) error {
	first, second, err := e.two(ctx, id)
	if err != nil {
		return err
	}
	s, done, err := first.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	g := newGate()
	defer g.open()
	run := start(ctx, s, spec(first, g))
	if err := g.wait(ctx, "the effect that hangs"); err != nil {
		return err
	}
	after, err := succeed(ctx, second)
	g.open()
	if err := errors.Join(err, run.end(ctx)); err != nil {
		return err
	}
	bad := []error{wantFenced(ctx, first, second, run, s, after), second.wantOnceEach(ctx)}
	if check != nil {
		bad = append(bad, check(ctx, second))
	}
	return errors.Join(bad...)
}

// pausing is a store whose commits wait for a function first, as a process that
// is paused right before one does.
type pausing struct {
	store.Store
	before func(ctx context.Context, c store.Commit)
}

// Commit implements store.Store.
func (p pausing) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	p.before(ctx, c)
	return p.Store.Commit(ctx, key, f, c)
}

func takenOverAtMirror(ctx context.Context, e *Env) error {
	for _, row := range []struct {
		name   string
		hook   func() pluginapi.Decision
		status loop.Status
		mirror bool
	}{
		{"completed", nil, loop.Completed, true},
		{"stopped", stopHere, loop.Stopped, true},
	} {
		if err := takenOverAt(ctx, e, row.name, row.hook, atStatus(row.status, row.mirror)); err != nil {
			return failf("%s: %w", row.name, err)
		}
	}
	return nil
}

func takenOverAtBoundary(ctx context.Context, e *Env) error {
	return errors.Join(
		takenOverAt(ctx, e, "completed", nil, atStatus(loop.Finalizing, false)),
		takenOverAt(ctx, e, "stopped", stopHere, atStatus(loop.Stopped, false)),
	)
}

func takenOverAt(ctx context.Context, e *Env, id string, hook func() pluginapi.Decision, at func(host.Head, []host.Entry) bool) error {
	first, second, err := e.two(ctx, id)
	if err != nil {
		return err
	}
	var after snapshot
	taken := failf("want the old owner to reach the checkpoint before which it is taken over, but it did not")
	match := onCommit(at)
	st := pausing{first.faulty.Store(), func(ctx context.Context, c store.Commit) {
		if match(Call{Commit: c}) {
			after, taken = second.succeed(ctx)
		}
	}}
	if first.host, err = host.New(host.Config{Store: st, Owner: "conformance", SignalPoll: never}); err != nil {
		return err
	}
	s, done, err := first.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	spec := first.spec(&model{answer: direct}, 1, 1)
	if hook != nil {
		spec.Iterations, spec.Rounds = 2, 2
		spec.Hooks = []plugin.Hook{afterRound(new(counter), hook)}
	}
	run := start(ctx, s, spec)
	if err := errors.Join(run.end(ctx), taken); err != nil {
		return err
	}
	return wantFenced(ctx, first, second, run, s, after)
}

// shortLease is how long a case waits for a lease to expire where the harness
// can't move the store's clock.
const shortLease = 2 * time.Second

func leaseExpired(ctx context.Context, e *Env) error {
	first, second, err := e.two(ctx, "expired")
	if err != nil {
		return err
	}
	// A paused owner renews nothing.
	first.faulty.Inject(Fault{Op: OpRenew, Times: -1})
	ttl := shortLease
	clock, moves := e.Harness.(LeaseClock)
	if moves {
		ttl = host.DefaultLeaseTTL
	}
	first.host, err = host.New(host.Config{Store: first.faulty.Store(), Owner: "conformance", SignalPoll: never, LeaseTTL: ttl, RenewEvery: shortLease / 10})
	if err != nil {
		return err
	}
	s, done, err := first.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	g := newGate()
	defer g.open()
	run := start(ctx, s, first.spec(&model{answer: func(ctx context.Context, n int) (pluginapi.Message, error) {
		g.pass()
		return direct(ctx, n)
	}}, 1, 1))
	if err := g.wait(ctx, "the provider call"); err != nil {
		return err
	}
	early := second.tryOpen(ctx)
	if moves {
		clock.AdvanceLeases(2 * ttl)
	}
	after, taken := second.afterExpiry(ctx)
	first.faulty.Heal()
	g.open()
	if err := errors.Join(wantKind("a start before the lease expired", early, store.ErrBusy), taken, run.end(ctx)); err != nil {
		return err
	}
	return wantFenced(ctx, first, second, run, s, after)
}

// afterExpiry runs a new loop in the session as soon as its owner's lease allows it.
func (r *loopRig) afterExpiry(ctx context.Context) (snapshot, error) {
	tick := time.NewTicker(shortLease / 20)
	defer tick.Stop()
	for {
		after, err := r.completeAnew(ctx)
		if !errors.Is(err, store.ErrBusy) {
			return after, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return after, failf("want the lease to expire, got %w", err)
		}
	}
}

func deletedAndRecreated(ctx context.Context, e *Env) error {
	first, second, err := e.two(ctx, "deleted")
	if err != nil {
		return err
	}
	s, done, err := first.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	g := newGate()
	defer g.open()
	m := &model{answer: func(ctx context.Context, n int) (pluginapi.Message, error) {
		g.pass()
		return direct(ctx, n)
	}}
	run := start(ctx, s, first.spec(m, 1, 1))
	if err := g.wait(ctx, "the provider call"); err != nil {
		return err
	}
	_, err = second.host.TakeOver(ctx, second.id, "it goes away")
	if err == nil {
		err = second.host.Delete(ctx, second.id)
	}
	var after snapshot
	if err == nil {
		after, err = second.completeAnew(ctx)
	}
	g.open()
	if err := errors.Join(err, run.end(ctx)); err != nil {
		return err
	}
	return wantFenced(ctx, first, second, run, s, after)
}
