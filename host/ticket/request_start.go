package ticket

// Start begins an attempt at a ready ticket: an assignment that waits for its
// dispatch, and the intent to dispatch it, in one step. Its inputs are frozen. By a
// supervisor, a user, or the coordinator. Errors: ResourceBlocked while the ticket
// is paused or a dependency is not accepted; AuthorityUnavailable while the attempt
// before may still run (T-15).
type Start struct {
	Of
	Host string `json:"host"` // the runtime that must run it: the coordinator; "": any that admits it
}

// Type implements Request.
func (Start) Type() string { return "start" }

func (r Start) decide(d *draft) error {
	if err := d.allow(RoleSupervisor, RoleUser, RoleRuntime); err != nil {
		return err
	}
	if err := d.coordinating(); err != nil {
		return err
	}
	if r.Host != "" && r.Host != d.state.authority.Coordinator {
		return d.refuse(ScopeDenied, r.Ticket, "the host %q does not coordinate this scope", r.Host)
	}
	t, err := d.ticket(r.Ticket, r.IfRevision)
	if err != nil {
		return err
	}
	if err := d.moveTicket(t, onStart, ""); err != nil {
		return err
	}
	if err := d.state.startable(t); err != nil {
		return err
	}
	t.Generation++
	t.Attempts++
	a := &Assignment{
		ID: AssignmentID(t.ID, t.Generation), Ticket: t.ID, Generation: t.Generation, ContractRevision: t.ContractRevision,
		AuthorityEpoch: d.state.authority.Epoch, SpecEpoch: d.state.authority.Epoch, Host: r.Host,
		State: DispatchPending, Inputs: d.state.inputs(t), Effects: []string{},
	}
	spec := d.state.spec(t, a)
	a.DispatchKey = spec.DispatchKey()
	if n := len(a.DispatchKey); n > MaxKeyBytes {
		return d.refuse(ContextBudgetExceeded, t.ID, "the attempt's dispatch key would have %d bytes; at most %d are allowed: make a ticket with a shorter id", n, MaxKeyBytes)
	}
	if a.SpecHash, err = spec.Hash(); err != nil {
		return err
	}
	t.ActiveAssignment = a.ID
	if err := d.saveTicket("started", t, false); err != nil {
		return err
	}
	if err := d.saveAssignment("pending", a); err != nil {
		return err
	}
	return d.emit(Event{Type: "dispatch wanted", Intent: &Intent{Assignment: a.ID, Ticket: t.ID, DispatchKey: a.DispatchKey, SpecHash: a.SpecHash}})
}

// startable is nil, or says what a ready ticket waits for.
func (s *State) startable(t *Ticket) error {
	refuse := func(kind Kind, detail string) error {
		return &Error{Op: "start", Key: t.ID, Kind: kind, Detail: detail}
	}
	if t.Paused {
		return refuse(ResourceBlocked, "the ticket is paused; resume it")
	}
	for _, id := range t.DependsOn {
		if dep, ok := s.tickets.Get(id); !ok || dep.State != Accepted {
			return refuse(ResourceBlocked, "it waits for "+id+" to be accepted")
		}
	}
	if before, ok := s.assignments.Get(AssignmentID(t.ID, t.Generation)); ok && !before.quiet() {
		return refuse(AuthorityUnavailable, "nothing proves that "+before.ID+" stopped; wait for its stop receipt, or let a person confirm the stop")
	}
	return nil
}

// inputs are what the dependencies of t gave, as they are now.
func (s *State) inputs(t *Ticket) []Input {
	out := make([]Input, 0, len(t.DependsOn))
	for _, id := range t.DependsOn {
		dep, _ := s.tickets.Get(id)
		in := Input{Ticket: id, ContractRevision: dep.ContractRevision, Submission: dep.AcceptedSubmission, Artifacts: []Artifact{}}
		if sub, ok := s.submissions.Get(dep.AcceptedSubmission); ok {
			in.Artifacts = sub.Artifacts
		}
		out = append(out, in)
	}
	return out
}

// current reports whether every frozen input is still what its ticket was accepted for.
func (s *State) current(inputs []Input) bool {
	for _, in := range inputs {
		if dep, ok := s.tickets.Get(in.Ticket); !ok || dep.State != Accepted || dep.AcceptedSubmission != in.Submission {
			return false
		}
	}
	return true
}

// attemptOver ends an attempt without result. Where it was its ticket's active one,
// the ticket is ready for the next attempt, or blocked when all are spent (T-15).
func (d *draft) attemptOver(a *Assignment, to AssignmentState, what string) error {
	a.State = to
	if err := d.saveAssignment(what, a); err != nil {
		return err
	}
	t, err := d.ticket(a.Ticket, 0)
	if err != nil || t.ActiveAssignment != a.ID {
		return err
	}
	t.ActiveAssignment = ""
	switch {
	case t.State == Blocked && t.Blocked.ResumeState == Active:
		t.Blocked.ResumeState = Ready
	case t.State == Active:
		guard := ifAttemptsLeft
		if t.Attempts >= t.Contract.attempts() {
			guard = ifAttemptsSpent
		}
		if err := d.moveTicket(t, onAttemptOver, guard); err != nil {
			return err
		}
		if t.State == Blocked {
			t.Blocked = &Blocking{Reason: "all attempts are spent", ResumeState: Ready}
		}
	}
	return d.saveTicket("attempt over", t, false)
}
