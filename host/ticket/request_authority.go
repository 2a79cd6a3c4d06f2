package ticket

// TakeOver gives the coordinator's role to the runtime that asks. The epoch rises
// only where the role changes hands, and only these assignments become
// outcome_unknown: those that ran, or were to run, inside the host that lost the
// role, and those in Expired. The others keep running under the new epoch (T-2).
type TakeOver struct {
	Expired []string `json:"expired"` // whose worker's lease has run out; in any order; those that are over by now do not matter
	// IfEpoch, if not nil, is the epoch that it follows; at any other it is a
	// RevisionConflict. So a host that was late can't displace a later one.
	IfEpoch *uint64 `json:"if_epoch,omitzero"`
}

// Type implements Request.
func (TakeOver) Type() string { return "take-over" }

func (r TakeOver) normal() Request {
	r.Expired = sorted(r.Expired)
	return r
}

func (r TakeOver) decide(d *draft) error {
	if err := d.allow(RoleRuntime); err != nil {
		return err
	}
	was := d.state.authority
	if was.Coordinator == d.by.id {
		return nil
	}
	if r.IfEpoch != nil && *r.IfEpoch != was.Epoch {
		return d.refuse(RevisionConflict, "", "the authority is at epoch %d, not %d", was.Epoch, *r.IfEpoch)
	}
	expired := map[string]bool{}
	for _, id := range r.Expired {
		if _, _, err := d.assignment(id); err != nil {
			return err
		}
		expired[id] = true
	}
	var lost []*Assignment
	for a := range d.state.Live() {
		if expired[a.ID] || was.Coordinator != "" && a.Host == was.Coordinator {
			lost = append(lost, a.clone())
		}
	}
	for _, a := range lost {
		if err := d.lose(a); err != nil {
			return err
		}
	}
	return d.emit(Event{Type: "authority", Authority: &Authority{Epoch: was.Epoch + 1, Coordinator: d.by.id}})
}

// lose: nobody knows what became of a. Where its stop is proved, or will be, its
// result can still be taken from storage.
func (d *draft) lose(a *Assignment) error {
	if err := d.moveAssignment(a, onLost, ""); err != nil {
		return err
	}
	return d.saveAssignment("lost", a)
}

// LoseLease says that an assignment's worker lost its lease. By the coordinator.
type LoseLease struct {
	Assignment string `json:"assignment"`
}

// Type implements Request.
func (LoseLease) Type() string { return "lose-lease" }

func (r LoseLease) decide(d *draft) error {
	if err := d.allow(RoleRuntime); err != nil {
		return err
	}
	if err := d.coordinating(); err != nil {
		return err
	}
	a, _, err := d.assignment(r.Assignment)
	if err != nil {
		return err
	}
	return d.lose(a)
}

// CancelAttempt asks one attempt to stop and leaves its ticket as it is: an orphan
// (T-11), or one that takes too long. By the coordinator, a supervisor or a user.
type CancelAttempt struct {
	Assignment string `json:"assignment"`
	Reason     string `json:"reason"`
}

// Type implements Request.
func (CancelAttempt) Type() string { return "cancel-attempt" }

func (r CancelAttempt) decide(d *draft) error {
	if err := d.allow(RoleRuntime, RoleSupervisor, RoleUser); err != nil {
		return err
	}
	if err := d.coordinating(); err != nil {
		return err
	}
	if err := d.text(r.Assignment, "the reason", r.Reason); err != nil {
		return err
	}
	a, _, err := d.assignment(r.Assignment)
	if err != nil {
		return err
	}
	if _, ok := next(assignmentMoves, a.State, onCancel, ""); !ok {
		return d.refuse(InvalidTransition, a.ID, "the assignment is %s; that needs %s", a.State, either(sources(assignmentMoves, onCancel)))
	}
	return d.askToStop(a.ID)
}

// Fail ends an attempt that gave no result: it was never admitted, or it stopped
// and left nothing to submit (T-13). By the coordinator, a supervisor or a user.
// Error: AuthorityUnavailable where it may still run.
type Fail struct {
	Assignment string `json:"assignment"`
	Reason     string `json:"reason"`
}

// Type implements Request.
func (Fail) Type() string { return "fail" }

func (r Fail) decide(d *draft) error {
	if err := d.allow(RoleRuntime, RoleSupervisor, RoleUser); err != nil {
		return err
	}
	if err := d.coordinating(); err != nil {
		return err
	}
	if err := d.text(r.Assignment, "the reason", r.Reason); err != nil {
		return err
	}
	a, _, err := d.assignment(r.Assignment)
	if err != nil {
		return err
	}
	if a.Runtime != nil && !a.ProcessStopped {
		return d.refuse(AuthorityUnavailable, a.ID, "nothing proves that it stopped; wait for its stop receipt, or let a person confirm the stop")
	}
	if err := d.moveAssignment(a, onFail, ""); err != nil {
		return err
	}
	return d.attemptOver(a, a.State, "failed")
}

// ConfirmStopped is a person's word that nothing of an attempt runs any more, where
// no receipt can prove it (T-15). By a user only. It ends the attempt.
type ConfirmStopped struct {
	Assignment string `json:"assignment"`
	Reason     string `json:"reason"` // how the person knows
}

// Type implements Request.
func (ConfirmStopped) Type() string { return "confirm-stopped" }

func (r ConfirmStopped) decide(d *draft) error {
	if err := d.allow(RoleUser); err != nil {
		return err
	}
	if err := d.text(r.Assignment, "the reason", r.Reason); err != nil {
		return err
	}
	a, _, err := d.assignment(r.Assignment)
	if err != nil {
		return err
	}
	if a.ProcessStopped {
		return d.refuse(InvalidTransition, a.ID, "its stop is proved already")
	}
	if err := d.moveAssignment(a, onConfirm, ""); err != nil {
		return err
	}
	a.ProcessStopped = true
	return d.attemptOver(a, a.State, "stop confirmed")
}
