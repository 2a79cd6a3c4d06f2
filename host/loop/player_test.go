package loop

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	testGeneration = "0190c0de-0000-7000-8000-00000000000a"
	testExecution  = "0190c0de-0000-7000-8000-00000000000b"
	testObjective  = "make the tests pass"
)

// failer is what a player reports to: a testing.T or a rapid.T.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// player stands in for the driver. It remembers the effect that is under way and
// what the store would hold, and checks at every step what must always be true.
type player struct {
	t   failer
	m   *Machine
	cfg Config

	pending  *Effect // the answering effect under way
	cutShort bool    // pending was interrupted or hurried: it may answer interrupted
	expired  bool    // an expire came after a halt, before the loop was bound
	rows     []row   // taken by the last step

	stored        State // by the last checkpoint that was acknowledged
	storedRuntime Runtime

	calls, toolRuns, completes, terminals       int
	boundaries, mirrors, endings, settles, acks int
	roundCommits                                int
	roundTools                                  bool

	covered map[row]int // may be nil
}

// row is one row of the machine, taken from one phase.
type row struct {
	transition *Transition
	from       Phase
}

func testConfig(k, r int64, afterRound, verifier bool) Config {
	return Config{
		Generation: testGeneration, ExecutionID: testExecution, Objective: testObjective,
		Iterations: k, Rounds: r, AfterRound: afterRound, Verifier: verifier,
	}
}

func newPlayer(t failer, cfg Config) *player {
	t.Helper()
	m, err := New(cfg)
	if err != nil {
		t.Fatalf("New(%+v): %v", cfg, err)
	}
	p := &player{t: t, m: m, cfg: cfg}
	p.listen()
	return p
}

// listen notes the rows that the machine takes.
func (p *player) listen() {
	p.m.trace = func(taken *Transition) {
		r := row{taken, p.m.phase}
		p.rows = append(p.rows, r)
		if p.covered != nil {
			p.covered[r]++
		}
	}
}

// answers are the effects that answer, with the answers that effect.go promises;
// a host failure and an interruption come on top (see legalAnswers).
var answers = map[EffectKind][]Event{
	EffectCheckpoint:   {{Kind: EvCheckpointDone}, {Kind: EvCheckpointFailed, Reason: "disk full"}, {Kind: EvFenced}},
	EffectPrepare:      {{Kind: EvPrepared}, {Kind: EvHookAborted, Reason: "no"}, {Kind: EvHookDenied, Reason: "not this"}},
	EffectCallProvider: {{Kind: EvAnswered}, {Kind: EvAnswered, ToolCalls: true}, {Kind: EvProviderFailed, Reason: "overloaded"}, {Kind: EvHookAborted, Reason: "no"}},
	EffectGuardTools:   {{Kind: EvToolsGuarded}, {Kind: EvHookAborted, Reason: "no"}},
	EffectRunTools:     {{Kind: EvToolsDone}, {Kind: EvHookAborted, Reason: "no"}},
	EffectVerify:       {{Kind: EvVerified}, {Kind: EvVerified, Passed: true}, {Kind: EvVerifierFailed, Reason: "sh: not found"}},
	EffectReview:       {{Kind: EvReviewed}, {Kind: EvHookAborted, Reason: "no"}},
	EffectFinalize:     {{Kind: EvFinalizePassed}, {Kind: EvFinalizeDenied, Reason: "tests are red"}, {Kind: EvHookAborted, Reason: "no"}},
	EffectSettle:       {{Kind: EvSettled}, {Kind: EvSettleFailed}, {Kind: EvFenced}},
}

func isSignal(k EventKind) bool {
	switch k {
	case EvStop, EvCancel, EvWallTime, EvExpire, EvBudgetSpent:
		return true
	}
	return false
}

func isWork(k EffectKind) bool {
	_, answering := answers[k]
	return answering && k != EffectCheckpoint && k != EffectSettle
}

// legalAnswers are the events that the effect under way may answer with; the
// first is what it answers when all goes well.
func (p *player) legalAnswers() []Event {
	if p.pending == nil {
		return []Event{{Kind: EvStart}}
	}
	out := append([]Event(nil), answers[p.pending.Kind]...)
	if isWork(p.pending.Kind) {
		out = append(out, Event{Kind: EvHostFailed, Reason: "host"})
		if p.cutShort {
			out = append(out, Event{Kind: EvInterrupted})
		}
	}
	return out
}

// step sends one event and checks everything that must hold for any event.
func (p *player) step(ev Event) ([]Effect, error) {
	p.t.Helper()
	m := p.m
	before, beforeRuntime, beforePhase := m.State(), m.Runtime(), m.Phase()
	stopped, cancelled, fenced := m.StopRaised(), m.CancelRaised(), m.Fenced()
	was := p.pending
	p.rows = p.rows[:0]

	effects, err := m.Step(ev)
	if err != nil {
		if len(effects) != 0 || m.State() != before || m.Runtime() != beforeRuntime || m.Phase() != beforePhase {
			p.t.Errorf("%s was refused (%v) and still changed something: effects %v, phase %s → %s, state %s", ev.Kind, err, effects, beforePhase, m.Phase(), cmp.Diff(before, m.State()))
		}
		if (beforePhase == Done) != errors.Is(err, ErrNotRunning) || (beforePhase == Done) == errors.Is(err, ErrUnexpected) {
			p.t.Errorf("%s in phase %s: got error %v; want ErrNotRunning in phase done and ErrUnexpected before", ev.Kind, beforePhase, err)
		}
		return effects, err
	}
	if beforePhase == Done {
		p.t.Errorf("%s after the end was taken", ev.Kind)
	}

	if ev.Kind == EvCheckpointDone || ev.Kind == EvSettled {
		// Signals change nothing of what a commit carries, so it is memory as it was before the answer.
		p.stored, p.storedRuntime = before, beforeRuntime
		p.acks++
	}
	p.answer(ev, was)
	for i, ef := range effects {
		p.effect(ev, was, ef)
		if (ef.Kind == EffectEnd) != (i == len(effects)-1 && m.Phase() == Done) {
			p.t.Errorf("%s: effect %d of %v is %s in phase %s; the end comes last and makes done", ev.Kind, i, effects, ef.Kind, m.Phase())
		}
		if stopped && ef.Kind == EffectCheckpoint && ef.Checkpoint == CheckpointAdmission {
			p.t.Errorf("%s: an admission after a stop (L-7)", ev.Kind)
		}
		if cancelled && isWork(ef.Kind) {
			p.t.Errorf("%s: %s is started after a cancel (L-17)", ev.Kind, ef.Kind)
		}
		if p.expired && isWork(ef.Kind) {
			p.t.Errorf("%s: %s is started after the drain expired", ev.Kind, ef.Kind)
		}
		if fenced {
			p.t.Errorf("%s: effect %s after fencing (L-21)", ev.Kind, ef.Kind)
		}
	}
	if ph := m.Phase(); cancelled && !isSignal(ev.Kind) && ph != Ending && ph != Settling && ph != Done {
		p.t.Errorf("%s after a cancel leads to %s; want the ending (L-17)", ev.Kind, ph)
	}
	if cancelled && !isSignal(ev.Kind) && m.Phase() == Ending && m.State().Status != Cancelled {
		p.t.Errorf("%s after a cancel ends as %s (L-17)", ev.Kind, m.State().Status)
	}
	if ev.Kind == EvExpire && stopped {
		p.expired = true
	}
	p.invariants(ev, before, effects)
	return effects, nil
}

// answer notes what ev says about the effect that was under way.
func (p *player) answer(ev Event, was *Effect) {
	p.t.Helper()
	if isSignal(ev.Kind) {
		return
	}
	p.pending, p.cutShort = nil, false
	if was == nil && ev.Kind != EvStart && ev.Kind != EvFenced {
		p.t.Errorf("%s was taken while no effect is under way", ev.Kind)
	}
}

// must sends events that have to be taken.
func (p *player) must(evs ...Event) []Effect {
	p.t.Helper()
	var all []Effect
	for _, ev := range evs {
		effects, err := p.step(ev)
		if err != nil {
			p.t.Fatalf("%s in phase %s: %v", ev.Kind, p.m.Phase(), err)
		}
		all = append(all, effects...)
	}
	return all
}

// manner is how the effects answer when nothing goes wrong.
type manner struct {
	tools  bool // the provider always asks for tools
	passed bool // the verifier passes
}

// next is the answer of the effect under way when nothing goes wrong.
func (p *player) next(how manner) Event {
	ev := p.legalAnswers()[0]
	ev.ToolCalls = ev.Kind == EvAnswered && how.tools
	ev.Passed = ev.Kind == EvVerified && how.passed
	return ev
}

// reach answers everything well until phase is reached.
func (p *player) reach(phase Phase, how manner) {
	p.t.Helper()
	for p.m.Phase() != phase {
		if p.m.Phase() == Done {
			p.t.Fatalf("the run ended before it reached %s", phase)
		}
		p.must(p.next(how))
	}
}

func (p *player) counters() string {
	s := p.m.State()
	return fmt.Sprintf("(%d, %d, %d)", s.IterationsStarted, s.IterationsCompleted, s.RoundsStarted)
}

// wantEnding compares how a run ended with status/runtime, reason code and counters.
func wantEnding(t *testing.T, p *player, status Status, rt RuntimeStatus, code ReasonCode, counters string) {
	t.Helper()
	s := p.m.State()
	got := fmt.Sprintf("%s %s/%s %s %s", p.m.Phase(), s.Status, p.m.Runtime().Status, s.ReasonCode, p.counters())
	want := fmt.Sprintf("%s %s/%s %s %s", Done, status, rt, code, counters)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
