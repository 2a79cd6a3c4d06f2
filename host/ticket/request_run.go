package ticket

import "slices"

// Operation ids of what a runtime reports, so that a report happens once however
// often and by whomever it is made.
const (
	admitPrefix  = "runtime-admit/"
	stopPrefix   = "runtime-stop/"
	submitPrefix = "runtime-submit/"
)

func admitOperation(key string) string { return admitPrefix + key }

func stopOperation(r RuntimeReceipt) string { return stopPrefix + r.DispatchKey + "/" + r.RunID }

func submitOperation(r RuntimeReceipt) string { return submitPrefix + r.DispatchKey + "/" + r.RunID }

// Admit lets one run of one child begin; the assignment is admitted and running.
// By the runtime that runs it. A receipt that replays is no permission to run: what
// was admitted once may have been lost since, and Permit tells. Errors: InvalidTransition where the ticket is no
// longer active or another run was admitted; RevisionConflict where the epoch or the
// contract moved on.
type Admit struct {
	Assignment string         `json:"assignment"`
	Epoch      uint64         `json:"authority_epoch"` // that the assignment had when it was read
	Receipt    RuntimeReceipt `json:"receipt"`
	ChildBirth string         `json:"child_birth"`
}

// Type implements Request.
func (Admit) Type() string { return "runtime-admit" }

// Operation is the id that the command must carry.
func (r Admit) Operation() string { return admitOperation(r.Receipt.DispatchKey) }

func (r Admit) decide(d *draft) error {
	if err := d.report(r.Operation()); err != nil {
		return err
	}
	a, t, err := d.assignment(r.Assignment)
	if err != nil {
		return err
	}
	switch {
	case r.Receipt.DispatchKey != a.DispatchKey || r.Receipt.SpecHash != a.SpecHash:
		return d.refuse(ScopeDenied, a.ID, "the dispatch key or the spec hash is another's")
	case !validID(r.Receipt.RunID) || !validID(r.Receipt.SessionID) || !validID(r.ChildBirth):
		return d.refuse(ScopeDenied, a.ID, "the run, the session and the birth need 1 to %d bytes each", MaxIDBytes)
	case len(submitOperation(r.Receipt)) > MaxIDBytes:
		return d.refuse(ScopeDenied, a.ID, "the run's id has %d bytes; its reports could not be named: use a UUID", len(r.Receipt.RunID))
	case a.Host != "" && a.Host != d.by.id:
		return d.refuse(ScopeDenied, a.ID, "the host %q is to run it, not %q", a.Host, d.by.id)
	case t.State != Active || t.ActiveAssignment != a.ID:
		return d.refuse(InvalidTransition, a.ID, "the ticket is %s", t.State)
	}
	if err := d.moveAssignment(a, onAdmit, ""); err != nil {
		return err
	}
	switch {
	case r.Epoch != d.state.authority.Epoch || a.AuthorityEpoch != d.state.authority.Epoch:
		return d.refuse(RevisionConflict, a.ID, "the authority is at epoch %d; read the assignment again", d.state.authority.Epoch)
	case a.ContractRevision != t.ContractRevision:
		return d.refuse(RevisionConflict, a.ID, "the contract was revised after the start")
	}
	receipt := r.Receipt
	a.Runtime, a.ChildBirth, a.Host = &receipt, r.ChildBirth, d.by.id
	if err := d.saveAssignment("admitted", a.clone()); err != nil {
		return err
	}
	if err := d.moveAssignment(a, onRun, ""); err != nil {
		return err
	}
	return d.saveAssignment("running", a)
}

func validID(s string) bool { return s != "" && len(s) <= MaxIDBytes }

// report refuses what a runtime may not report, or not under this operation id.
func (d *draft) report(operation string) error {
	if err := d.allow(RoleRuntime); err != nil {
		return err
	}
	if d.operation != operation {
		return d.refuse(ScopeDenied, d.operation, "the operation id must be %q", operation)
	}
	return nil
}

// Stop publishes the proof that the child stopped, as JudgeStop gives it. By a
// runtime. A stop alone is no result; one that did not complete ends the attempt.
type Stop struct {
	Assignment string      `json:"assignment"`
	Stop       StopReceipt `json:"stop"`
}

// Type implements Request.
func (Stop) Type() string { return "runtime-stop" }

// Operation is the id that the command must carry.
func (r Stop) Operation() string { return stopOperation(r.Stop.Receipt) }

func (r Stop) decide(d *draft) error {
	if err := d.report(r.Operation()); err != nil {
		return err
	}
	a, _, err := d.assignment(r.Assignment)
	if err != nil {
		return err
	}
	if err := r.Stop.Validate(); err != nil {
		return err
	}
	if a.Runtime == nil || *a.Runtime != r.Stop.Receipt || a.ChildBirth != r.Stop.ChildBirth {
		return d.refuse(ScopeDenied, a.ID, "another run was admitted, or none")
	}
	on := onStopFailed
	if r.Stop.Completed {
		on = onStopDone
	}
	was := a.State
	if err := d.moveAssignment(a, on, ""); err != nil {
		return err
	}
	a.ProcessStopped = true
	if a.State == was {
		return d.saveAssignment("stopped", a)
	}
	return d.attemptOver(a, a.State, "stopped")
}

// Submit takes a result, as JudgeResult gives it: from canonical storage, after the
// stop. By a runtime. One of an older generation, a changed contract, changed inputs
// or a cancelled ticket is kept as stale and changes nothing else (T-8).
type Submit struct {
	Assignment string         `json:"assignment"`
	Receipt    RuntimeReceipt `json:"receipt"`
	Artifacts  []Artifact     `json:"artifacts"` // 1–64
	Evidence   []string       `json:"evidence"`
}

// Type implements Request.
func (Submit) Type() string { return "runtime-submit" }

// Operation is the id that the command must carry.
func (r Submit) Operation() string { return submitOperation(r.Receipt) }

func (r Submit) decide(d *draft) error {
	if err := d.report(r.Operation()); err != nil {
		return err
	}
	a, t, err := d.assignment(r.Assignment)
	if err != nil {
		return err
	}
	if a.Runtime == nil || *a.Runtime != r.Receipt {
		return d.refuse(ScopeDenied, a.ID, "another run was admitted, or none")
	}
	if !a.ProcessStopped {
		return d.refuse(AuthorityUnavailable, a.ID, "nothing proves that the run stopped; publish its stop first")
	}
	if n := len(r.Artifacts); n == 0 || n > MaxArtifacts || len(r.Evidence) > MaxEvidence {
		return d.refuse(InvalidTransition, a.ID, "a submission has 1 to %d artifacts and at most %d pieces of evidence", MaxArtifacts, MaxEvidence)
	}
	for _, x := range r.Artifacts {
		if !validHash(x.SHA256) || !validID(x.URI) {
			return d.refuse(InvalidTransition, a.ID, "an artifact needs a URI and the SHA-256 of its content in lower-case hex")
		}
	}
	for _, e := range r.Evidence {
		if err := d.text(a.ID, "evidence", e); err != nil {
			return err
		}
	}
	sub := &Submission{
		ID: a.ID, Ticket: t.ID, Assignment: a.ID, Generation: a.Generation, ContractRevision: a.ContractRevision,
		Runtime: r.Receipt, Inputs: a.Inputs, Artifacts: slices.Clone(r.Artifacts), Evidence: slices.Clone(r.Evidence), Stale: d.state.stale(t, a),
	}
	d.ids = append(d.ids, sub.ID)
	if sub.Stale {
		return d.emit(Event{Type: "submission stale", Submission: sub})
	}
	if err := d.moveAssignment(a, onSubmit, ""); err != nil {
		return err
	}
	if err := d.emit(Event{Type: "submission current", Submission: sub}); err != nil {
		return err
	}
	if err := d.saveAssignment("submitted", a); err != nil {
		return err
	}
	if t.State == Blocked {
		t.Blocked.ResumeState = Submitted
	} else if err := d.moveTicket(t, onSubmit, ""); err != nil {
		return err
	}
	t.CurrentSubmission, t.ActiveAssignment = sub.ID, ""
	return d.saveTicket("submitted", t, false)
}

// stale is T-8.
func (s *State) stale(t *Ticket, a *Assignment) bool {
	waiting := t.State == Active || t.State == Blocked && t.Blocked.ResumeState == Active
	_, open := next(assignmentMoves, a.State, onSubmit, "")
	return !waiting || !open || t.ActiveAssignment != a.ID || t.Generation != a.Generation ||
		t.ContractRevision != a.ContractRevision || !s.current(a.Inputs)
}

func validHash(h string) bool {
	if len(h) != 64 {
		return false
	}
	for _, c := range []byte(h) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// RecordEffect keeps what a run did outside. By the worker, under its permit (T-5).
type RecordEffect struct {
	Assignment string `json:"assignment"`
	Effect     string `json:"effect"`
}

// Type implements Request.
func (RecordEffect) Type() string { return "record-effect" }

func (r RecordEffect) decide(d *draft) error {
	if err := d.allow(RoleWorker); err != nil {
		return err
	}
	if d.by.assignment != r.Assignment {
		return d.refuse(ScopeDenied, r.Assignment, "the worker does another assignment")
	}
	if err := d.state.Permit(d.by); err != nil {
		return err
	}
	if err := d.text(r.Assignment, "the effect", r.Effect); err != nil {
		return err
	}
	a, _, err := d.assignment(r.Assignment)
	if err != nil {
		return err
	}
	if len(a.Effects) >= MaxEffects {
		return d.refuse(ContextBudgetExceeded, a.ID, "it has %d effects already", MaxEffects)
	}
	a.Effects = append(a.Effects, r.Effect)
	return d.saveAssignment("effect", a)
}
