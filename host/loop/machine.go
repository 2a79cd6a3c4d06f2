package loop

import (
	"errors"
	"fmt"
)

// Phase is what a running machine waits for.
type Phase string

// The phases. Gate waits for nothing: it decides (L-7).
const (
	Idle       Phase = "idle"
	Starting   Phase = "starting"   // the start checkpoint
	Gate       Phase = "gate"       // decides what is next
	Preparing  Phase = "preparing"  // the before-hooks of an admission
	Admitting  Phase = "admitting"  // the admission's checkpoint
	Calling    Phase = "calling"    // the provider
	Guarding   Phase = "guarding"   // the before-tool hooks
	Securing   Phase = "securing"   // the checkpoint before tools run (L-9)
	Working    Phase = "working"    // the tools
	Closing    Phase = "closing"    // the round's end
	Verifying  Phase = "verifying"  // the verifier (L-27)
	Reviewing  Phase = "reviewing"  // the after-round hooks
	Concluding Phase = "concluding" // the before-finalize hooks
	Bounding   Phase = "bounding"   // the boundary checkpoint
	Mirroring  Phase = "mirroring"  // the final mirror
	Ending     Phase = "ending"     // the checkpoint of a failure or cancel
	Settling   Phase = "settling"   // writing over a failed checkpoint
	Done       Phase = "done"
)

// MaxFinalizeDenies is how many denies in a row inject their reason and go on;
// one more fails the run (L-13).
const MaxFinalizeDenies = 5

// Config says what a machine runs.
type Config struct {
	Generation  string // UUID, of the fence
	ExecutionID string // UUID, of the fence's run
	Objective   string
	Iterations  int64 // K
	Rounds      int64 // R
	// AfterRound and Verifier say whether an after-round hook or a verifier is
	// subscribed; without either, a round's end travels with the next admission (L-25).
	AfterRound bool
	Verifier   bool
}

// Machine is one loop's state machine. The zero value is not usable. It does no
// I/O, starts nothing, reads no clock: events in, effects out.
type Machine struct {
	cfg     Config
	phase   Phase
	state   State
	runtime Runtime

	cancel     *request // a raised cancel; wins until the final mirror is acknowledged (L-17)
	halt       *request // the first raised stop or wall time
	haltStatus Status
	spent      *request // a spent budget other than the rounds
	expired    bool     // what was admitted before the halt did not drain in time: nothing more is started

	complete    bool   // the round that is ending completed its iteration, or answered a deny
	cutOff      bool   // the boundary at hand was taken at the round's end: its verifier and after-round hooks are due (L-10)
	pendingDeny bool   // a before-finalize deny not yet answered (L-13)
	denies      uint32 // in a row
	verified    bool   // the last verdict

	fenced  bool
	failing bool // a checkpoint failed (L-19)
	durable bool // the state in memory is known to be in the store

	trace func(*Transition) // for tests: the row about to be taken; may be nil
}

type request struct {
	code   ReasonCode
	reason string
}

// ErrNotRunning answers a signal or effect result that comes after the end (L-17).
var ErrNotRunning = errors.New("not running")

// ErrUnexpected answers an event that the phase has no transition for: a fault of the driver.
var ErrUnexpected = errors.New("unexpected event")

// New makes a machine in phase Idle. The error is a *BoundsError (L-1), or one
// that wraps ErrState for ids that are no UUIDs.
func New(cfg Config) (*Machine, error) {
	if err := CheckBounds(cfg.Objective, cfg.Iterations, cfg.Rounds); err != nil {
		return nil, err
	}
	m := &Machine{
		cfg:   cfg,
		phase: Idle,
		state: State{
			SchemaVersion: SchemaVersion, Generation: cfg.Generation, OwnerExecutionID: cfg.ExecutionID,
			Objective: cfg.Objective, MaxIterations: uint32(cfg.Iterations), MaxTotalRounds: uint32(cfg.Rounds),
			Status: Running,
		},
		runtime: Runtime{Status: RuntimeRunning, ExecutionID: cfg.ExecutionID},
	}
	if err := m.state.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// State is the loop's state in memory.
func (m *Machine) State() State { return m.state }

// Runtime is the session's runtime state in memory.
func (m *Machine) Runtime() Runtime { return m.runtime }

// Phase is what the machine waits for.
func (m *Machine) Phase() Phase { return m.phase }

// Fenced reports whether the run ended because another owner took over (L-21).
func (m *Machine) Fenced() bool { return m.fenced }

// CheckpointFailed reports whether a checkpoint of the run failed (L-19).
func (m *Machine) CheckpointFailed() bool { return m.failing }

// Durable reports whether the state in memory is known to be in the store.
func (m *Machine) Durable() bool { return m.durable }

// StopRaised reports whether a stop or the wall time was raised.
func (m *Machine) StopRaised() bool { return m.halt != nil }

// CancelRaised reports whether a cancel was raised.
func (m *Machine) CancelRaised() bool { return m.cancel != nil }

// Step takes one event and returns the effects, in order. The errors are
// ErrNotRunning in phase Done and ErrUnexpected; both change nothing.
func (m *Machine) Step(ev Event) ([]Effect, error) {
	if m.phase == Done {
		return nil, fmt.Errorf("%w: %s", ErrNotRunning, ev.Kind)
	}
	if ev.Kind == EvAuto {
		return nil, fmt.Errorf("%w: %s comes from the machine alone", ErrUnexpected, ev.Kind)
	}
	var effects []Effect
	for {
		t := m.find(ev)
		if t == nil {
			return nil, fmt.Errorf("%w: %s in phase %s", ErrUnexpected, ev.Kind, m.phase)
		}
		if m.trace != nil {
			m.trace(t)
		}
		if t.Do != nil {
			effects = append(effects, t.Do(m, ev)...)
		}
		if t.To != Stay {
			m.phase = t.To
		}
		if m.phase != Gate {
			return effects, nil
		}
		ev = Event{Kind: EvAuto}
	}
}

func (m *Machine) find(ev Event) *Transition {
	for i := range transitions {
		t := &transitions[i]
		if t.matches(m, ev) {
			return t
		}
	}
	return nil
}

// allDone reports whether all K iterations are complete and no deny is pending.
func (m *Machine) allDone() bool {
	return m.state.IterationsCompleted == m.state.MaxIterations && !m.pendingDeny
}

// newIteration reports whether the next admission opens an iteration.
func (m *Machine) newIteration() bool {
	return m.state.IterationsStarted == m.state.IterationsCompleted && !m.pendingDeny
}

func (m *Machine) roundsSpent() bool { return m.state.RoundsStarted == m.state.MaxTotalRounds }

func (m *Machine) subscribed() bool { return m.cfg.AfterRound || m.cfg.Verifier }

// HaltStatus is the status that a raised stop ends in: stopped, or
// budget_exhausted for the wall time; "" where none was raised.
func (m *Machine) HaltStatus() Status { return m.haltStatus }

// Denies is how many before-finalize denies there were in a row (L-13).
func (m *Machine) Denies() uint32 { return m.denies }
