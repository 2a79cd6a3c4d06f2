package ticket

import (
	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/progress"
	"github.com/loophost/loophost/cmd/hostctl/internal/report"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/ticket"
)

// answer is what a verb that changes tickets prints in JSON.
type answer struct {
	Type        string          `json:"type,omitempty"` // "result" behind a stream of tickets
	ScopeID     string          `json:"scope_id"`
	Did         string          `json:"did"` // the verb
	OperationID string          `json:"operation_id"`
	Receipt     *ticket.Receipt `json:"receipt,omitempty"` // of what was one command for all tickets
	Tickets     []moved         `json:"tickets,omitempty"` // in a stream they came before
	Error       *exit.Problem   `json:"error"`             // the first
	ExitCode    exit.Code       `json:"exit_code"`
}

// moved is one ticket after a verb. What the ticket is now is null where it is not there.
type moved struct {
	Type           string              `json:"type,omitempty"` // "ticket" in a stream
	TicketID       string              `json:"ticket_id"`
	AssignmentID   *string             `json:"assignment_id"` // the active one, or the one that was meant
	State          *ticket.TicketState `json:"state"`
	RecordRevision *uint64             `json:"record_revision"`
	WaitsFor       *string             `json:"waits_for"`
	Receipt        *ticket.Receipt     `json:"receipt"` // the stored one; null where it was refused
	Error          *exit.Problem       `json:"error"`
}

// typeTicket is the type of a line of a stream about one ticket.
const typeTicket = "ticket"

// movedOf is a ticket as it is in a state.
func movedOf(s *ticket.State, of *progress.Of, id string) moved {
	m := moved{TicketID: id}
	t, ok := s.Ticket(id)
	if !ok {
		return m
	}
	waits := of.Ticket(id).WaitsFor
	m.AssignmentID, m.State, m.RecordRevision, m.WaitsFor = known(t.ActiveAssignment), &t.State, &t.RecordRevision, known(waits)
	return m
}

// known is nil for the zero value.
func known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// print prints an answer, as a line for each ticket and one at the end where that is
// the format.
func (o *options) print(a answer) error {
	if o.output.Value == cli.JSONL {
		for _, m := range a.Tickets {
			m.Type = typeTicket
			if err := o.env.Print(m); err != nil {
				return err
			}
		}
		a.Type, a.Tickets = report.TypeResult, nil
	}
	return o.env.Print(a)
}

// finish ends a verb with what came of its wishes: the tickets in JSON or, where a
// wish was carried out, what say makes of it. The first error gives the exit code.
func (o *options) finish(s *ticket.State, scopeID, did string, wishes []*wish, say func(*wish, moved) error) error {
	a := answer{ScopeID: scopeID, Did: did, OperationID: o.tried}
	of := progress.New(s)
	for _, w := range wishes {
		m := movedOf(s, of, ticketOf(w.id))
		if m.TicketID != w.id {
			m.AssignmentID = &w.id
		}
		m.Receipt = w.receipt
		switch {
		case w.err != nil:
			v := exit.Of(host.Result{}, w.err, o.hints())
			m.Error = v.Error
			if a.Error == nil {
				a.Error, a.ExitCode = v.Error, v.Code
			}
			o.env.Problem(v.Error)
		case !o.output.Value.Object():
			if err := say(w, m); err != nil {
				return err
			}
		}
		a.Tickets = append(a.Tickets, m)
	}
	if o.output.Value.Object() {
		if err := o.print(a); err != nil {
			return err
		}
	}
	if a.Error != nil {
		return &verb.Reported{Code: a.ExitCode}
	}
	return nil
}
