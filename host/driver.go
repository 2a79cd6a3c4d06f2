package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// driver carries out the effects of one loop's machine, one after the other, on
// the goroutine that called Run: a round costs no switch between goroutines. A
// second goroutine only listens. Whoever has the turn may use the machine; the run
// lends it out for as long as an effect takes that may take long.
//
//	             ┌───────────────┐ ──effects──▶ commits: the run keeps the turn
//	  the run ──▶│ loop.Machine  │ ──effects──▶ hooks, provider, tools, verifier:
//	             └───────────────┘              the turn is free, and then taken back
//	                     ▲                      with the effect's answer
//	signals, timers, ────┘ listener: takes the turn while it is free,
//	lease, caller's end    interrupts or hurries the effect
type driver struct {
	s     *Session
	spec  RunSpec
	chain *plugin.Chain
	tools *toolset
	m     *loop.Machine
	// caller is Run's context: its end is a cancel (L-17) and nothing else. No
	// effect and no commit runs under it.
	caller context.Context

	// What the effects hand on to each other.
	prompt    promptState
	request   *pluginapi.ProviderRequest // rewritten by a before-provider hook, for the admitted round; nil: none
	injected  []pluginapi.Message        // waits for the next admission
	round     roundState
	ordinal   uint64 // provider calls of this execution
	usage     usageSum
	reported  *pluginapi.Usage // of usage, as of the last answer
	finalText string
	cause     error // what made the run fail

	turn     chan struct{} // holds a token while somebody has the turn
	over     chan struct{} // closed at the run's end
	flight   *flight
	hurry    chan struct{} // closed to end the waits between provider attempts, present and later ones (S-13)
	hurried  bool
	broken   error // what the listener could not step the machine with
	drain    *time.Timer
	draining chan (<-chan time.Time) // drain, towards the listener
	wall     *time.Timer

	emitMu sync.Mutex
}

// promptState is the before-prompt decision that ran ahead of the start.
type promptState struct {
	ran     bool
	text    string
	verdict plugin.Verdict
	started bool // session_start ran
}

// roundState is the round under way.
type roundState struct {
	message pluginapi.Message
	calls   []callState
	results []pluginapi.ToolResult
}

// flight is the effect that is asked for or under way.
type flight struct {
	effect loop.Effect
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// errInterrupted is the cause of an effect's context once the run wants it to end.
var errInterrupted = errors.New("the run is ending")

func (s *Session) newDriver(spec RunSpec) (*driver, error) {
	if spec.DrainTimeout == 0 {
		spec.DrainTimeout = DefaultDrainTimeout
	}
	if spec.MaxWait == 0 {
		spec.MaxWait = DefaultMaxWait
	}
	hooks := make([]plugin.Hook, len(spec.Hooks))
	for i, h := range spec.Hooks {
		hooks[i] = leasedHook{Hook: h, lease: s.lease}
	}
	chain, err := plugin.NewChain(hooks)
	if err != nil {
		return nil, err
	}
	tools, err := newToolset(spec.Tools)
	if err != nil {
		return nil, err
	}
	d := &driver{s: s, spec: spec, chain: chain, tools: tools}
	d.turn, d.over, d.hurry, d.draining = make(chan struct{}, 1), make(chan struct{}), make(chan struct{}), make(chan (<-chan time.Time), 1)
	s.w.require = spec.Durability
	s.w.acknowledged = d.project
	return d, nil
}

// run drives the machine to its end. ctx is the caller's; durable outlives it.
func (d *driver) run(ctx, durable context.Context) (Result, error) {
	d.caller = ctx
	objective, early, err := d.objective(ctx)
	if err != nil {
		return d.s.result(), err
	}
	d.m, err = loop.New(loop.Config{
		Generation: d.s.Generation(), ExecutionID: d.s.ExecutionID(), Objective: objective,
		Iterations: d.spec.Iterations, Rounds: d.spec.Rounds,
		AfterRound: d.chain.Has(pluginapi.AfterRound), Verifier: d.spec.Verifier != nil,
	})
	if err != nil {
		return d.s.result(), err
	}
	if err := d.stageStart(); err != nil {
		return d.s.result(), err
	}
	defer d.stopTimers()
	if d.spec.Timeout > 0 {
		d.wall = time.NewTimer(d.spec.Timeout)
	}
	d.turn <- struct{}{}
	var listener sync.WaitGroup
	listener.Go(func() { d.listen(durable) })
	defer listener.Wait()
	defer close(d.over)

	queue := append([]loop.Event{{Kind: loop.EvStart}}, early...)
	for d.m.Phase() != loop.Done {
		for len(queue) > 0 && d.m.Phase() != loop.Done {
			ev := queue[0]
			queue = queue[1:]
			more, err := d.step(durable, ev)
			if err != nil {
				return d.s.result(), err
			}
			queue = append(queue, more...)
		}
		if d.m.Phase() != loop.Done {
			queue = append(queue[:0], d.fly()...)
			if d.broken != nil {
				return d.s.result(), d.broken
			}
		}
	}
	d.observeEnd(ctx)
	return d.result()
}

// step gives the machine one event and carries out what it asks for.
func (d *driver) step(ctx context.Context, ev loop.Event) ([]loop.Event, error) {
	effects, err := d.m.Step(ev)
	if err != nil {
		if errors.Is(err, loop.ErrNotRunning) {
			return nil, nil
		}
		return nil, err
	}
	d.mirrorState()
	var out []loop.Event
	for _, e := range effects {
		out = append(out, d.carryOut(ctx, e)...)
	}
	return out, nil
}

// mirrorState copies the machine's memory into the session's head.
func (d *driver) mirrorState() {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	h := &d.s.head
	if h.Loop == nil {
		h.Loop = new(loop.State)
	}
	*h.Loop = d.m.State() // nobody else holds it: Snapshot copies
	h.Runtime, h.Run.Usage = d.m.Runtime(), d.reported
}

func (d *driver) carryOut(ctx context.Context, e loop.Effect) []loop.Event {
	switch e.Kind {
	case loop.EffectCheckpoint:
		return d.checkpoint(ctx, e)
	case loop.EffectSettle:
		return d.settle(ctx)
	case loop.EffectInject:
		d.injected = append(d.injected, pluginapi.Message{Role: pluginapi.RoleUser, Origin: "finalize", Text: e.Text})
	case loop.EffectInterrupt:
		if d.flight != nil {
			d.flight.cancel(errInterrupted)
		}
	case loop.EffectHurry:
		if !d.hurried {
			d.hurried = true
			close(d.hurry)
		}
	case loop.EffectPublish:
		d.publish(e)
	case loop.EffectEnd:
	default:
		d.flight = &flight{effect: e}
		d.flight.ctx, d.flight.cancel = context.WithCancelCause(ctx)
	}
	return nil
}

// fly carries out the effect that the machine asked for, and returns what was
// raised until it answered, and its answer. What was raised before the answer
// counts before it (L-10, L-17).
func (d *driver) fly() []loop.Event {
	f := d.flight
	info := d.loopInfo()
	var events []loop.Event
	if f.effect.Kind == loop.EffectPrepare && !d.asksBefore() && d.s.lease.good() {
		events = d.prepare(f.ctx, info, f.effect.NewIteration) // asks nobody
	} else {
		<-d.turn
		events = d.effect(f.ctx, f.effect, info)
		d.turn <- struct{}{}
	}
	f.cancel(nil)
	d.flight = nil
	d.reported = d.usage.total()
	return append(d.heard(nil), events...)
}

// asksBefore reports whether hooks have a say in admissions.
func (d *driver) asksBefore() bool {
	for _, p := range [...]pluginapi.HookPoint{pluginapi.SessionStart, pluginapi.BeforePrompt, pluginapi.BeforeRound, pluginapi.BeforeProvider} {
		if d.chain.Has(p) {
			return true
		}
	}
	return false
}

// effect carries out one effect, after the lease is known to be good (L-28).
func (d *driver) effect(ctx context.Context, e loop.Effect, info pluginapi.LoopInfo) []loop.Event {
	if err := d.s.lease.hold(ctx); err != nil {
		if ctx.Err() != nil {
			return interrupted
		}
		return []loop.Event{{Kind: loop.EvFenced}}
	}
	switch e.Kind {
	case loop.EffectPrepare:
		return d.prepare(ctx, info, e.NewIteration)
	case loop.EffectCallProvider:
		return d.callProvider(ctx, info)
	case loop.EffectGuardTools:
		return d.guardTools(ctx, info)
	case loop.EffectRunTools:
		return d.runTools(ctx, info)
	case loop.EffectVerify:
		return d.verify(ctx)
	case loop.EffectReview:
		return d.review(ctx, info)
	case loop.EffectFinalize:
		return d.finalize(ctx, info)
	}
	return d.hostFailed(errors.New("the machine asked for an effect that the host does not know: " + string(e.Kind)))
}

var interrupted = []loop.Event{{Kind: loop.EvInterrupted}}

// checkpoint commits the machine's state (L-5 … L-15) and reports what became of
// it. Signals that came with or before the acknowledgement count before it does.
func (d *driver) checkpoint(ctx context.Context, e loop.Effect) []loop.Event {
	if err := d.stageCheckpoint(e); err != nil {
		d.cause = &CheckpointError{Session: d.s.ID(), Checkpoint: string(e.Checkpoint), Err: err}
		return []loop.Event{{Kind: loop.EvCheckpointFailed, Reason: "checkpoint " + string(e.Checkpoint) + ": " + err.Error()}}
	}
	signals, err := d.s.commitHead(ctx, string(e.Checkpoint))
	switch {
	case err == nil:
		return append(d.heard(signals), loop.Event{Kind: loop.EvCheckpointDone})
	case IsFenced(err):
		d.cause = err
		return []loop.Event{{Kind: loop.EvFenced}}
	}
	d.cause = &CheckpointError{Session: d.s.ID(), Checkpoint: string(e.Checkpoint), Err: err}
	return []loop.Event{{Kind: loop.EvCheckpointFailed, Reason: "checkpoint " + string(e.Checkpoint) + ": " + err.Error()}}
}

// settle writes memory over a failed checkpoint (L-20).
func (d *driver) settle(ctx context.Context) []loop.Event {
	err := d.s.closeCalls(notStarted)
	if err == nil {
		d.noteEnding()
		_, err = d.s.commitHead(ctx, "settle")
	}
	switch {
	case err == nil:
		return []loop.Event{{Kind: loop.EvSettled}}
	case IsFenced(err):
		d.cause = err
		return []loop.Event{{Kind: loop.EvFenced}}
	}
	if c, ok := errors.AsType[*CheckpointError](d.cause); ok {
		c.Unknown = true
	}
	d.s.host.cfg.Logger.Error("the failure of a checkpoint could not be stored", "session_id", d.s.ID(), "generation", d.s.Generation(), "error", err)
	return []loop.Event{{Kind: loop.EvSettleFailed}}
}

// result is what Run returns.
func (d *driver) result() (Result, error) {
	r := d.s.result()
	r.FinalText = d.finalText
	state := d.m.State()
	switch {
	case d.m.Fenced():
		return r, d.fencedError()
	case d.m.CheckpointFailed():
		return r, d.cause
	case state.Status == loop.Cancelled:
		return r, ErrCancelled
	case state.Status == loop.Failed:
		return r, &FailedError{Session: d.s.ID(), Code: state.ReasonCode, Reason: state.Reason, Err: d.cause}
	}
	return r, nil
}

func (d *driver) fencedError() error {
	if IsFenced(d.cause) {
		return d.cause
	}
	return &store.Error{Op: "run", Key: d.s.key, Kind: store.ErrFenced, Detail: "another owner took the session over; nothing more was written"}
}

func (d *driver) loopInfo() pluginapi.LoopInfo {
	l := d.m.State()
	return pluginapi.LoopInfo{
		Status: string(l.Status), MaxIterations: l.MaxIterations, MaxTotalRounds: l.MaxTotalRounds,
		IterationsStarted: l.IterationsStarted, IterationsCompleted: l.IterationsCompleted, RoundsStarted: l.RoundsStarted,
	}
}

func (d *driver) sessionInfo() pluginapi.SessionInfo {
	return pluginapi.SessionInfo{ID: d.s.ID(), ExecutionID: d.s.ExecutionID(), Generation: d.s.Generation(), Revision: d.s.durableMark().Revision}
}

func (d *driver) hostFailed(err error) []loop.Event {
	d.cause = err
	return []loop.Event{{Kind: loop.EvHostFailed, Reason: err.Error()}}
}
