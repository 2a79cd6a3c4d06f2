package ticket

import (
	"fmt"
	"slices"
)

var (
	ticketStates     = []TicketState{Draft, Ready, Active, Submitted, Accepted, Blocked, Cancelled}
	assignmentStates = []AssignmentState{DispatchPending, Admitted, Running, AssignmentSubmitted, AssignmentBlocked, Failed, Cancelling, AssignmentCancelled, OutcomeUnknown}
)

// whole says in what a ticket that was read is none that the rules can make, or "".
// What it checks is what the rules rely on.
func (t *Ticket) whole() string {
	switch {
	case !validTicketID(t.ID):
		return fmt.Sprintf("%q is no ticket's id", t.ID)
	case !slices.Contains(ticketStates, t.State):
		return fmt.Sprintf("ticket %q is in the unknown state %q", t.ID, t.State)
	case (t.State == Blocked) != (t.Blocked != nil):
		return fmt.Sprintf("ticket %q is %s, which does not go with its blocking", t.ID, t.State)
	case t.Blocked != nil && !slices.Contains([]TicketState{Draft, Ready, Active, Submitted}, t.Blocked.ResumeState):
		return fmt.Sprintf("ticket %q can't be resumed as %q", t.ID, t.Blocked.ResumeState)
	default:
		return ""
	}
}

// whole is the same of an assignment.
func (a *Assignment) whole() string {
	switch ran := []AssignmentState{Admitted, Running, AssignmentSubmitted, AssignmentBlocked, Cancelling}; {
	case a.ID != AssignmentID(a.Ticket, a.Generation):
		return fmt.Sprintf("assignment %q is not that of its ticket and generation", a.ID)
	case !slices.Contains(assignmentStates, a.State):
		return fmt.Sprintf("assignment %q is in the unknown state %q", a.ID, a.State)
	case a.Runtime == nil && slices.Contains(ran, a.State):
		return fmt.Sprintf("assignment %q is %s, but no run was admitted", a.ID, a.State)
	default:
		return ""
	}
}
