package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// gate is a place where a plugin waits until the case lets it go on.
type gate struct {
	entered chan struct{} // closed when the plugin is there
	release chan struct{} // closed by open
	once    sync.Once
}

func newGate() *gate { return &gate{entered: make(chan struct{}), release: make(chan struct{})} }

// open lets the plugin go on; a case does so before it closes its session.
func (g *gate) open() { g.once.Do(func() { close(g.release) }) }

// pass stands at the gate; the end of ctx is not looked at, as by a plugin that hangs.
func (g *gate) pass() {
	close(g.entered)
	<-g.release
}

// passUnless stands at the gate until ctx ends.
func (g *gate) passUnless(ctx context.Context) error {
	close(g.entered)
	select {
	case <-g.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits until somebody stands at the gate.
func (g *gate) wait(ctx context.Context, what string) error {
	select {
	case <-g.entered:
		return nil
	case <-ctx.Done():
		return failf("%s: want it to begin, got %w", what, context.Cause(ctx))
	}
}

// running is a run under way.
type running struct {
	result host.Result
	err    error
	ended  chan struct{}
}

// start runs spec in s beside the case.
func start(ctx context.Context, s *host.Session, spec host.RunSpec) *running {
	r := &running{ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.result, r.err = s.Run(ctx, spec)
	}()
	return r
}

// end waits for the run's end.
func (r *running) end(ctx context.Context) error {
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return failf("want the run to end, got %w", context.Cause(ctx))
	}
}

func runningCases() []Case {
	return []Case{
		inLoop("M-2/after-round-abort", "A stop raised during the provider call is durable as stopped before the after-round hook runs, and the hook's abort then fails the run in memory and in the store.", afterRoundAbort),
		inLoop("L-2/busy", "A session with a live execution is refused to a second one, which learns who holds it and changes nothing.", secondIsBusy),
		inLoop("L-5/start-is-durable", "The start is a checkpoint of its own: running, under the fence's generation, before anything is admitted.", startIsDurable),
		inLoop("L-6/admission-is-durable", "Every admission, with the objective of its iteration, is in the store when the provider is called.", admissionIsDurable),
		inLoop("L-9/message-before-tools", "The message that asks for a tool is in the store when the tool runs, and the tool's result when the next round's provider call is made.", messageBeforeTools),
		inLoop("L-11/round-is-durable", "What an after-round hook sees in memory is in the store already, byte for byte.", roundIsDurable),
		inLoop("L-25/commits", "A round costs two commits without tools and three with them; without after-round hooks its end and the next admission are one commit.", commitsPerRound),
	}
}

func afterRoundAbort(ctx context.Context, e *Env) error {
	rig, err := e.loop(ctx, "aborted", never)
	if err != nil {
		return err
	}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	g := newGate()
	defer g.open()
	m := &model{answer: func(context.Context, int) (pluginapi.Message, error) {
		g.pass()
		return pluginapi.Message{Text: "answer"}, nil
	}}
	var ran counter
	var seen error
	spec := rig.spec(m, 3, 3)
	spec.Hooks = []plugin.Hook{afterRound(&ran, func() pluginapi.Decision {
		memory := s.Snapshot().Head
		seen = errors.Join(
			wantLoop("memory, as the hook sees it", memory, loop.Stopped, loop.RuntimeFinalizing, counts{1, 1, 1}),
			rig.wantStored(ctx, "the store, as the hook sees it", memory),
		)
		return pluginapi.Decision{Action: pluginapi.Abort, Reason: "the round must not stand"}
	})}
	run := start(ctx, s, spec)
	if err := g.wait(ctx, "the provider call"); err != nil {
		return err
	}
	stopped := s.Stop("enough")
	g.open()
	if err := run.end(ctx); err != nil {
		return err
	}
	memory := s.Snapshot().Head
	if err := errors.Join(
		wantOK("stop", stopped),
		wantEqual("runs of the after-round hook", ran.count(), 1),
		seen,
		wantText("the run", run.err, "the round must not stand"),
		wantEqual("provider calls", m.count(), 1),
		wantEqual("Complete events", rig.count(host.EventComplete), 0),
		wantLoop("memory", memory, loop.Failed, loop.RuntimeFailed, counts{1, 1, 1}),
		rig.wantStored(ctx, "the store after the run", memory),
	); err != nil {
		return err
	}
	if err := s.Checkpoint(ctx); err != nil {
		return failf("an explicit checkpoint after the run: want success, got %w", err)
	}
	return errors.Join(
		wantSameLoop("memory after the explicit checkpoint", s.Snapshot().Head, memory),
		rig.wantStored(ctx, "the store after the explicit checkpoint", memory),
		rig.wantOnceEach(ctx),
	)
}

func secondIsBusy(ctx context.Context, e *Env) error {
	first, err := e.loop(ctx, "busy", never)
	if err != nil {
		return err
	}
	second, err := e.second(ctx, first)
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
	m := &model{answer: func(context.Context, int) (pluginapi.Message, error) {
		g.pass()
		return pluginapi.Message{Text: "answer"}, nil
	}}
	run := start(ctx, s, first.spec(m, 1, 1))
	if err := g.wait(ctx, "the provider call"); err != nil {
		return err
	}
	before, err := look(ctx, first.other, first.key())
	if err != nil {
		return err
	}
	busy := second.tryOpen(ctx)
	bad := []error{
		wantKind("a second start", busy, store.ErrBusy),
		wantEqual("the holder that it names", asError(busy).Holder.Fence.Run, s.ExecutionID()),
		wantKind("a delete", second.host.Delete(ctx, second.id), store.ErrBusy),
		expectUntouched(ctx, first.other, "the second start", first.key(), before),
	}
	g.open()
	bad = append(bad, run.end(ctx), wantOK("the first run", run.err), wantEqual("Complete events", first.count(host.EventComplete), 1))
	return errors.Join(bad...)
}

func startIsDurable(ctx context.Context, e *Env) error {
	rig, err := e.loop(ctx, "start", never)
	if err != nil {
		return err
	}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	var seen error
	spec := rig.spec(&model{answer: direct}, 1, 1)
	spec.Hooks = []plugin.Hook{plugin.FuncHook{
		Name: "watch", Decls: []pluginapi.HookDecl{{Point: pluginapi.BeforeRound}},
		Fn: func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
			h, err := rig.stored(ctx)
			if err == nil {
				err = errors.Join(
					wantLoop("the store before the first admission", h, loop.Running, loop.RuntimeRunning, counts{0, 0, 0}),
					wantEqual("generation", h.Loop.Generation, s.Generation()),
					wantEqual("execution", h.Runtime.ExecutionID, s.ExecutionID()),
				)
			}
			seen = err
			return goOn(), nil
		},
	}}
	_, err = s.Run(ctx, spec)
	return errors.Join(wantOK("the run", err), seen)
}

func admissionIsDurable(ctx context.Context, e *Env) error {
	rig, err := e.loop(ctx, "admission", never)
	if err != nil {
		return err
	}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	var seen []error
	m := &model{answer: func(_ context.Context, n int) (pluginapi.Message, error) {
		h, err := rig.stored(ctx)
		if err != nil {
			return pluginapi.Message{}, err
		}
		messages, err := rig.messages(ctx)
		objectives := 0
		for _, x := range messages {
			if x.Role == pluginapi.RoleUser && x.Text == "prove it" {
				objectives++
			}
		}
		seen = append(seen, err,
			wantLoop("the store during the provider call", h, loop.Running, loop.RuntimeRunning, counts{uint32(n), uint32(n - 1), uint32(n)}),
			wantEqual("objectives in the log during the provider call", objectives, n))
		return direct(ctx, n)
	}}
	_, err = s.Run(ctx, rig.spec(m, 3, 3))
	return errors.Join(append(seen, wantOK("the run", err), wantEqual("provider calls", m.count(), 3), rig.wantOnceEach(ctx))...)
}

func messageBeforeTools(ctx context.Context, e *Env) error {
	rig, err := e.loop(ctx, "tools", never)
	if err != nil {
		return err
	}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	last := func(what string, check func(pluginapi.Message) bool) error {
		messages, err := rig.messages(ctx)
		if err != nil {
			return err
		}
		if len(messages) == 0 || !check(messages[len(messages)-1]) {
			return failf("%s: want it as the last message in the store, got %+v", what, messages)
		}
		return nil
	}
	var seen []error
	m := &model{answer: func(ctx context.Context, n int) (pluginapi.Message, error) {
		if n == 2 {
			seen = append(seen, last("the tool's result, during the next provider call", func(x pluginapi.Message) bool {
				return x.Result != nil && x.Result.CallID == "call-1" && x.Result.Status == pluginapi.ResultOK
			}))
		}
		return asksThenAnswers(ctx, n)
	}}
	var ran counter
	spec := rig.spec(m, 1, 2)
	spec.Tools = []plugin.Tool{workTool(&ran, func(context.Context) error {
		seen = append(seen, last("the message with the call, while the tool runs", func(x pluginapi.Message) bool {
			return x.Role == pluginapi.RoleAssistant && len(x.ToolCalls) == 1
		}))
		return nil
	})}
	_, err = s.Run(ctx, spec)
	return errors.Join(append(seen, wantOK("the run", err), wantEqual("runs of the tool", ran.count(), 1), rig.wantOnceEach(ctx))...)
}

func roundIsDurable(ctx context.Context, e *Env) error {
	rig, err := e.loop(ctx, "round", never)
	if err != nil {
		return err
	}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	var ran counter
	var seen []error
	spec := rig.spec(&model{answer: asksThenAnswers}, 2, 4)
	spec.Tools = []plugin.Tool{workTool(new(counter), nil)}
	spec.Hooks = []plugin.Hook{afterRound(&ran, func() pluginapi.Decision {
		memory, err := s.Snapshot().Head.Encode()
		rec, lerr := rig.other.Load(ctx, rig.key())
		seen = append(seen, err, lerr, wantBytes("the stored head, as the hook sees it", rec.Head, memory))
		return goOn()
	})}
	_, err = s.Run(ctx, spec)
	return errors.Join(append(seen, wantOK("the run", err), wantEqual("runs of the after-round hook", ran.count(), 4))...)
}

func commitsPerRound(ctx context.Context, e *Env) error {
	tests := []struct {
		name        string
		answer      func(context.Context, int) (pluginapi.Message, error)
		tool, hook  bool
		k, r        int64
		commits     int
		explanation string
	}{
		{"plain", direct, false, false, 5, 5, 1 + 5 + 2, "start, an admission each, boundary, mirror"},
		{"plain-watched", direct, false, true, 5, 5, 1 + 5*2 + 2, "start, admission and end each, boundary, mirror"},
		{"tools", asksThenAnswers, true, false, 3, 6, 1 + 3*(2+1) + 2, "start, two for a round with tools and one without, boundary, mirror"},
		{"tools-watched", asksThenAnswers, true, true, 3, 6, 1 + 3*(3+2) + 2, "start, three for a round with tools and two without, boundary, mirror"},
	}
	for _, tt := range tests {
		rig, err := e.loop(ctx, tt.name, never)
		if err != nil {
			return err
		}
		s, done, err := rig.open(ctx)
		if err != nil {
			return err
		}
		spec := rig.spec(&model{answer: tt.answer}, tt.k, tt.r)
		if tt.tool {
			spec.Tools = []plugin.Tool{workTool(new(counter), nil)}
		}
		if tt.hook {
			spec.Hooks = []plugin.Hook{afterRound(new(counter), goOn)}
		}
		_, err = s.Run(ctx, spec)
		done()
		if err := errors.Join(wantOK("the run", err), wantEqual("commits ("+tt.explanation+")", rig.faulty.Count(OpCommit), tt.commits)); err != nil {
			return failf("%s: %w", tt.name, err)
		}
	}
	return nil
}

// soon is how long a case waits for what must happen within a second (S-13).
const soon = 5 * time.Second
