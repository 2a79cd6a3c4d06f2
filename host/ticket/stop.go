package ticket

import (
	"github.com/google/uuid"

	"github.com/loophost/loophost/host/ticket/internal/canon"
)

// StopReceipt proves that an admitted child stopped: its task was joined, or its
// process group reaped. Exactly one of TaskInstance and PID is set. Only whoever
// joined or reaped makes one: TaskStop or ProcessStop of the child's dispatch.
type StopReceipt struct {
	Receipt      RuntimeReceipt `json:"receipt"`
	ChildBirth   string         `json:"child_birth"`
	Completed    bool           `json:"completed"`
	TaskInstance *string        `json:"task_instance,omitzero"` // a UUID that is not nil
	PID          *uint64        `json:"pid,omitzero"`           // not 0
}

// TaskStop is the receipt of the task that ran under an instance UUID and was
// joined. Error: ScopeDenied.
func (d ChildDispatch) TaskStop(instance string, completed bool) (StopReceipt, error) {
	return d.stop(StopReceipt{TaskInstance: &instance, Completed: completed})
}

// ProcessStop is the receipt of the process that was reaped, when nothing of its
// group is left (T-14). Error: ScopeDenied.
func (d ChildDispatch) ProcessStop(pid uint64, completed bool) (StopReceipt, error) {
	return d.stop(StopReceipt{PID: &pid, Completed: completed})
}

func (d ChildDispatch) stop(r StopReceipt) (StopReceipt, error) {
	if d.Receipt == nil {
		return StopReceipt{}, badDocument(MetaDispatch, "no run was prepared, so none stopped", nil)
	}
	r.Receipt, r.ChildBirth = *d.Receipt, d.ChildBirth
	if err := r.Validate(); err != nil {
		return StopReceipt{}, err
	}
	return r, nil
}

// Canonical is the receipt's canonical JSON.
func (r *StopReceipt) Canonical() ([]byte, error) { return canon.Marshal(r) }

// Store is the value for MetaOwnedStop, given a child's metadata as it is. It is
// written once: changed is false where the same bytes are there already, and other
// bytes are ScopeDenied (T-6).
func (r *StopReceipt) Store(metadata map[string]string) (value string, changed bool, err error) {
	value, err = encodeDocument(MetaOwnedStop, r)
	if err != nil {
		return "", false, err
	}
	held, ok := metadata[MetaOwnedStop]
	if ok && held != value {
		return "", false, badDocument(MetaOwnedStop, "another receipt is there already; a stop is recorded once", nil)
	}
	return value, !ok, nil
}

// DecodeStop reads a stop receipt of at most 4,096 bytes strictly: every field must
// be there, but for the one of task_instance and pid. Every error is ScopeDenied and
// says which field.
func DecodeStop(data []byte) (StopReceipt, error) {
	var r StopReceipt
	if err := decodeDocument(data, MetaOwnedStop, &r, "receipt", "receipt.dispatch_key", "receipt.spec_hash", "receipt.run_id", "receipt.session_id",
		"child_birth", "completed"); err != nil {
		return StopReceipt{}, err
	}
	if err := r.Validate(); err != nil {
		return StopReceipt{}, err
	}
	return r, nil
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
	return badDocument(MetaOwnedStop, why, nil)
}
