package ticket

import "github.com/loophost/loophost/host/ticket/internal/canon"

// Keys of a child's metadata. They are reserved: no plugin can write them.
const (
	MetaDispatch        = "ticket.dispatch.v1"          // ChildDispatch
	MetaOwnedStop       = "ticket.owned_stop.v1"        // StopReceipt
	MetaTaskState       = "runtime.local_task.state"    // TaskRunning or TaskStopped
	MetaTaskInstance    = "runtime.local_task.instance" // a UUID, one for each execution
	MetaProcessIdentity = "runtime.process.identity"    // ProcessIdentity
)

// What MetaTaskState holds. Neither proves anything: only a stop receipt does.
const (
	TaskRunning = "running"
	TaskStopped = "stopped"
)

// ChildStatus is how a child's last run stands in canonical storage.
type ChildStatus string

// The statuses of a child. Only ChildCompleted has a result (T-7, T-9).
const (
	ChildRunning   ChildStatus = "running" // no final save yet
	ChildCompleted ChildStatus = "completed"
	ChildFailed    ChildStatus = "failed"
	ChildCancelled ChildStatus = "cancelled"
	ChildTimedOut  ChildStatus = "timed_out"
)

// Child is what canonical storage holds of a child session. The zero value is a
// child that storage does not have.
type Child struct {
	SessionID string
	Birth     string // as the store writes it; compared, never read
	Parent    string // the session that made it
	Root      string // the session at the top of the line
	Status    ChildStatus
	Metadata  map[string]string
	Last      *LastMessage // nil: no message
}

// LastMessage is the end of a child's transcript.
type LastMessage struct {
	Role      string // "assistant" where it may be a result
	Text      string
	ToolCalls bool // it asks for tools, so it is not the last word
}

// ChildSessionID is the id of the child session for a dispatch key, so that a child
// is found again by its key: 39 bytes of a-z, 0-9 and '-'.
func ChildSessionID(dispatchKey string) string {
	return "ticket-" + canon.Hash([]byte(dispatchKey))[:32]
}
