package ticket

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/loophost/loophost/host/ticket/internal/canon"
)

// Decision is what a command does.
type Decision struct {
	Receipt Receipt
	// Replayed: the operation was carried out before; the receipt is the stored one,
	// and there is nothing to publish.
	Replayed bool
	Next     *State // the state with the command; the same one where Replayed
	Entry    Entry  // what to store, without Prev, not to be changed; zero where Replayed
}

// Decide carries out a command on s, or refuses it with an *Error. s never
// changes. The look-up of the operation id comes before every other check (T-1):
// known under another principal it is ScopeDenied, with another request
// IdempotencyConflict, else the stored receipt is the answer.
func (s *State) Decide(c Command) (Decision, error) {
	if c.Request == nil {
		return Decision{}, &Error{Op: "decide", Kind: InvalidTransition, Detail: "the command asks for nothing"}
	}
	op := c.Request.Type()
	if n := len(c.OperationID); n == 0 || n > MaxIDBytes {
		return Decision{}, &Error{Op: op, Kind: InvalidTransition, Detail: fmt.Sprintf("the operation id has %d bytes; it needs 1 to %d", n, MaxIDBytes)}
	}
	request, unwritable := canonicalRequest(c.Request)
	if stored, ok := s.receipts.Get(c.OperationID); ok {
		return s.replay(op, c, request, stored)
	}
	if unwritable != nil {
		return Decision{}, unwritable
	}
	if c.OnlyAt != nil && *c.OnlyAt != s.seq {
		return Decision{}, &Error{Op: op, Kind: RevisionConflict, Detail: fmt.Sprintf("the scope is at seq %d; the command was decided at %d", s.seq, *c.OnlyAt)}
	}
	next := *s
	d := &draft{state: &next, by: c.Principal, op: op, operation: c.OperationID}
	if err := d.known(); err != nil {
		return Decision{}, err
	}
	if err := d.unreserved(c.Request); err != nil {
		return Decision{}, err
	}
	if err := c.Request.decide(d); err != nil {
		return Decision{}, err
	}
	next.seq++
	r := Receipt{OperationID: c.OperationID, Principal: c.principal(), RequestHash: canon.Hash(request), CanonicalRequest: request, CommittedSeq: next.seq, IDs: d.ids}
	if r.IDs == nil {
		r.IDs = []string{}
	}
	data, err := r.Canonical()
	if err != nil {
		return Decision{}, &Error{Op: op, Kind: InvalidTransition, Detail: "its receipt can't be written as JSON", Err: err}
	}
	next.receipts = next.receipts.Put(c.OperationID, data)
	return Decision{Receipt: r, Next: &next, Entry: Entry{Seq: next.seq, Receipt: data, Events: d.events}}, nil
}

// replay answers a command whose id is known. request is nil where it can't be written,
// and then it is not the one that was carried out.
func (s *State) replay(op string, c Command, request, stored []byte) (Decision, error) {
	r, err := decodeReceipt(stored)
	switch {
	case err != nil:
		return Decision{}, &Error{Op: op, Key: c.OperationID, Kind: AuthorityUnavailable, Detail: "the stored receipt can't be read", Err: err}
	case r.Principal != c.principal():
		return Decision{}, &Error{Op: op, Key: c.OperationID, Kind: ScopeDenied, Detail: "the operation is another principal's"}
	case !slices.Equal(r.CanonicalRequest, jsontext.Value(request)):
		return Decision{}, &Error{Op: op, Key: c.OperationID, Kind: IdempotencyConflict, Detail: "the operation id was used for another request; choose another id"}
	}
	return Decision{Receipt: r, Replayed: true, Next: s}, nil
}

// principal is what the receipt holds of who gave c. What a runtime reports is a
// fact about a run, and stays the same command when the host is started anew, under
// another id (M-4). A TakeOver is about the id itself.
func (c Command) principal() string {
	if c.Principal.role == RoleRuntime && c.Request.Type() != (TakeOver{}).Type() {
		return string(RoleRuntime)
	}
	return c.Principal.String()
}

// draft is a state in the making: events happen to it as they are decided.
type draft struct {
	state     *State
	by        Principal
	op        string
	operation string
	events    []Event
	ids       []string
}

func (d *draft) refuse(kind Kind, key, format string, args ...any) error {
	return &Error{Op: d.op, Key: key, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// known refuses nobody, and a supervisor of another scope.
func (d *draft) known() error {
	switch {
	case d.by.role == "" || d.by.id == "":
		return d.refuse(ScopeDenied, "", "the command has no principal")
	case d.by.role == RoleSupervisor && d.by.id != d.state.binding.SupervisorSessionID:
		return d.refuse(ScopeDenied, "", "session %q does not supervise this scope", d.by.id)
	}
	return nil
}

// unreserved refuses an id that a report prescribes for a request that is none: it
// would keep the report from ever being made.
func (d *draft) unreserved(r Request) error {
	if _, report := r.(interface{ Operation() string }); report {
		return nil
	}
	for _, prefix := range []string{admitPrefix, stopPrefix, submitPrefix} {
		if strings.HasPrefix(d.operation, prefix) {
			return d.refuse(ScopeDenied, d.operation, "ids that begin with %q are a runtime's; choose another", prefix)
		}
	}
	return nil
}

func (d *draft) allow(roles ...Role) error {
	if slices.Contains(roles, d.by.role) {
		return nil
	}
	return d.refuse(ScopeDenied, "", "a %s may not do that", d.by.role)
}

// coordinating refuses a runtime that does not hold the coordinator's role (T-2).
func (d *draft) coordinating() error {
	if d.by.role != RoleRuntime || d.by.id == d.state.authority.Coordinator {
		return nil
	}
	return d.refuse(ScopeDenied, "", "the host %q does not coordinate this scope", d.by.id)
}

func (d *draft) emit(ev Event) error {
	d.events = append(d.events, ev)
	if err := d.state.put(&ev); err != nil {
		return d.refuse(InvalidTransition, "", "%s", err)
	}
	return nil
}

// ticket is a copy to change. revision, if not 0, must be the record's.
func (d *draft) ticket(id string, revision uint64) (*Ticket, error) {
	t, ok := d.state.tickets.Get(id)
	if !ok {
		return nil, d.refuse(ScopeDenied, id, "there is no such ticket in this scope")
	}
	if revision != 0 && revision != t.RecordRevision {
		return nil, d.refuse(RevisionConflict, id, "the ticket is at revision %d, not %d; read it again", t.RecordRevision, revision)
	}
	return t.clone(), nil
}

func (d *draft) assignment(id string) (*Assignment, *Ticket, error) {
	a, ok := d.state.assignments.Get(id)
	if !ok {
		return nil, nil, d.refuse(ScopeDenied, id, "there is no such assignment in this scope")
	}
	t, err := d.ticket(a.Ticket, 0)
	if err != nil {
		return nil, nil, err
	}
	return a.clone(), t, nil
}

func (d *draft) moveTicket(t *Ticket, on, guard string) error {
	to, ok := next(ticketMoves, t.State, on, guard)
	if !ok {
		return d.refuse(InvalidTransition, t.ID, "the ticket is %s; that needs %s", t.State, either(sources(ticketMoves, on)))
	}
	if t.State = to; to != Blocked {
		t.Blocked = nil
	}
	return nil
}

func (d *draft) moveAssignment(a *Assignment, on, guard string) error {
	to, ok := next(assignmentMoves, a.State, on, guard)
	if !ok {
		return d.refuse(InvalidTransition, a.ID, "the assignment is %s; that needs %s", a.State, either(sources(assignmentMoves, on)))
	}
	a.State = to
	return nil
}

func either[S ~string](states []S) string { return strings.Join(words(states, ""), ", ") }

// saveTicket emits the ticket's new value. contract says whether it has changed.
func (d *draft) saveTicket(what string, t *Ticket, contract bool) error {
	t.RecordRevision++
	if !contract {
		t.Contract = nil
	}
	if !slices.Contains(d.ids, t.ID) {
		d.ids = append(d.ids, t.ID)
	}
	return d.emit(Event{Type: "ticket " + what, Ticket: t})
}

func (d *draft) saveAssignment(what string, a *Assignment) error {
	if !slices.Contains(d.ids, a.ID) {
		d.ids = append(d.ids, a.ID)
	}
	ev := Event{Type: "assignment " + what, Assignment: a}
	if _, open := d.state.intents.Get(a.ID); open && a.State != DispatchPending {
		ev.IntentDone = a.ID
	}
	return d.emit(ev)
}

func (d *draft) text(key, what, s string) error {
	if len(s) > MaxTextBytes || strings.TrimSpace(s) == "" {
		return d.refuse(InvalidTransition, key, "%s needs 1 to %d bytes that are not blank", what, MaxTextBytes)
	}
	return nil
}
