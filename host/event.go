package host

import (
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// EventType is what an Event tells.
type EventType string

// The event types. The first group is projected from committed log entries and
// has a sequence number; the second is projected from the committed head and comes
// at most once a run; the third is live only.
const (
	EventStarted          EventType = "started"
	EventIterationStarted EventType = "iteration_started"
	EventRoundStarted     EventType = "round_started"
	EventMessage          EventType = "message"
	EventHook             EventType = "hook"
	EventCheckpoint       EventType = "checkpoint"

	EventComplete            EventType = "complete"
	EventCancelled           EventType = "cancelled"
	EventFailed              EventType = "failed"
	EventRecoveryUnsupported EventType = "recovery_unsupported"

	EventToken          EventType = "token"
	EventToolStarted    EventType = "tool_started"
	EventToolFinished   EventType = "tool_finished"
	EventStopRequested  EventType = "stop_requested"
	EventRetryScheduled EventType = "retry_scheduled"
	EventFenced         EventType = "fenced"
)

// Terminal reports whether t ends a run's stream.
func (t EventType) Terminal() bool {
	switch t {
	case EventComplete, EventCancelled, EventFailed, EventRecoveryUnsupported:
		return true
	}
	return false
}

// Event is one event of a session. Fields that its type does not use are zero and absent from its JSON.
type Event struct {
	Seq         *uint64   `json:"seq"` // of the log entry; null: live only or terminal
	Type        EventType `json:"type"`
	SessionID   string    `json:"session_id"`
	ExecutionID string    `json:"execution_id"`
	Generation  string    `json:"generation"`
	Revision    uint64    `json:"revision"` // of the record; of a live event: the last one acknowledged
	Time        time.Time `json:"time"`

	Iteration  uint32             `json:"iteration,omitempty"`
	Round      uint32             `json:"round,omitempty"`
	Message    *pluginapi.Message `json:"message,omitempty"`
	Hook       *plugin.Record     `json:"hook,omitempty"`
	Checkpoint *CheckpointInfo    `json:"checkpoint,omitempty"`
	Started    *StartedInfo       `json:"started,omitempty"`

	Ending *Ending `json:"ending,omitempty"` // of the terminal ones

	Token  *Token                `json:"token,omitempty"`
	Call   *pluginapi.ToolCall   `json:"call,omitempty"`   // tool_started
	Result *pluginapi.ToolResult `json:"result,omitempty"` // tool_finished
	Retry  *Retry                `json:"retry,omitempty"`
	Reason string                `json:"reason,omitempty"` // stop_requested, fenced
}

// Ending is how a loop ended, as committed.
type Ending struct {
	Status              loop.Status        `json:"status"`
	ReasonCode          loop.ReasonCode    `json:"reason_code"`
	Reason              string             `json:"reason"`
	RuntimeStatus       loop.RuntimeStatus `json:"runtime_status"`
	IterationsStarted   uint32             `json:"iterations_started"`
	IterationsCompleted uint32             `json:"iterations_completed"`
	RoundsStarted       uint32             `json:"rounds_started"`
}

// Token is a piece of streamed text.
type Token struct {
	Text      string `json:"text"`
	Reasoning bool   `json:"reasoning,omitempty"`
}

// Retry says that a provider call is tried again.
type Retry struct {
	Attempt uint32    `json:"attempt"` // the one that failed, from 1
	WaitMS  int64     `json:"wait_ms"`
	Until   time.Time `json:"until"`
	Error   string    `json:"error"`
}
