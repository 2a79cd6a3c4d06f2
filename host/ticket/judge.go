package ticket

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/loophost/loophost/host/ticket/internal/canon"
)

// JudgeStop is the stop that canonical storage proves of an assignment's run, to be
// published as it is (M-4). The child's status may still be running: a stop is
// published before the final save. Errors, none of which changes anything:
//
//   - AuthorityUnavailable: storage has no such child, or the child no stop receipt,
//     whatever else its metadata shows.
//   - ScopeDenied: the child, its dispatch or its receipt is another's, is not well
//     formed, or contradicts the child's status or metadata (T-6, T-7, T-13, T-14).
func (s *State) JudgeStop(assignment, run string, c Child) (Stop, error) {
	_, stop, err := s.judgeStop("judge stop", assignment, run, c)
	return stop, err
}

// Result is what a child's last message gives.
type Result struct {
	Content  []byte   // the artifact's bytes, to be stored before Submit is given
	Artifact Artifact // its content-addressed name
	Submit   Submit   // evidence: the operation that published the stop
}

// JudgeResult is the result that canonical storage holds of an assignment's run
// (T-7). s must hold the run's stop already, so a stop is always published first
// (T-13). ok is false for a child that did not complete: it has a stop and no
// result (T-9). Errors: those of JudgeStop, and
//
//   - AuthorityUnavailable: the stop is not published, or the child's final save is
//     not there yet.
//   - InvalidTransition: the child's last message can't be a result, and never
//     will; Fail ends the attempt (T-13).
func (s *State) JudgeResult(assignment, run string, c Child) (result Result, ok bool, err error) {
	const op = "judge result"
	a, stop, err := s.judgeStop(op, assignment, run, c)
	if err != nil {
		return Result{}, false, err
	}
	switch {
	case !a.ProcessStopped:
		return Result{}, false, &Error{Op: op, Key: a.ID, Kind: AuthorityUnavailable, Detail: "the stop is not published; publish it first"}
	case c.Status == ChildRunning:
		return Result{}, false, &Error{Op: op, Key: a.ID, Kind: AuthorityUnavailable, Detail: "the child's final save is not there yet; ask again after it"}
	case c.Status != ChildCompleted:
		return Result{}, false, nil
	}
	if why := unusable(c.Last); why != "" {
		return Result{}, false, &Error{Op: op, Key: a.ID, Kind: InvalidTransition, Detail: why}
	}
	content := []byte(c.Last.Text)
	artifact := NameArtifact(content)
	return Result{Content: content, Artifact: artifact, Submit: Submit{
		Assignment: a.ID, Receipt: *a.Runtime, Artifacts: []Artifact{artifact}, Evidence: []string{stop.Operation()},
	}}, true, nil
}

// NameArtifact names content by its hash.
func NameArtifact(content []byte) Artifact {
	sum := canon.Hash(content)
	return Artifact{URI: "sha256:" + sum, SHA256: sum}
}

// unusable says why a last message can't be a result, or "".
func unusable(m *LastMessage) string {
	switch {
	case m == nil:
		return "the child has no message"
	case m.Role != "assistant":
		return fmt.Sprintf("the child's last message is of role %q, not the assistant's", m.Role)
	case m.ToolCalls:
		return "the child's last message asks for tools"
	case strings.TrimSpace(m.Text) == "":
		return "the child's last message is blank"
	case len(m.Text) > MaxArtifactBytes:
		return fmt.Sprintf("the child's last message has %d bytes; at most %d are allowed", len(m.Text), MaxArtifactBytes)
	default:
		return ""
	}
}

func (s *State) judgeStop(op, assignment, run string, c Child) (*Assignment, Stop, error) {
	refuse := func(kind Kind, detail string, err error) (*Assignment, Stop, error) {
		return nil, Stop{}, &Error{Op: op, Key: assignment, Kind: kind, Detail: detail, Err: err}
	}
	a, ok := s.assignments.Get(assignment)
	switch {
	case !ok:
		return refuse(ScopeDenied, "there is no such assignment in this scope", nil)
	case c.SessionID == "":
		return refuse(AuthorityUnavailable, "storage has no child of it", nil)
	case a.Runtime == nil:
		return refuse(ScopeDenied, "no run was admitted", nil)
	}
	if why := s.stranger(a, run, c); why != "" {
		return refuse(ScopeDenied, why, nil)
	}
	value, ok := c.Metadata[MetaDispatch]
	if !ok {
		return refuse(ScopeDenied, "the child has no "+MetaDispatch, nil)
	}
	dispatch, err := DecodeChildDispatch([]byte(value))
	if err != nil {
		return refuse(ScopeDenied, "", err)
	}
	if field := dispatch.differs(s, a); field != "" {
		return refuse(ScopeDenied, field+" of "+MetaDispatch+" is not the assignment's", nil)
	}
	if dispatch.RootSessionID != c.Root {
		return refuse(ScopeDenied, "the child's root is not that of its dispatch", nil)
	}
	value, ok = c.Metadata[MetaOwnedStop]
	if !ok {
		return refuse(AuthorityUnavailable, "the child has no stop receipt; wait for it, or let a person confirm the stop", nil)
	}
	receipt, err := DecodeStop([]byte(value))
	if err != nil {
		return refuse(ScopeDenied, "", err)
	}
	for _, why := range []string{receipt.differs(a), receipt.unlike(c.Metadata), receipt.contradicts(c.Status)} {
		if why != "" {
			return refuse(ScopeDenied, why, nil)
		}
	}
	stop := Stop{Assignment: a.ID, Stop: receipt}
	if published, ok := s.Receipt(stop.Operation()); ok {
		request, err := canonicalRequest(stop)
		if err != nil || !bytes.Equal(request, published.CanonicalRequest) {
			return refuse(ScopeDenied, "another stop receipt of the run was published", err)
		}
	}
	return a, stop, nil
}

// stranger says in what a child is not the one that was admitted, or "".
func (s *State) stranger(a *Assignment, run string, c Child) string {
	switch {
	case run != a.Runtime.RunID:
		return fmt.Sprintf("the run %q was not admitted", run)
	case c.SessionID != a.Runtime.SessionID:
		return fmt.Sprintf("the session %q was not admitted", c.SessionID)
	case c.Birth != a.ChildBirth:
		return "the child's birth is not that of the one that was admitted"
	case c.Parent != s.binding.SupervisorSessionID:
		return fmt.Sprintf("the child's parent %q does not supervise this scope", c.Parent)
	default:
		return ""
	}
}

// differs says which field of a stop receipt is not the admitted run's, or "".
func (r *StopReceipt) differs(a *Assignment) string {
	field := ""
	switch {
	case r.ChildBirth != a.ChildBirth:
		field = "child_birth"
	case r.Receipt.RunID != a.Runtime.RunID:
		field = "run_id"
	case r.Receipt.SessionID != a.Runtime.SessionID:
		field = "session_id"
	case r.Receipt.DispatchKey != a.Runtime.DispatchKey:
		field = "dispatch_key"
	case r.Receipt.SpecHash != a.Runtime.SpecHash:
		field = "spec_hash"
	default:
		return ""
	}
	return field + " of " + MetaOwnedStop + " is not that of the admitted run"
}

// unlike says in what a stop receipt is not what the metadata beside it tells, or "".
// A joined task left its instance; a reaped process left no task.
func (r *StopReceipt) unlike(metadata map[string]string) string {
	state, hasState := metadata[MetaTaskState]
	instance, hasInstance := metadata[MetaTaskInstance]
	identity, hasIdentity := metadata[MetaProcessIdentity]
	switch {
	case r.TaskInstance != nil && state != TaskStopped:
		return fmt.Sprintf("%s is %q, not %q", MetaTaskState, state, TaskStopped)
	case r.TaskInstance != nil && instance != *r.TaskInstance:
		return "task_instance is not " + MetaTaskInstance
	case r.TaskInstance != nil && hasIdentity:
		return "task_instance is there, and so is " + MetaProcessIdentity
	case r.PID != nil && (hasState || hasInstance):
		return "pid is there, and so is a local task"
	case r.PID != nil && hasIdentity:
		p, err := DecodeProcessIdentity([]byte(identity))
		if err != nil {
			return err.Error()
		}
		if p.PID != *r.PID {
			return "pid is not that of " + MetaProcessIdentity
		}
	}
	return ""
}

// contradicts says why a child of a status can't have such a stop receipt, or ""
// (T-13). One that is still running has no final save, and may have either.
func (r *StopReceipt) contradicts(status ChildStatus) string {
	switch status {
	case ChildRunning:
		return ""
	case ChildCompleted:
		if !r.Completed {
			return "completed is false, but the child completed"
		}
		return ""
	case ChildFailed, ChildCancelled, ChildTimedOut:
		if r.Completed {
			return "completed is true, but the child " + strings.ReplaceAll(string(status), "_", " ")
		}
		return ""
	default:
		return fmt.Sprintf("the child's status %q is unknown", status)
	}
}
