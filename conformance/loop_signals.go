package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// poll is how often an owner looks for signals in the cases about them; a store
// that wakes its owners needs none of it.
const poll = 20 * time.Millisecond

func signalLoopCases() []Case {
	return []Case{
		inLoop("S-13/run-cancelled-in-the-provider", "A cancel that is posted through another handle ends a hanging provider call, and the loop is cancelled.", cancelInProvider),
		inLoop("S-13/run-cancelled-in-a-tool", "A cancel that is posted through another handle ends a running tool, whose result is unknown, in the commit of the ending.", cancelInTool),
		inLoop("S-13/run-stopped-in-a-tool", "A stop that is posted through another handle while a tool runs lets it drain, and admits nothing more.", stopInTool),
		inLoop("S-13/run-stopped-by-an-ack", "A stop that was posted before an acknowledgement counts at the next admission, also where the store wakes nobody.", stopByAck),
		inLoop("S-13/run-stopped-in-a-wait", "A stop ends the wait for the next attempt of a provider call at once.", stopInWait),
		inLoop("S-13/run-over", "A signal to a run that is over is refused, and the next run does not get it.", signalAfterEnd),
	}
}

func cancelInProvider(ctx context.Context, e *Env) error {
	rig, s, done, err := e.opened(ctx, "provider", poll)
	if err != nil {
		return err
	}
	defer done()
	g := newGate()
	defer g.open()
	m := &model{answer: func(ctx context.Context, n int) (pluginapi.Message, error) {
		return pluginapi.Message{}, g.passUnless(ctx)
	}}
	run := start(ctx, s, rig.spec(m, 2, 2))
	if err := g.wait(ctx, "the provider call"); err != nil {
		return err
	}
	posted, err := rig.post(ctx, store.SignalCancel)
	if err := errors.Join(err, run.end(ctx)); err != nil {
		return err
	}
	took := time.Since(posted)
	if !errors.Is(run.err, host.ErrCancelled) {
		return failf("the run: want %w, got %w", host.ErrCancelled, orNone(run.err))
	}
	return errors.Join(
		wantEqual("the run heard of it within "+soon.String(), took < soon, true),
		wantLoop("memory", s.Snapshot().Head, loop.Cancelled, loop.RuntimeCancelled, counts{1, 0, 1}),
		wantEqual("reason", s.Snapshot().Head.Loop.Reason, "posted"),
		rig.wantStored(ctx, "the store", s.Snapshot().Head),
		wantEqual("Cancelled events", rig.count(host.EventCancelled), 1),
		wantEqual("Complete events", rig.count(host.EventComplete), 0),
	)
}

func cancelInTool(ctx context.Context, e *Env) error {
	rig, s, done, err := e.opened(ctx, "tool", poll)
	if err != nil {
		return err
	}
	defer done()
	g := newGate()
	defer g.open()
	spec := rig.spec(&model{answer: asking}, 1, 2)
	spec.Tools = []plugin.Tool{workTool(new(counter), g.passUnless)}
	run := start(ctx, s, spec)
	if err := g.wait(ctx, "the tool"); err != nil {
		return err
	}
	_, err = rig.post(ctx, store.SignalCancel)
	if err := errors.Join(err, run.end(ctx)); err != nil {
		return err
	}
	messages, err := rig.messages(ctx)
	if err != nil {
		return err
	}
	last := messages[len(messages)-1]
	if last.Result == nil {
		return failf("the last message: want the tool's result, got %+v", last)
	}
	return errors.Join(
		wantLoop("memory", s.Snapshot().Head, loop.Cancelled, loop.RuntimeCancelled, counts{1, 0, 1}),
		rig.wantStored(ctx, "the store", s.Snapshot().Head),
		wantEqual("the tool's result", last.Result.Status, pluginapi.ResultUnknown),
		wantEqual("commits (start, admission, before tools, ending)", rig.faulty.Count(OpCommit), 4),
		rig.wantOnceEach(ctx),
	)
}

func stopInTool(ctx context.Context, e *Env) error {
	rig, s, done, err := e.opened(ctx, "tool", poll)
	if err != nil {
		return err
	}
	defer done()
	g := newGate()
	defer g.open()
	m := &model{answer: asking}
	heard := make(chan struct{})
	spec := rig.spec(m, 1, 5)
	spec.Tools = []plugin.Tool{workTool(new(counter), func(context.Context) error {
		g.pass()
		return nil
	})}
	spec.Observer = func(ev host.Event) {
		rig.observe(ev)
		if ev.Type == host.EventStopRequested {
			close(heard)
		}
	}
	run := start(ctx, s, spec)
	if err := g.wait(ctx, "the tool"); err != nil {
		return err
	}
	_, err = rig.post(ctx, store.SignalStop)
	if err == nil {
		select {
		case <-heard:
		case <-time.After(soon):
			err = failf("the run: want it to hear of the stop within %s", soon)
		}
	}
	g.open()
	if err := errors.Join(err, run.end(ctx)); err != nil {
		return err
	}
	messages, err := rig.messages(ctx)
	if err != nil {
		return err
	}
	last := messages[len(messages)-1]
	if last.Result == nil {
		return failf("the last message: want the tool's result, got %+v", last)
	}
	return errors.Join(
		wantOK("the run", run.err),
		wantEqual("provider calls", m.count(), 1),
		wantEqual("the tool's result", last.Result.Status, pluginapi.ResultOK),
		wantLoop("memory", s.Snapshot().Head, loop.Stopped, loop.RuntimeCompleted, counts{1, 0, 1}),
		wantEqual("reason code", s.Snapshot().Head.Loop.ReasonCode, loop.ReasonOperatorStop),
		rig.wantStored(ctx, "the store", s.Snapshot().Head),
	)
}

// deaf hides a store's ability to wake its owners.
type deaf struct{ store.Store }

func stopByAck(ctx context.Context, e *Env) error {
	rig, err := e.loop(ctx, "ack", never)
	if err != nil {
		return err
	}
	rig.host, err = host.New(host.Config{Store: deaf{rig.faulty.Store()}, Owner: "conformance", SignalPoll: never})
	if err != nil {
		return err
	}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	m := &model{answer: func(_ context.Context, n int) (pluginapi.Message, error) {
		if _, err := rig.post(ctx, store.SignalStop); err != nil {
			return pluginapi.Message{}, err
		}
		return direct(ctx, n)
	}}
	spec := rig.spec(m, 3, 3)
	spec.Hooks = []plugin.Hook{afterRound(new(counter), goOn)} // so that the round's end is a commit of its own
	_, err = s.Run(ctx, spec)
	return errors.Join(
		wantOK("the run", err),
		wantEqual("provider calls", m.count(), 1),
		wantLoop("memory", s.Snapshot().Head, loop.Stopped, loop.RuntimeCompleted, counts{1, 1, 1}),
		wantEqual("reason", s.Snapshot().Head.Loop.Reason, "posted"),
		rig.wantStored(ctx, "the store", s.Snapshot().Head),
	)
}

func stopInWait(ctx context.Context, e *Env) error {
	rig, s, done, err := e.opened(ctx, "wait", poll)
	if err != nil {
		return err
	}
	defer done()
	m := &model{answer: func(context.Context, int) (pluginapi.Message, error) {
		return pluginapi.Message{}, &pluginapi.Failure{Kind: pluginapi.FailRateLimited, Message: "later", RetryAfterMS: never.Milliseconds() / 10}
	}}
	waits := make(chan struct{})
	spec := rig.spec(m, 2, 2)
	spec.Observer = func(ev host.Event) {
		rig.observe(ev)
		if ev.Type == host.EventRetryScheduled {
			close(waits)
		}
	}
	run := start(ctx, s, spec)
	select {
	case <-waits:
	case <-ctx.Done():
		return failf("want the run to wait for its next attempt, got %w", context.Cause(ctx))
	}
	posted, err := rig.post(ctx, store.SignalStop)
	if err := errors.Join(err, run.end(ctx)); err != nil {
		return err
	}
	return errors.Join(
		wantOK("the run", run.err),
		wantEqual("the wait ended within "+soon.String(), time.Since(posted) < soon, true),
		wantEqual("provider calls", m.count(), 1),
		wantLoop("memory", s.Snapshot().Head, loop.Stopped, loop.RuntimeCompleted, counts{1, 0, 1}),
		rig.wantStored(ctx, "the store", s.Snapshot().Head),
	)
}

func signalAfterEnd(ctx context.Context, e *Env) error {
	rig, s, done, err := e.opened(ctx, "over", poll)
	if err != nil {
		return err
	}
	defer done()
	if _, err := s.Run(ctx, rig.spec(&model{answer: direct}, 1, 1)); err != nil {
		return failf("the run: want success, got %w", err)
	}
	late := s.Stop("late")
	if !errors.Is(late, host.ErrNotRunning) {
		return failf("a stop after the run: want %w, got %w", host.ErrNotRunning, orNone(late))
	}
	run := s.ExecutionID()
	if err := s.Close(ctx); err != nil {
		return failf("close: %w", err)
	}
	_, err = rig.host.Stop(ctx, rig.id, "later")
	if !errors.Is(err, host.ErrNotRunning) {
		return failf("a stop of a session without a run: want %w, got %w", host.ErrNotRunning, orNone(err))
	}
	posted := rig.other.Signal(ctx, rig.key(), store.Signal{Kind: store.SignalCancel, Run: run, Time: time.Now()})
	next, closeNext, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer closeNext()
	_, err = next.Run(ctx, rig.spec(&model{answer: direct}, 1, 1))
	return errors.Join(wantKind("a cancel of the run that is over", posted, store.ErrNotFound), wantOK("the next run", err))
}

// opened is a rig with its session open.
func (e *Env) opened(ctx context.Context, id string, poll time.Duration) (*loopRig, *host.Session, func(), error) {
	rig, err := e.loop(ctx, id, poll)
	if err != nil {
		return nil, nil, nil, err
	}
	s, done, err := rig.open(ctx)
	return rig, s, done, err
}

// post posts a signal to the session's run through the other handle, as any process may.
func (r *loopRig) post(ctx context.Context, kind store.SignalKind) (time.Time, error) {
	rec, err := r.other.Load(ctx, r.key())
	if err != nil {
		return time.Time{}, failf("load the session: %w", err)
	}
	now := time.Now()
	err = r.other.Signal(ctx, r.key(), store.Signal{Kind: kind, Run: rec.Fence.Run, Reason: "posted", Time: now})
	return now, wantOK("post a signal", err)
}
