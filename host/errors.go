package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

var (
	// ErrNotRunning answers a stop or cancel of a session without a live run.
	ErrNotRunning = errors.New("not running")
	// ErrOwnerLost says that the execution which ran a session's loop is gone and
	// nobody has settled the loop yet: nothing more will come of it.
	ErrOwnerLost = errors.New("the execution that ran the loop is gone; cancel the session, or start a new loop in it")
	// ErrCancelled is the error of a run that was cancelled (L-17).
	ErrCancelled = errors.New("cancelled")
	// ErrClosed answers a method of a closed session.
	ErrClosed = errors.New("session is closed")
	// ErrUsed answers a second Run: a generation runs one loop. Open the session again.
	ErrUsed = errors.New("this execution has run its loop already; open the session again for another one")
)

// CheckpointError ends a run whose checkpoint failed (L-19).
type CheckpointError struct {
	Session    string
	Checkpoint string // which one
	// Unknown says that the failure could not be written over it either: what the
	// store holds is not known (L-20).
	Unknown bool
	Err     error // the cause
}

// Error names session, checkpoint and cause.
func (e *CheckpointError) Error() string {
	s := fmt.Sprintf("session checkpoint failed; execution not admitted: session %q, checkpoint %s: %v", e.Session, e.Checkpoint, e.Err)
	if e.Unknown {
		s += "; the durable state is unknown"
	}
	return s
}

// Unwrap gives the cause.
func (e *CheckpointError) Unwrap() error { return e.Err }

// FailedError ends a run whose loop failed, durably.
type FailedError struct {
	Session string
	Code    loop.ReasonCode
	Reason  string
	Err     error // the cause: a *pluginapi.Failure, a *plugin.Fault, …; nil where a hook decided
}

// Error says why.
func (e *FailedError) Error() string {
	return fmt.Sprintf("session %q failed (%s): %s", e.Session, e.Code, e.Reason)
}

// Unwrap gives the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// RecoveryError refuses to run a session whose loop lost its owner (L-3).
type RecoveryError struct {
	Session string
	State   loop.State
	// UnknownCalls are the tool calls whose effects are not known (L-26).
	UnknownCalls []pluginapi.ToolCall
	// LostExecution is the execution that ended without an ending.
	LostExecution string
}

// Error says what is known and what to do next.
func (e *RecoveryError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "session %q: an earlier run (%s) died in the middle: %d of %d iterations and %d of %d rounds were started, %d iterations are complete",
		e.Session, e.LostExecution, e.State.IterationsStarted, e.State.MaxIterations, e.State.RoundsStarted, e.State.MaxTotalRounds, e.State.IterationsCompleted)
	if n := len(e.UnknownCalls); n > 0 {
		fmt.Fprintf(&b, "; the effect of %d tool call(s) is unknown:", n)
		for i, c := range e.UnknownCalls {
			if i == 5 {
				fmt.Fprintf(&b, " and %d more", n-i)
				break
			}
			fmt.Fprintf(&b, " %s (%s)", c.Name, c.ID)
		}
	}
	b.WriteString("; it is not continued: start a new loop in it, or fork it")
	return b.String()
}

// MismatchError refuses to settle a session for somebody it does not belong to (L-23, L-24).
type MismatchError struct {
	Session   string
	Field     string // "generation", "birth", "owner", "execution"
	Got, Want string
}

// Error says what changed.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("session %q: %s changed: expected %s, found %s; nothing was written", e.Session, e.Field, e.Want, e.Got)
}

// IsFenced reports whether err says that another owner took the session over.
func IsFenced(err error) bool { return errors.Is(err, store.ErrFenced) }
