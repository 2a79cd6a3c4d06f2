// Package report makes the one JSON object that a command ends with.
package report

import (
	"encoding/json"
	"io"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/pluginapi"
)

// Result is the object at the end of a command. Names and meanings are a
// contract. What is not known, or was never there, is null: ids and revision
// before a session is open, status before a loop is started, usage that the
// provider did not tell.
type Result struct {
	Type                string              `json:"type,omitempty"` // "result" in a stream of events
	SessionID           *string             `json:"session_id"`
	ExecutionID         *string             `json:"execution_id"`
	Generation          *string             `json:"generation"`
	Revision            *uint64             `json:"revision"`
	Outcome             exit.Outcome        `json:"outcome"`
	Status              *loop.Status        `json:"status"`
	ReasonCode          *loop.ReasonCode    `json:"reason_code"`
	Reason              *string             `json:"reason"`
	RuntimeStatus       *loop.RuntimeStatus `json:"runtime_status"`
	IterationsStarted   uint32              `json:"iterations_started"`
	IterationsCompleted uint32              `json:"iterations_completed"`
	RoundsStarted       uint32              `json:"rounds_started"`
	FinalText           string              `json:"final_text"`
	Error               *exit.Problem       `json:"error"`
	Usage               *pluginapi.Usage    `json:"usage"`
	Demo                bool                `json:"demo"`
	Replayed            bool                `json:"replayed"` // reported again under its once key
	ExitCode            exit.Code           `json:"exit_code"`
}

// Of puts a run's result and its verdict together.
func Of(res host.Result, v exit.Verdict) Result {
	return Result{
		SessionID: known(res.SessionID), ExecutionID: known(res.ExecutionID), Generation: known(res.Generation), Revision: known(res.Revision),
		Outcome: v.Outcome, Status: known(res.Status), ReasonCode: known(res.ReasonCode), Reason: known(res.Reason), RuntimeStatus: known(res.RuntimeStatus),
		IterationsStarted: res.IterationsStarted, IterationsCompleted: res.IterationsCompleted, RoundsStarted: res.RoundsStarted,
		FinalText: res.FinalText, Error: v.Error, Usage: res.Usage, Demo: res.Demo, Replayed: res.Replayed, ExitCode: v.Code,
	}
}

// Write writes v as one line of JSON.
func Write(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// known is nil for the zero value.
func known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// TypeResult is the type of the last object of a stream of events.
const TypeResult = "result"
