package host

import (
	"fmt"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

// EntryType is what a log entry records.
type EntryType string

// The entry types.
const (
	EntryStarted    EntryType = "started"           // a loop was started
	EntryIteration  EntryType = "iteration_started" // an iteration was admitted
	EntryRound      EntryType = "round_started"     // a round was admitted
	EntryMessage    EntryType = "message"           // a message of the conversation
	EntryHook       EntryType = "hook"              // a decision of a hook or verifier
	EntryCheckpoint EntryType = "checkpoint"        // what the commit that carries it recorded
	EntryKV         EntryType = "kv"                // a plugin's key-value change
	EntryForked     EntryType = "forked"            // the messages before it come from another session
)

// Entry is one entry of a session's log. The field that its type names is set.
type Entry struct {
	Type        EntryType          `json:"type"`
	Time        time.Time          `json:"time"`
	ExecutionID string             `json:"execution_id"`
	Generation  string             `json:"generation"`
	Iteration   uint32             `json:"iteration,omitempty"`
	Round       uint32             `json:"round,omitempty"`
	Message     *pluginapi.Message `json:"message,omitempty"`
	Hook        *plugin.Record     `json:"hook,omitempty"`
	Checkpoint  *CheckpointInfo    `json:"checkpoint,omitempty"`
	KV          *KVEntry           `json:"kv,omitempty"`
	Started     *StartedInfo       `json:"started,omitempty"`
	Forked      *ForkInfo          `json:"forked,omitempty"`
}

// CheckpointInfo is what a commit recorded.
type CheckpointInfo struct {
	Name                string             `json:"name"` // a loop.Checkpoint, or "settle", "recovery", "checkpoint"
	LoopRevision        uint64             `json:"loop_revision"`
	Status              loop.Status        `json:"status"`
	ReasonCode          loop.ReasonCode    `json:"reason_code,omitempty"`
	RuntimeStatus       loop.RuntimeStatus `json:"runtime_status"`
	IterationsStarted   uint32             `json:"iterations_started"`
	IterationsCompleted uint32             `json:"iterations_completed"`
	RoundsStarted       uint32             `json:"rounds_started"`
}

// KVEntry is one change of a plugin's key-value entries. An empty value deletes.
type KVEntry struct {
	Plugin string `json:"plugin"`
	Key    string `json:"key"`
	Value  []byte `json:"value"`
}

// StartedInfo describes a started loop.
type StartedInfo struct {
	MaxIterations  uint32        `json:"max_iterations"`
	MaxTotalRounds uint32        `json:"max_total_rounds"`
	Provider       plugin.Info   `json:"provider"`
	Model          string        `json:"model"`
	Hooks          []plugin.Info `json:"hooks"`
	Tools          []plugin.Info `json:"tools"`
	Demo           bool          `json:"demo"`
}

// DecodeEntry reads one log entry strictly.
func DecodeEntry(data []byte) (Entry, error) {
	var e Entry
	if err := strictjson.Unmarshal(data, &e); err != nil {
		return Entry{}, fmt.Errorf("log entry: %w", err)
	}
	missing := false
	switch e.Type {
	case EntryMessage:
		missing = e.Message == nil
	case EntryHook:
		missing = e.Hook == nil
	case EntryCheckpoint:
		missing = e.Checkpoint == nil
	case EntryKV:
		missing = e.KV == nil
	case EntryStarted:
		missing = e.Started == nil
	case EntryForked:
		missing = e.Forked == nil
	case EntryIteration, EntryRound:
	default:
		return Entry{}, fmt.Errorf("log entry: type %q is unknown", e.Type)
	}
	if missing {
		return Entry{}, fmt.Errorf("log entry: a %s entry without its field", e.Type)
	}
	return e, nil
}

// Room for most entries, in bytes: of a message beside it, of a hook's decision, of others.
const messageEntry, hookEntry, otherEntry = 256, 640, 384

// Encode writes the entry.
func (e Entry) Encode() ([]byte, error) { return e.encode(nil) }

// encode is Encode with the message's JSON known; nil: it is not.
func (e *Entry) encode(message []byte) ([]byte, error) {
	room := otherEntry
	switch {
	case message != nil:
		room = messageEntry + len(message)
	case e.Hook != nil:
		room = hookEntry
	}
	return appendEntry(make([]byte, 0, room), e, message)
}
