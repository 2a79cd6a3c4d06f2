package ticket

import "slices"

// Binding ties a scope to the session that supervises it.
type Binding struct {
	ScopeID             string `json:"scope_id"`              // 1–256 bytes
	SupervisorSessionID string `json:"supervisor_session_id"` // 1–256 bytes
	BindingRevision     uint64 `json:"binding_revision"`
}

// Validate checks the ids' lengths.
func (b Binding) Validate() error {
	for _, f := range [...]struct{ name, id string }{{"scope_id", b.ScopeID}, {"supervisor_session_id", b.SupervisorSessionID}} {
		if len(f.id) == 0 || len(f.id) > MaxIDBytes {
			return &Error{Op: "binding", Key: f.name, Kind: ScopeDenied, Detail: "it needs 1 to 256 bytes"}
		}
	}
	return nil
}

// TicketState is the state of a ticket.
type TicketState string

// The states of a ticket.
const (
	Draft     TicketState = "draft"
	Ready     TicketState = "ready"
	Active    TicketState = "active"
	Submitted TicketState = "submitted"
	Accepted  TicketState = "accepted"
	Blocked   TicketState = "blocked"
	Cancelled TicketState = "cancelled"
)

// Ticket is one piece of work.
type Ticket struct {
	ID        string   `json:"id"`
	Parent    string   `json:"parent"`     // another ticket, or ""
	DependsOn []string `json:"depends_on"` // tickets that must be accepted first, sorted
	// Contract says what is to be done. nil only in an event: it did not change.
	Contract           *Contract   `json:"contract,omitzero"`
	State              TicketState `json:"state"`
	Paused             bool        `json:"paused"`           // no new start; what runs goes on
	Blocked            *Blocking   `json:"blocked,omitzero"` // set exactly in the state blocked
	RecordRevision     uint64      `json:"record_revision"`  // 1 at first; each change adds one
	ContractRevision   uint64      `json:"contract_revision"`
	Generation         uint64      `json:"generation"`        // of the newest start; 0: never started
	Attempts           uint64      `json:"attempts"`          // starts since a person or supervisor last readied it (T-15)
	ActiveAssignment   string      `json:"active_assignment"` // "" between attempts
	CurrentSubmission  string      `json:"current_submission"`
	AcceptedSubmission string      `json:"accepted_submission"`
}

// Blocking says why a ticket waits, and for what state.
type Blocking struct {
	Reason      string      `json:"reason"`
	ResumeState TicketState `json:"resume_state"`
}

func (t *Ticket) clone() *Ticket {
	c := *t
	c.DependsOn = slices.Clone(t.DependsOn)
	if t.Blocked != nil {
		b := *t.Blocked
		c.Blocked = &b
	}
	return &c
}

// AssignmentState is the state of one attempt.
type AssignmentState string

// The states of an assignment.
const (
	DispatchPending     AssignmentState = "dispatch_pending" // wanted; nothing runs
	Admitted            AssignmentState = "admitted"
	Running             AssignmentState = "running"
	AssignmentSubmitted AssignmentState = "submitted"
	AssignmentBlocked   AssignmentState = "blocked"
	Failed              AssignmentState = "failed"
	Cancelling          AssignmentState = "cancelling" // asked to stop; not proved yet
	AssignmentCancelled AssignmentState = "cancelled"
	OutcomeUnknown      AssignmentState = "outcome_unknown" // whoever ran it is gone
)

// live are the states in which a child may be at work.
func (s AssignmentState) live() bool {
	switch s {
	case DispatchPending, Admitted, Running, AssignmentBlocked, Cancelling:
		return true
	default:
		return false
	}
}

// Assignment is one attempt at a ticket.
type Assignment struct {
	ID               string          `json:"id"` // AssignmentID
	Ticket           string          `json:"ticket"`
	Generation       uint64          `json:"generation"`
	ContractRevision uint64          `json:"contract_revision"`
	AuthorityEpoch   uint64          `json:"authority_epoch"` // the one its permits need; follows the scope's while it lives
	DispatchKey      string          `json:"dispatch_key"`
	SpecHash         string          `json:"spec_hash"`
	SpecEpoch        uint64          `json:"spec_epoch"`       // the scope's epoch at the start, as the spec has it
	Host             string          `json:"host"`             // the runtime that runs it; "": whoever admits it
	Runtime          *RuntimeReceipt `json:"runtime,omitzero"` // nil: never admitted, so nothing ever ran
	ChildBirth       string          `json:"child_birth"`      // of the admitted child
	ProcessStopped   bool            `json:"process_stopped"`  // proved, or confirmed by a person
	State            AssignmentState `json:"state"`
	Inputs           []Input         `json:"inputs"`  // frozen at the start, sorted by ticket
	Effects          []string        `json:"effects"` // what the run reported that it did outside
}

func (a *Assignment) clone() *Assignment {
	c := *a
	c.Inputs = slices.Clone(a.Inputs)
	c.Effects = slices.Clone(a.Effects)
	if a.Runtime != nil {
		r := *a.Runtime
		c.Runtime = &r
	}
	return &c
}

func cloneInputs(in []Input) []Input {
	out := slices.Clone(in)
	for i := range out {
		out[i].Artifacts = slices.Clone(out[i].Artifacts)
	}
	return out
}

// quiet reports whether nothing of a can run: its stop is proved, or it was never
// admitted and can't be any more.
func (a *Assignment) quiet() bool {
	return a.ProcessStopped || a.Runtime == nil && (a.State == Failed || a.State == AssignmentCancelled)
}

// RuntimeReceipt names the run that was admitted.
type RuntimeReceipt struct {
	DispatchKey string `json:"dispatch_key"`
	SpecHash    string `json:"spec_hash"`
	RunID       string `json:"run_id"`
	SessionID   string `json:"session_id"`
}

// Artifact names content by its hash.
type Artifact struct {
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"` // lower-case hex
}

// Submission is a result taken from canonical storage.
type Submission struct {
	ID               string         `json:"id"` // the assignment's; an assignment submits once
	Ticket           string         `json:"ticket"`
	Assignment       string         `json:"assignment"`
	Generation       uint64         `json:"generation"`
	ContractRevision uint64         `json:"contract_revision"`
	Runtime          RuntimeReceipt `json:"runtime"`
	Inputs           []Input        `json:"inputs"`
	Artifacts        []Artifact     `json:"artifacts"`
	Evidence         []string       `json:"evidence"`
	Stale            bool           `json:"stale"` // T-8: kept, and never current
}

// Intent asks for a child to be ensured and dispatched.
type Intent struct {
	Assignment  string `json:"assignment"`
	Ticket      string `json:"ticket"`
	DispatchKey string `json:"dispatch_key"`
	SpecHash    string `json:"spec_hash"`
}
