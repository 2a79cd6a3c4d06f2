package ticket

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/loophost/loophost/host/ticket/internal/canon"
	"github.com/loophost/loophost/internal/strictjson"
)

// StopReceipt proves that an admitted child stopped: its task was joined, or its
// process group reaped. Exactly one of TaskInstance and PID is set.
type StopReceipt struct {
	Receipt      RuntimeReceipt `json:"receipt"`
	ChildBirth   string         `json:"child_birth"`
	Completed    bool           `json:"completed"`
	TaskInstance *string        `json:"task_instance,omitzero"` // a UUID that is not nil
	PID          *uint64        `json:"pid,omitzero"`           // not 0
}

// Canonical is the receipt's canonical JSON.
func (r *StopReceipt) Canonical() ([]byte, error) { return canon.Marshal(r) }

// DecodeStop reads a stop receipt of at most 4,096 bytes strictly: every field must
// be there, but for the one of task_instance and pid. Every error is ScopeDenied and
// says which field.
func DecodeStop(data []byte) (StopReceipt, error) {
	deny := func(detail string, err error) (StopReceipt, error) {
		return StopReceipt{}, &Error{Op: "decode", Key: "stop receipt", Kind: ScopeDenied, Detail: detail, Err: err}
	}
	if len(data) > MaxChildValueBytes {
		return deny(fmt.Sprintf("it has %d bytes; at most %d are allowed", len(data), MaxChildValueBytes), nil)
	}
	var r StopReceipt
	if err := strictjson.Unmarshal(data, &r); err != nil {
		return deny("", err)
	}
	var top, receipt map[string]jsontext.Value
	if err := strictjson.Unmarshal(data, &top); err != nil {
		return deny("", err)
	}
	if err := strictjson.Unmarshal(top["receipt"], &receipt); err != nil {
		return deny("receipt is missing", err)
	}
	for _, f := range [...]struct {
		in   map[string]jsontext.Value
		name string
	}{{top, "child_birth"}, {top, "completed"}, {receipt, "dispatch_key"}, {receipt, "spec_hash"}, {receipt, "run_id"}, {receipt, "session_id"}} {
		if v, ok := f.in[f.name]; !ok || v.Kind() == 'n' {
			return deny(f.name+" is missing", nil)
		}
	}
	return r, r.Validate()
}

// Validate checks that exactly one way of stopping is named, and well. Error: ScopeDenied.
func (r *StopReceipt) Validate() error {
	why := ""
	switch {
	case r.TaskInstance != nil && r.PID != nil:
		why = "both task_instance and pid are there; a stop is one or the other"
	case r.TaskInstance == nil && r.PID == nil:
		why = "neither task_instance nor pid is there"
	case r.PID != nil && *r.PID == 0:
		why = "pid is 0"
	case r.TaskInstance != nil:
		if u, err := uuid.Parse(*r.TaskInstance); err != nil || u == uuid.Nil || u.String() != *r.TaskInstance {
			why = "task_instance is no UUID in its canonical form, or the nil one"
		}
	}
	if why == "" {
		return nil
	}
	return &Error{Op: "stop receipt", Kind: ScopeDenied, Detail: why}
}
