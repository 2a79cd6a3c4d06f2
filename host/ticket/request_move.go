package ticket

// Of names a ticket, at a revision if that matters.
type Of struct {
	Ticket     string `json:"ticket"`
	IfRevision uint64 `json:"if_revision"` // 0: any
}

// What a supervisor or user may ask of one ticket.
type (
	// MarkReady says that a draft may be started.
	MarkReady struct{ Of }
	// Pause lets nothing be started any more; what runs goes on.
	Pause struct{ Of }
	// Resume takes a Pause back.
	Resume struct{ Of }
	// Unblock takes a ticket back to the state it was blocked in; its attempts count from 0.
	Unblock struct{ Of }
	// Cancel ends a ticket. A running attempt is asked to stop; one that was not
	// admitted yet never will be.
	Cancel struct{ Of }
	// Reopen makes an accepted or cancelled ticket ready again.
	Reopen struct{ Of }
	// Block lets a ticket wait, and takes the permit from its worker.
	Block struct {
		Of
		Reason string `json:"reason"`
	}
	// Accept takes the current submission as the result.
	Accept struct {
		Of
		Submission string `json:"submission"`
	}
	// Reject makes a submitted ticket ready again.
	Reject struct {
		Of
		Submission string `json:"submission"`
		Reason     string `json:"reason"`
	}
)

// Type implements Request.
func (MarkReady) Type() string { return "ready" }

// Type implements Request.
func (Pause) Type() string { return "pause" }

// Type implements Request.
func (Resume) Type() string { return "resume" }

// Type implements Request.
func (Unblock) Type() string { return "unblock" }

// Type implements Request.
func (Cancel) Type() string { return "cancel" }

// Type implements Request.
func (Reopen) Type() string { return "reopen" }

// Type implements Request.
func (Block) Type() string { return "block" }

// Type implements Request.
func (Accept) Type() string { return "accept" }

// Type implements Request.
func (Reject) Type() string { return "reject" }

// steer finds the ticket of a request that a supervisor or user may give, and moves it.
func (d *draft) steer(of Of, on string) (*Ticket, error) {
	if err := d.allow(RoleSupervisor, RoleUser); err != nil {
		return nil, err
	}
	t, err := d.ticket(of.Ticket, of.IfRevision)
	if err != nil {
		return nil, err
	}
	return t, d.moveTicket(t, on, "")
}

func (r MarkReady) decide(d *draft) error {
	t, err := d.steer(r.Of, onReady)
	if err != nil {
		return err
	}
	return d.saveTicket("readied", t, false)
}

func (r Pause) decide(d *draft) error { return d.setPaused(r.Of, onPause, true) }

func (r Resume) decide(d *draft) error { return d.setPaused(r.Of, onResume, false) }

func (d *draft) setPaused(of Of, on string, paused bool) error {
	if err := d.allow(RoleSupervisor, RoleUser); err != nil {
		return err
	}
	t, err := d.ticket(of.Ticket, of.IfRevision)
	if err != nil {
		return err
	}
	if _, ok := next(ticketMoves, t.State, on, ""); !ok {
		return d.refuse(InvalidTransition, t.ID, "the ticket is %s; that needs %s", t.State, either(sources(ticketMoves, on)))
	}
	if t.Paused == paused {
		return d.refuse(InvalidTransition, t.ID, "paused is %t already", paused)
	}
	t.Paused = paused
	return d.saveTicket(on+"d", t, false)
}

func (r Block) decide(d *draft) error {
	if err := d.text(r.Ticket, "the reason", r.Reason); err != nil {
		return err
	}
	t, err := d.ticket(r.Ticket, r.IfRevision)
	if err != nil {
		return err
	}
	was := t.State
	if t, err = d.steer(r.Of, onBlock); err != nil {
		return err
	}
	t.Blocked = &Blocking{Reason: r.Reason, ResumeState: was}
	if err := d.saveTicket("blocked", t, false); err != nil {
		return err
	}
	return d.follow(t.ActiveAssignment, onBlock, "blocked")
}

func (r Unblock) decide(d *draft) error {
	t, err := d.ticket(r.Ticket, r.IfRevision)
	if err != nil {
		return err
	}
	blocked := t.Blocked
	if t, err = d.steer(r.Of, onUnblock); err != nil {
		return err
	}
	t.State, t.Blocked = blocked.ResumeState, nil
	if t.State != Active {
		t.Attempts = 0
	}
	if err := d.saveTicket("unblocked", t, false); err != nil {
		return err
	}
	return d.follow(t.ActiveAssignment, onUnblock, "unblocked")
}

// follow moves the active assignment along with its ticket where its table has a row.
func (d *draft) follow(id, on, what string) error {
	if id == "" {
		return nil
	}
	a, _, err := d.assignment(id)
	if err != nil {
		return err
	}
	to, ok := next(assignmentMoves, a.State, on, "")
	if !ok || to == a.State {
		return nil
	}
	a.State = to
	return d.saveAssignment(what, a)
}

func (r Cancel) decide(d *draft) error {
	t, err := d.steer(r.Of, onCancel)
	if err != nil {
		return err
	}
	if err := d.saveTicket("cancelled", t, false); err != nil {
		return err
	}
	if t.ActiveAssignment == "" {
		return nil
	}
	return d.askToStop(t.ActiveAssignment)
}

// askToStop cancels an assignment as far as its state allows; one whose outcome is
// unknown, or that was asked before, stays as it is.
func (d *draft) askToStop(id string) error {
	a, _, err := d.assignment(id)
	if err != nil {
		return err
	}
	guard := ""
	if a.Runtime != nil {
		if guard = "not stopped"; a.ProcessStopped {
			guard = "stopped already"
		}
	}
	to, ok := next(assignmentMoves, a.State, onCancel, guard)
	switch {
	case !ok:
		return nil
	case to == AssignmentCancelled:
		return d.attemptOver(a, to, "cancelled")
	default:
		a.State = to
		return d.saveAssignment("asked to stop", a)
	}
}

func (r Reopen) decide(d *draft) error {
	t, err := d.steer(r.Of, onReopen)
	if err != nil {
		return err
	}
	// An attempt that was asked to stop and did not prove it stays the reason why
	// the next start waits (T-15), but it is not this round's any more.
	t.CurrentSubmission, t.AcceptedSubmission, t.ActiveAssignment, t.Attempts = "", "", "", 0
	return d.saveTicket("reopened", t, false)
}

func (r Accept) decide(d *draft) error {
	t, err := d.steer(r.Of, onAccept)
	if err != nil {
		return err
	}
	if held, _ := d.state.tickets.Get(t.ID); held.Contract.UserAcceptanceRequired && d.by.role != RoleUser {
		return d.refuse(ScopeDenied, t.ID, "its contract asks for a user's acceptance")
	}
	if r.Submission != t.CurrentSubmission {
		return d.refuse(RevisionConflict, t.ID, "the current submission is %q, not %q; read it again", t.CurrentSubmission, r.Submission)
	}
	t.AcceptedSubmission = r.Submission
	return d.saveTicket("accepted", t, false)
}

func (r Reject) decide(d *draft) error {
	if err := d.text(r.Ticket, "the reason", r.Reason); err != nil {
		return err
	}
	t, err := d.steer(r.Of, onReject)
	if err != nil {
		return err
	}
	if r.Submission != t.CurrentSubmission {
		return d.refuse(RevisionConflict, t.ID, "the current submission is %q, not %q; read it again", t.CurrentSubmission, r.Submission)
	}
	t.CurrentSubmission, t.Attempts = "", 0
	return d.saveTicket("rejected", t, false)
}
