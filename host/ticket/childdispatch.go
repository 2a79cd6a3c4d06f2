package ticket

// ChildDispatch is the document under MetaDispatch: which attempt a child session
// was made for and, once a run was prepared (life cycle, row 4), which run that is.
type ChildDispatch struct {
	Binding          Binding         `json:"binding"`
	Ticket           string          `json:"ticket"`
	Assignment       string          `json:"assignment"`
	Generation       uint64          `json:"generation"`
	ContractRevision uint64          `json:"contract_revision"`
	DispatchKey      string          `json:"dispatch_key"`
	SpecHash         string          `json:"spec_hash"`
	RootSessionID    string          `json:"root_session_id"`
	ChildBirth       string          `json:"child_birth,omitzero"` // "" until a run was prepared
	Receipt          *RuntimeReceipt `json:"receipt,omitzero"`     // nil until a run was prepared
}

// ChildDispatch is the document that the child of an assignment is made with; root
// is the session at the top of the supervisor's line. Error: ScopeDenied.
func (s *State) ChildDispatch(assignment, root string) (ChildDispatch, error) {
	a, ok := s.assignments.Get(assignment)
	if !ok {
		return ChildDispatch{}, &Error{Op: "dispatch", Key: assignment, Kind: ScopeDenied, Detail: "there is no such assignment in this scope"}
	}
	d := ChildDispatch{
		Binding: s.binding, Ticket: a.Ticket, Assignment: a.ID, Generation: a.Generation, ContractRevision: a.ContractRevision,
		DispatchKey: a.DispatchKey, SpecHash: a.SpecHash, RootSessionID: root,
	}
	return d, d.Validate()
}

// Prepared is d with the run that is to be admitted. Errors: ScopeDenied, also where
// another run, session or birth is in d already.
func (d ChildDispatch) Prepared(run, session, birth string) (ChildDispatch, error) {
	r := RuntimeReceipt{DispatchKey: d.DispatchKey, SpecHash: d.SpecHash, RunID: run, SessionID: session}
	if d.Receipt != nil && (*d.Receipt != r || d.ChildBirth != birth) {
		return ChildDispatch{}, badDocument(MetaDispatch, "another run was prepared already", nil)
	}
	d.Receipt, d.ChildBirth = &r, birth
	return d, d.Validate()
}

// Admit is the request to admit the run that d names, for an assignment that was
// read at an epoch. Error: ScopeDenied where no run was prepared.
func (d ChildDispatch) Admit(epoch uint64) (Admit, error) {
	if d.Receipt == nil {
		return Admit{}, badDocument(MetaDispatch, "no run was prepared", nil)
	}
	return Admit{Assignment: d.Assignment, Epoch: epoch, Receipt: *d.Receipt, ChildBirth: d.ChildBirth}, nil
}

// Encode is d's canonical JSON. Error: ScopeDenied, naming the field.
func (d ChildDispatch) Encode() (string, error) { return encodeDocument(MetaDispatch, d) }

// DecodeChildDispatch reads what Encode writes, strictly. Every error is
// ScopeDenied and says which field.
func DecodeChildDispatch(data []byte) (ChildDispatch, error) {
	var d ChildDispatch
	if err := decodeDocument(data, MetaDispatch, &d, "binding", "binding.scope_id", "binding.supervisor_session_id", "binding.binding_revision",
		"ticket", "assignment", "generation", "contract_revision", "dispatch_key", "spec_hash", "root_session_id",
		"receipt.dispatch_key", "receipt.spec_hash", "receipt.run_id", "receipt.session_id"); err != nil {
		return ChildDispatch{}, err
	}
	if err := d.Validate(); err != nil {
		return ChildDispatch{}, err
	}
	return d, nil
}

// Validate checks that d speaks of one attempt and at most one run. Error:
// ScopeDenied, naming the field.
func (d ChildDispatch) Validate() error {
	if err := d.Binding.Validate(); err != nil {
		return err
	}
	why := ""
	switch {
	case !validTicketID(d.Ticket):
		why = "ticket is no ticket's id"
	case d.Generation == 0:
		why = "generation is 0"
	case d.ContractRevision == 0:
		why = "contract_revision is 0"
	case d.Assignment != AssignmentID(d.Ticket, d.Generation):
		why = "assignment is not that of the ticket and the generation"
	case d.DispatchKey != dispatchKey(d.Binding.ScopeID, d.Assignment, d.Generation):
		why = "dispatch_key is not that of the scope, the assignment and the generation"
	case !validHash(d.SpecHash):
		why = "spec_hash is no SHA-256 in lower-case hex"
	case !validID(d.RootSessionID):
		why = "root_session_id needs 1 to 256 bytes"
	case (d.Receipt == nil) != (d.ChildBirth == ""):
		why = "child_birth and receipt are there together or not at all"
	case d.Receipt == nil:
	case d.Receipt.DispatchKey != d.DispatchKey:
		why = "receipt.dispatch_key is another's"
	case d.Receipt.SpecHash != d.SpecHash:
		why = "receipt.spec_hash is another's"
	case !validID(d.Receipt.RunID):
		why = "receipt.run_id needs 1 to 256 bytes"
	case !validID(d.Receipt.SessionID):
		why = "receipt.session_id needs 1 to 256 bytes"
	case !validID(d.ChildBirth):
		why = "child_birth needs 1 to 256 bytes"
	}
	if why == "" {
		return nil
	}
	return badDocument(MetaDispatch, why, nil)
}

// differs names the first field of d that is not the assignment's, or "".
func (d ChildDispatch) differs(s *State, a *Assignment) string {
	switch {
	case d.Binding != s.binding:
		return "binding"
	case d.Assignment != a.ID || d.Ticket != a.Ticket || d.Generation != a.Generation:
		return "assignment"
	case d.ContractRevision != a.ContractRevision:
		return "contract_revision"
	case d.DispatchKey != a.DispatchKey:
		return "dispatch_key"
	case d.SpecHash != a.SpecHash:
		return "spec_hash"
	case d.Receipt == nil || a.Runtime == nil || *d.Receipt != *a.Runtime:
		return "receipt"
	case d.ChildBirth != a.ChildBirth:
		return "child_birth"
	default:
		return ""
	}
}
