package host

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

// HeadSchema is the version of Head's JSON.
const HeadSchema = 1

// MaxOnceKeys is how many ended loops a session remembers by their once key; the oldest go first.
const MaxOnceKeys = 16

// MaxOnceKeyBytes bounds a once key.
const MaxOnceKeyBytes = 256

// Head is a session's head document.
type Head struct {
	Schema  int          `json:"schema"`
	Created time.Time    `json:"created"`
	Loop    *loop.State  `json:"loop"` // nil: no loop yet
	Runtime loop.Runtime `json:"runtime"`
	// Run describes the last loop that was started; nil before the first.
	Run *RunInfo `json:"run"`
	// Once are the ended loops that were started under a once key, oldest first.
	Once []OnceRecord `json:"once,omitempty"`
	// Forked says where the session's messages come from, if it is a fork.
	Forked *ForkInfo `json:"forked,omitempty"`
	// Child describes a session that does an assignment of a ticket; nil: it does none.
	Child *Child `json:"child,omitempty"`
}

// RunInfo describes a loop beside its state.
type RunInfo struct {
	Provider       string           `json:"provider"`
	ProviderDigest string           `json:"provider_digest"`
	Model          string           `json:"model"`
	Demo           bool             `json:"demo"`
	OnceKey        string           `json:"once_key,omitempty"`
	Started        time.Time        `json:"started"`
	Usage          *pluginapi.Usage `json:"usage"`     // of the loop; nil: unknown
	FinalSeq       uint64           `json:"final_seq"` // log entry of its last answer without tool calls; 0: none
}

// OnceRecord is an ended loop, kept so that it can be reported again.
type OnceRecord struct {
	Key    string `json:"key"`
	Result Result `json:"result"` // without FinalText, which is in the log
	Final  uint64 `json:"final_seq"`
}

// ForkInfo names the state of the session that a fork was made from.
type ForkInfo struct {
	SessionID string     `json:"session_id"`
	Mark      store.Mark `json:"mark"`
}

// DecodeHead reads a session's head. Malformed, oversized or inconsistent state
// is an error that wraps loop.ErrState, and nothing may run on it.
func DecodeHead(data []byte) (Head, error) {
	var raw struct {
		Schema  int             `json:"schema"`
		Created time.Time       `json:"created"`
		Loop    json.RawMessage `json:"loop"`
		Runtime loop.Runtime    `json:"runtime"`
		Run     *RunInfo        `json:"run"`
		Once    []OnceRecord    `json:"once,omitempty"`
		Forked  *ForkInfo       `json:"forked,omitempty"`
		Child   *Child          `json:"child,omitempty"`
	}
	if err := strictjson.Unmarshal(data, &raw); err != nil {
		return Head{}, fmt.Errorf("%w: session head: %w", loop.ErrState, err)
	}
	if raw.Schema != HeadSchema {
		return Head{}, fmt.Errorf("%w: session head: schema %d is unknown; this host knows %d", loop.ErrState, raw.Schema, HeadSchema)
	}
	if err := raw.Runtime.Validate(); err != nil {
		return Head{}, err
	}
	state, err := loop.Decode(raw.Loop)
	if err != nil {
		return Head{}, err
	}
	if raw.Child != nil {
		if err := raw.Child.Validate(); err != nil {
			return Head{}, err
		}
	}
	return Head{Schema: raw.Schema, Created: raw.Created, Loop: state, Runtime: raw.Runtime, Run: raw.Run, Once: raw.Once, Forked: raw.Forked, Child: raw.Child}, nil
}

// Encode writes the head; it refuses an invalid loop state.
func (h Head) Encode() ([]byte, error) {
	if h.Loop != nil {
		// Bounded fields keep the serialised state under loop.MaxStateBytes.
		if err := h.Loop.Validate(); err != nil {
			return nil, err
		}
	}
	if err := h.Runtime.Validate(); err != nil {
		return nil, err
	}
	if h.Child != nil {
		if err := h.Child.Validate(); err != nil {
			return nil, err
		}
	}
	return appendHead(make([]byte, 0, 1<<10), &h)
}

// NewHead is the head of a session without a loop.
func NewHead(created time.Time) Head {
	return Head{Schema: HeadSchema, Created: created.UTC(), Runtime: loop.Runtime{Status: loop.RuntimeIdle}}
}
