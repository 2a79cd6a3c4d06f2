package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/loophost/loophost/internal/strictjson"
)

// SchemaVersion is the version of State's JSON. Another one is an error, never "absent".
const SchemaVersion = 1

// Bounds of a loop (L-1).
const (
	MaxIterations     = 100
	MaxRounds         = 1_000
	MaxObjectiveBytes = 16_384
	MaxStateBytes     = 131_072
)

// Status is where a loop is.
type Status string

// The statuses. All but running and finalizing are terminal.
const (
	Running             Status = "running"
	Finalizing          Status = "finalizing"
	Completed           Status = "completed"
	Stopped             Status = "stopped"
	BudgetExhausted     Status = "budget_exhausted"
	Cancelled           Status = "cancelled"
	Failed              Status = "failed"
	RecoveryUnsupported Status = "recovery_unsupported"
)

// Statuses lists every status.
func Statuses() []Status {
	return []Status{Running, Finalizing, Completed, Stopped, BudgetExhausted, Cancelled, Failed, RecoveryUnsupported}
}

// Terminal reports whether no round is admitted any more.
func (s Status) Terminal() bool { return s != Running && s != Finalizing }

// Bounded reports whether s is one of the two endings that cut work off.
func (s Status) Bounded() bool { return s == Stopped || s == BudgetExhausted }

// ReasonCode says why a loop has its status; the first stop wins. "" where the status says it all.
type ReasonCode string

// The reason codes.
const (
	ReasonGoalMet        ReasonCode = "goal_met"        // the verifier passed
	ReasonGoalUnmet      ReasonCode = "goal_unmet"      // all iterations done, the verifier never passed
	ReasonOperatorStop   ReasonCode = "operator_stop"   // a person or another process asked
	ReasonOperatorCancel ReasonCode = "operator_cancel" // likewise, to end at once
	ReasonDrainTimeout   ReasonCode = "drain_timeout"   // what was admitted did not drain in time after a stop
	ReasonHookStop       ReasonCode = "hook_stop"
	ReasonNoProgress     ReasonCode = "no_progress" // a hook's stop because nothing changes
	ReasonRounds         ReasonCode = "rounds"
	ReasonTokens         ReasonCode = "tokens"
	ReasonCost           ReasonCode = "cost"
	ReasonWallTime       ReasonCode = "wall_time"
	ReasonHookAbort      ReasonCode = "hook_abort"
	ReasonHookDeny       ReasonCode = "hook_deny" // of a prompt or a provider call
	ReasonProvider       ReasonCode = "provider"
	ReasonVerifier       ReasonCode = "verifier" // it could not be run
	ReasonCheckpoint     ReasonCode = "checkpoint"
	ReasonFinalizeDenied ReasonCode = "finalize_denied"
	ReasonOwnerLost      ReasonCode = "owner_lost"
	ReasonHost           ReasonCode = "host" // the host itself failed in a way that has no better name
)

// State is the durable state of one loop; it lies in the session's head under "loop".
type State struct {
	SchemaVersion       uint32     `json:"schema_version"`
	Generation          string     `json:"generation"` // UUID; never changes
	Revision            uint64     `json:"revision"`   // of the loop: grows with each of its checkpoints
	OwnerExecutionID    string     `json:"owner_execution_id"`
	Objective           string     `json:"objective"`
	MaxIterations       uint32     `json:"max_iterations"`
	MaxTotalRounds      uint32     `json:"max_total_rounds"`
	IterationsStarted   uint32     `json:"iterations_started"`
	IterationsCompleted uint32     `json:"iterations_completed"`
	RoundsStarted       uint32     `json:"rounds_started"`
	Status              Status     `json:"status"`
	ReasonCode          ReasonCode `json:"reason_code"`
	Reason              string     `json:"reason"` // the same for a person; at most MaxReasonBytes
}

// MaxReasonBytes bounds State.Reason; a longer text is cut on a rune border, with an ellipsis.
const MaxReasonBytes = 4_096

// RuntimeStatus is the session's own status, beside the loop's.
type RuntimeStatus string

// The runtime statuses. The zero value is not valid; a new session is idle.
const (
	RuntimeIdle       RuntimeStatus = "idle"
	RuntimeRunning    RuntimeStatus = "running"
	RuntimeSuspended  RuntimeStatus = "suspended"
	RuntimeFinalizing RuntimeStatus = "finalizing"
	RuntimeCompleted  RuntimeStatus = "completed"
	RuntimeCancelled  RuntimeStatus = "cancelled"
	RuntimeFailed     RuntimeStatus = "failed"
)

// Runtime is the session's runtime state.
type Runtime struct {
	Status      RuntimeStatus `json:"status"`
	ExecutionID string        `json:"execution_id"` // the current or last execution; "" before the first
}

// ErrState says that a stored state is malformed, oversized or inconsistent. Nothing may run on it.
var ErrState = errors.New("unusable loop state")

// Decode reads a stored state. Empty or null input is absent: (nil, nil).
// Anything else that is not a valid state is an error that wraps ErrState.
func Decode(data []byte) (*State, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	if len(data) > MaxStateBytes {
		return nil, fmt.Errorf("%w: %d bytes; at most %d are allowed", ErrState, len(data), MaxStateBytes)
	}
	if err := checkMembers(data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	var s State
	if err := strictjson.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &s, nil
}

// stateMembers are the members of State's JSON; each is always written.
var stateMembers = [...]string{
	"schema_version", "generation", "revision", "owner_execution_id", "objective", "max_iterations", "max_total_rounds",
	"iterations_started", "iterations_completed", "rounds_started", "status", "reason_code", "reason",
}

// checkMembers names a version that this host does not know before anything else
// about the document, and lets no missing or null member pass for a zero: a
// counter that was lost must not admit its rounds again.
func checkMembers(data []byte) error {
	var members map[string]json.RawMessage
	if err := strictjson.Unmarshal(data, &members); err != nil {
		return err
	}
	var version uint32
	if raw, ok := members["schema_version"]; ok && json.Unmarshal(raw, &version) == nil && version != SchemaVersion {
		return unknownVersion(version)
	}
	for _, name := range stateMembers {
		switch raw, ok := members[name]; {
		case !ok:
			return fmt.Errorf("%s is missing", name)
		case string(raw) == "null":
			return fmt.Errorf("%s is null", name)
		}
	}
	return nil
}

func unknownVersion(version uint32) error {
	return fmt.Errorf("schema_version %d is unknown; this host knows %d", version, SchemaVersion)
}

// Encode writes the state; it refuses an invalid or oversized one.
func (s State) Encode() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if len(data) > MaxStateBytes {
		return nil, fmt.Errorf("%w: %d bytes; at most %d are allowed", ErrState, len(data), MaxStateBytes)
	}
	return data, nil
}

// Validate checks that the fields are within bounds and agree with each other.
func (s State) Validate() error {
	if s.SchemaVersion != SchemaVersion {
		return fmt.Errorf("%w: %w", ErrState, unknownVersion(s.SchemaVersion))
	}
	if _, err := uuid.Parse(s.Generation); err != nil {
		return fmt.Errorf("%w: generation %q is not a UUID", ErrState, s.Generation)
	}
	if _, err := uuid.Parse(s.OwnerExecutionID); err != nil {
		return fmt.Errorf("%w: owner_execution_id %q is not a UUID", ErrState, s.OwnerExecutionID)
	}
	if err := CheckBounds(s.Objective, int64(s.MaxIterations), int64(s.MaxTotalRounds)); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	known := false
	for _, x := range Statuses() {
		known = known || s.Status == x
	}
	switch {
	case !known:
		return fmt.Errorf("%w: status %q is unknown", ErrState, s.Status)
	case s.IterationsCompleted > s.IterationsStarted || s.IterationsStarted > s.MaxIterations:
		return fmt.Errorf("%w: iterations completed %d, started %d, of %d", ErrState, s.IterationsCompleted, s.IterationsStarted, s.MaxIterations)
	case s.RoundsStarted > s.MaxTotalRounds:
		return fmt.Errorf("%w: rounds_started %d is over max_total_rounds %d", ErrState, s.RoundsStarted, s.MaxTotalRounds)
	case (s.Status == Finalizing || s.Status == Completed) && s.IterationsCompleted != s.MaxIterations:
		return fmt.Errorf("%w: status %s with %d of %d iterations completed", ErrState, s.Status, s.IterationsCompleted, s.MaxIterations)
	case len(s.Reason) > MaxReasonBytes:
		return fmt.Errorf("%w: reason has %d bytes; at most %d are allowed", ErrState, len(s.Reason), MaxReasonBytes)
	case !utf8.ValidString(s.Reason) || !utf8.ValidString(string(s.ReasonCode)):
		return fmt.Errorf("%w: reason or reason_code is not valid UTF-8", ErrState)
	}
	return nil
}

// BoundsError names the field of a loop that is out of range (L-1).
type BoundsError struct {
	Field string // "objective", "iterations", "rounds"
	Value string // what was given, for people
	Want  string // the allowed range, for people
}

// Error says field, value and range.
func (e *BoundsError) Error() string {
	return fmt.Sprintf("%s is %s; it must be %s", e.Field, e.Value, e.Want)
}

// CheckBounds checks what a loop is started with (L-1). R below K is legal.
func CheckBounds(objective string, iterations, rounds int64) error {
	switch {
	case len(objective) == 0 || len(objective) > MaxObjectiveBytes:
		return &BoundsError{Field: "objective", Value: fmt.Sprintf("%d bytes long", len(objective)), Want: fmt.Sprintf("1 to %d bytes", MaxObjectiveBytes)}
	case !utf8.ValidString(objective):
		return &BoundsError{Field: "objective", Value: "not valid UTF-8", Want: fmt.Sprintf("1 to %d bytes of valid UTF-8", MaxObjectiveBytes)}
	case iterations < 1 || iterations > MaxIterations:
		return &BoundsError{Field: "iterations", Value: fmt.Sprint(iterations), Want: fmt.Sprintf("1 to %d", MaxIterations)}
	case rounds < 1 || rounds > MaxRounds:
		return &BoundsError{Field: "rounds", Value: fmt.Sprint(rounds), Want: fmt.Sprintf("1 to %d", MaxRounds)}
	}
	return nil
}

// clip bounds a reason to MaxReasonBytes of valid UTF-8.
func clip(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) <= MaxReasonBytes {
		return reason
	}
	const ellipsis = "…"
	cut := MaxReasonBytes - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(reason[cut]) {
		cut--
	}
	return reason[:cut] + ellipsis
}

// Validate checks that the runtime status is a known one.
func (r Runtime) Validate() error {
	switch r.Status {
	case RuntimeIdle, RuntimeRunning, RuntimeSuspended, RuntimeFinalizing, RuntimeCompleted, RuntimeCancelled, RuntimeFailed:
		return nil
	}
	return fmt.Errorf("%w: runtime status %q is unknown", ErrState, r.Status)
}
