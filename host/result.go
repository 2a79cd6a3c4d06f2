package host

import (
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/pluginapi"
)

// Result is how a run ended, from the committed record where it is durable.
type Result struct {
	SessionID           string             `json:"session_id"`
	ExecutionID         string             `json:"execution_id"`
	Generation          string             `json:"generation"`
	Revision            uint64             `json:"revision"` // of the record
	Status              loop.Status        `json:"status"`   // "" where no loop was started
	ReasonCode          loop.ReasonCode    `json:"reason_code"`
	Reason              string             `json:"reason"`
	RuntimeStatus       loop.RuntimeStatus `json:"runtime_status"`
	IterationsStarted   uint32             `json:"iterations_started"`
	IterationsCompleted uint32             `json:"iterations_completed"`
	RoundsStarted       uint32             `json:"rounds_started"`
	FinalText           string             `json:"final_text"` // of the last answer without tool calls; "" where there was none
	Usage               *pluginapi.Usage   `json:"usage"`      // nil: unknown
	Demo                bool               `json:"demo"`
	Replayed            bool               `json:"replayed"` // reported again under its once key
}

// Outcome is the one word for the ending; it follows from status and reason code alone.
func (r Result) Outcome() loop.Result { return loop.ResultOf(r.Status, r.ReasonCode) }
