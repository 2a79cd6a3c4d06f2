package ticket

import (
	"fmt"
	"iter"
	"slices"

	"github.com/loophost/loophost/host/ticket/internal/pmap"
)

// SnapshotSchema is the version of a snapshot's JSON.
const SnapshotSchema = 1

// State is a scope at one seq. It never changes: Decide and Apply give new ones
// that share what did not change, at a cost that does not depend on the scope's size.
type State struct {
	binding     Binding
	seq         uint64
	authority   Authority
	tickets     pmap.Map[*Ticket]
	assignments pmap.Map[*Assignment]
	submissions pmap.Map[*Submission]
	intents     pmap.Map[*Intent]
	receipts    pmap.Map[[]byte] // canonical

	// Found from the above, never stored.
	ready pmap.Map[struct{}] // tickets in the state ready
	open  pmap.Map[struct{}] // assignments whose child may be at work, or nobody knows
}

// New is an empty scope at seq 0 and epoch 0. Error: ScopeDenied for a bad binding.
func New(b Binding) (*State, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	return &State{binding: b}, nil
}

// Binding is what the scope is bound to.
func (s *State) Binding() Binding { return s.binding }

// Seq is how many commands were carried out.
func (s *State) Seq() uint64 { return s.seq }

// Authority is who coordinates; the zero value: nobody yet.
func (s *State) Authority() Authority { return s.authority }

// Ticket is a copy of a ticket.
func (s *State) Ticket(id string) (Ticket, bool) {
	t, ok := s.tickets.Get(id)
	if !ok {
		return Ticket{}, false
	}
	c := t.clone()
	c.Contract = t.Contract.clone()
	return *c, true
}

// Assignment is a copy of an assignment.
func (s *State) Assignment(id string) (Assignment, bool) {
	a, ok := s.assignments.Get(id)
	if !ok {
		return Assignment{}, false
	}
	c := a.clone()
	c.Inputs = cloneInputs(a.Inputs)
	return *c, true
}

// Submission is a copy of a submission.
func (s *State) Submission(id string) (Submission, bool) {
	sub, ok := s.submissions.Get(id)
	if !ok {
		return Submission{}, false
	}
	c := *sub
	c.Inputs, c.Artifacts, c.Evidence = cloneInputs(sub.Inputs), slices.Clone(sub.Artifacts), slices.Clone(sub.Evidence)
	return c, true
}

// Receipt is the stored receipt of an operation.
func (s *State) Receipt(operation string) (Receipt, bool) {
	data, ok := s.receipts.Get(operation)
	if !ok {
		return Receipt{}, false
	}
	r, err := decodeReceipt(data)
	return r, err == nil
}

// Counts says how much a scope holds.
type Counts struct{ Tickets, Assignments, Submissions, Intents, Receipts int }

// Counts counts.
func (s *State) Counts() Counts {
	return Counts{s.tickets.Len(), s.assignments.Len(), s.submissions.Len(), s.intents.Len(), s.receipts.Len()}
}

// Tickets walks all tickets by id. What it yields must not be changed.
func (s *State) Tickets() iter.Seq[*Ticket] { return values(s.tickets) }

// Assignments walks all assignments by id. What it yields must not be changed.
func (s *State) Assignments() iter.Seq[*Assignment] { return values(s.assignments) }

// Submissions walks all submissions by id. What it yields must not be changed.
func (s *State) Submissions() iter.Seq[*Submission] { return values(s.submissions) }

// Intents walks the dispatches that nobody has admitted yet. What it yields must not be changed.
func (s *State) Intents() iter.Seq[*Intent] { return values(s.intents) }

// Intent is the wish to dispatch an assignment; none where somebody admitted it, or
// nobody may any more.
func (s *State) Intent(assignment string) (Intent, bool) {
	in, ok := s.intents.Get(assignment)
	if !ok {
		return Intent{}, false
	}
	return *in, true
}

// Startable walks the tickets that Start would take now. What it yields must not be changed.
func (s *State) Startable() iter.Seq[*Ticket] {
	return func(yield func(*Ticket) bool) {
		for id := range s.ready.All() {
			t, _ := s.tickets.Get(id)
			if s.startable(t) == nil && !yield(t) {
				return
			}
		}
	}
}

// Live walks the assignments whose child may be at work. What it yields must not be changed.
func (s *State) Live() iter.Seq[*Assignment] {
	return func(yield func(*Assignment) bool) {
		for a := range s.Unsettled() {
			if a.State.live() && !yield(a) {
				return
			}
		}
	}
}

// Unsettled walks the live assignments and those whose outcome is unknown: what a
// coordinator looks after when it was started anew. What it yields must not be changed.
func (s *State) Unsettled() iter.Seq[*Assignment] {
	return func(yield func(*Assignment) bool) {
		for id := range s.open.All() {
			if a, _ := s.assignments.Get(id); !yield(a) {
				return
			}
		}
	}
}

func values[V any](m pmap.Map[V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range m.All() {
			if !yield(v) {
				return
			}
		}
	}
}

// Dispatch is a copy of the spec of an assignment as it was started. Errors:
// RevisionConflict where the contract was revised since (its result would be
// stale), ScopeDenied where there is no such assignment.
func (s *State) Dispatch(assignment string) (DispatchSpec, error) {
	a, ok := s.assignments.Get(assignment)
	if !ok {
		return DispatchSpec{}, &Error{Op: "dispatch", Key: assignment, Kind: ScopeDenied, Detail: "there is no such assignment"}
	}
	t, _ := s.tickets.Get(a.Ticket)
	if t.ContractRevision != a.ContractRevision {
		return DispatchSpec{}, &Error{Op: "dispatch", Key: assignment, Kind: RevisionConflict, Detail: fmt.Sprintf("the contract is at revision %d, the assignment at %d", t.ContractRevision, a.ContractRevision)}
	}
	spec := s.spec(t, a)
	spec.Contract, spec.Inputs = t.Contract.clone(), cloneInputs(a.Inputs)
	return spec, nil
}

func (s *State) spec(t *Ticket, a *Assignment) DispatchSpec {
	return DispatchSpec{
		Binding: s.binding, Ticket: t.ID, Assignment: a.ID, Generation: a.Generation, ContractRevision: a.ContractRevision,
		AuthorityEpoch: a.SpecEpoch, Contract: t.Contract, Inputs: a.Inputs,
	}
}

// Permit says whether a worker may act now (T-5): nil, or ScopeDenied with the reason.
func (s *State) Permit(p Principal) error {
	a, ok := s.assignments.Get(p.assignment)
	if p.role != RoleWorker || !ok {
		return &Error{Op: "permit", Key: p.assignment, Kind: ScopeDenied, Detail: "it is not the worker of an assignment"}
	}
	t, _ := s.tickets.Get(a.Ticket)
	why := ""
	switch {
	case a.Runtime == nil || a.Runtime.RunID != p.run || a.Runtime.SessionID != p.id || a.Generation != p.generation:
		why = "another run was admitted, or none"
	case a.ProcessStopped:
		why = "its stop is proved"
	case a.State != Admitted && a.State != Running:
		why = "the assignment is " + string(a.State)
	case a.AuthorityEpoch != s.authority.Epoch:
		why = "the authority changed hands"
	case a.ContractRevision != t.ContractRevision:
		why = "the contract was revised"
	case a.Generation != t.Generation || t.ActiveAssignment != a.ID:
		why = "a later attempt took over"
	case t.State != Active:
		why = "the ticket is " + string(t.State)
	default:
		return nil
	}
	return &Error{Op: "permit", Key: a.ID, Kind: ScopeDenied, Detail: why}
}
