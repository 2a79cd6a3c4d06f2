package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// ticketHeir is who goes on with a life that ended somewhere: another start of a host,
// on handles of its own. It knows what was acknowledged to the worker before it.
type ticketHeir struct {
	*scopeRig
	life  ticketLife
	facts []fact
	calls int // of the agent, in the life before
	mine  int // runs of the first attempt that the heir began itself
}

// inherit opens what a life left, checks that it is whole and that nothing which was
// acknowledged is lost, brings it to an honest end, and checks that.
func (e *Env) inherit(ctx context.Context, l ticketLife, facts []fact, calls int) (err error) {
	h := &ticketHeir{life: l, facts: facts, calls: calls, scopeRig: &scopeRig{e: e, binding: l.Binding, id: "heir-" + uuid.NewString()}}
	defer func() { err = errors.Join(err, h.release(ctx)) }()
	if err := h.open(ctx); err != nil {
		return err
	}
	if err := errors.Join(h.whole(ctx), h.kept(ctx)); err != nil {
		return failf("what the worker left: %w", err)
	}
	if err := h.finish(ctx); err != nil {
		return err
	}
	if err := errors.Join(h.whole(ctx), h.kept(ctx), h.honest(ctx)); err != nil {
		return failf("the end: %w", err)
	}
	return nil
}

// release gives the handles back: a matrix has many cells.
func (h *ticketHeir) release(ctx context.Context) error {
	if h.scope != nil {
		h.scope.Close()
	}
	if h.faulty == nil {
		return nil
	}
	return errors.Join(h.faulty.Store().Close(), h.other.Close())
}

// open opens the scope, or makes it where its making was never acknowledged.
func (h *ticketHeir) open(ctx context.Context) error {
	err := h.join(ctx, scope.Open)
	if errors.Is(err, store.ErrNotFound) && !has(h.facts, stepScope) {
		err = h.join(ctx, scope.Create)
	}
	return err
}

// whole checks that the scope and its children are whole, by their own sums and the
// store's.
func (h *ticketHeir) whole(ctx context.Context) error {
	report, err := scope.Check(ctx, h.other, h.binding.ScopeID)
	if err != nil || len(report.Findings) > 0 {
		return failf("check the scope: want no findings, got %v, %w", report.Findings, orNone(err))
	}
	s, err := h.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	checker, checks := h.other.(store.Checker)
	for a := range s.Assignments() {
		session := ticket.ChildSessionID(a.DispatchKey)
		_, err := child.Read(ctx, h.eyes, session)
		if err != nil {
			return failf("read the child of %s: %w", a.ID, err)
		}
		if _, err := h.other.Load(ctx, store.SessionKey(session)); errors.Is(err, store.ErrNotFound) || !checks {
			continue
		}
		found, err := checker.Check(ctx, store.SessionKey(session))
		if err != nil || len(found.Findings) > 0 {
			return failf("check the child of %s: want no findings, got %v, %w", a.ID, found.Findings, orNone(err))
		}
	}
	return nil
}

// kept checks that nothing is lost of what was acknowledged.
func (h *ticketHeir) kept(ctx context.Context) error {
	s, err := h.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	id := ticket.AssignmentID(lifeTicket, 1)
	t, made := s.Ticket(lifeTicket)
	a, started := s.Assignment(id)
	_, submitted := s.Submission(id)
	var c ticket.Child
	if started {
		if c, err = child.Read(ctx, h.eyes, ticket.ChildSessionID(a.DispatchKey)); err != nil {
			return err
		}
	}
	for _, f := range h.facts {
		ok := true
		switch f.Step {
		case stepRole:
			ok = s.Authority().Epoch > 0
		case stepCreated:
			ok = made
		case stepReady:
			ok = made && t.State != ticket.Draft
		case stepStarted:
			ok = started
		case stepAdmitted:
			ok = a.Runtime != nil && a.Runtime.RunID == f.Run && c.Metadata[ticket.MetaDispatch] != ""
		case stepStopped:
			ok = a.ProcessStopped && c.Metadata[ticket.MetaOwnedStop] != ""
		case stepSaved:
			ok = c.Status == f.Status
		case stepSubmitted:
			ok = submitted
		case stepFinished:
			err = h.wantActor(ctx, "finished", c.SessionID, ticket.ActorSucceeded)
		case stepAccepted:
			ok = t.State == ticket.Accepted && t.AcceptedSubmission == id
		}
		if !ok || err != nil {
			return failf("the step %q of run %q was acknowledged: want it kept, got ticket %+v, assignment %+v, %w", f.Step, f.Run, t, a, orNone(err))
		}
	}
	return nil
}

// finish brings the ticket to its acceptance: the same commands again, what is durable
// recovered, and another attempt only where the one before is proved to have ended.
func (h *ticketHeir) finish(ctx context.Context) error {
	if h.life.Coordinated {
		// An operator's word takes the place of the dead coordinator's lease.
		role, err := h.scope.Coordinate(ctx, scope.Claim{Host: h.id, Force: true})
		if err != nil {
			return failf("take the coordinator's role over: want success, got %w", err)
		}
		defer role.Close()
	}
	if err := h.repeat(ctx); err != nil {
		return err
	}
	for range 4 * generations {
		t, _ := h.scope.State().Ticket(lifeTicket)
		var err error
		switch t.State {
		case ticket.Accepted:
			return nil
		case ticket.Submitted:
			_, err = h.scope.Do(ctx, h.life.command(acceptance(t.CurrentSubmission)))
		case ticket.Ready:
			err = h.give(ctx, ticket.Start{Of: of(lifeTicket)})
		case ticket.Active:
			err = h.attempt(ctx, t.ActiveAssignment)
		default:
			return failf("want a ticket that goes on, got %+v", t)
		}
		if err != nil {
			return failf("go on with a ticket that is %s: %w", t.State, err)
		}
		if _, err := h.scope.Refresh(ctx); err != nil {
			return err
		}
	}
	return failf("want the ticket to come to its end, got %+v", h.scope.State().Counts())
}

// repeat gives the commands of the life again. Those that were carried out change
// nothing (T-1).
func (h *ticketHeir) repeat(ctx context.Context) error {
	mine := h.life.steps(h.id)
	for i, x := range h.life.steps(h.life.Host) {
		stored, known := h.scope.State().Receipt(h.life.command(x).OperationID)
		if !known {
			x = mine[i]
		}
		before, err := h.still(ctx)
		if err != nil {
			return err
		}
		receipt, err := h.scope.Do(ctx, h.life.command(x))
		if err != nil {
			return failf("the command %q again: want its receipt, got %w", x.name, err)
		}
		if !known {
			continue
		}
		if err := errors.Join(wantReceipt("the command "+x.name+" again", receipt, stored), h.wantStill(ctx, "the command "+x.name+" again", before)); err != nil {
			return err
		}
	}
	return nil
}

// attempt goes on with an attempt as far as what is durable says.
func (h *ticketHeir) attempt(ctx context.Context, id string) error {
	a, err := h.assignment(ctx, id)
	switch {
	case err != nil:
		return err
	case a.State == ticket.DispatchPending: // nothing of it ran, and nobody can say otherwise
		return h.run(ctx, id)
	case a.Runtime == nil:
		return h.give(ctx, ticket.Fail{Assignment: id, Reason: "its host is gone, and no run was admitted"})
	}
	_, err = h.runner.Recover(ctx, id)
	if errors.Is(err, ticket.ResourceBlocked) {
		if err := h.takeOver(ctx, a.DispatchKey); err != nil {
			return err
		}
		_, err = h.runner.Recover(ctx, id)
	}
	if errors.Is(err, ticket.AuthorityUnavailable) && !provesGroups() {
		_, err = h.do(ctx, ada, ticket.ConfirmStopped{Assignment: id, Reason: "its process was killed"})
	}
	return wantOK("recover "+id, err)
}

// takeOver fences a worker that is gone, where the store knows it by its lease alone.
func (h *ticketHeir) takeOver(ctx context.Context, dispatchKey string) error {
	_, err := h.host.TakeOver(ctx, ticket.ChildSessionID(dispatchKey), "its worker is gone")
	return wantOK("take the child over", err)
}

// run runs an attempt of which no run was admitted yet, or one of the heir's own.
func (h *ticketHeir) run(ctx context.Context, id string) error {
	o, err := h.prepare(ctx, id, h.life.Answer)
	if errors.Is(err, ticket.ResourceBlocked) {
		a, _ := h.scope.State().Assignment(id)
		if err := h.takeOver(ctx, a.DispatchKey); err != nil {
			return err
		}
		o, err = h.prepare(ctx, id, h.life.Answer)
	}
	if err != nil {
		return err
	}
	if id == ticket.AssignmentID(lifeTicket, 1) {
		h.mine++
	}
	if err := o.task.Execute(ctx, o.agent.work()); err != nil {
		return failf("execute: want success, got %w", err)
	}
	if _, err := o.submit(ctx); err != nil {
		return err
	}
	return errors.Join(wantEqual("calls of the heir's agent", o.agent.count(), 1), wantOK("finish", o.task.Finish(ctx)))
}

// honest checks the end of it all: one result, by one run of each attempt.
func (h *ticketHeir) honest(ctx context.Context) error {
	s, err := h.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	t, _ := s.Ticket(lifeTicket)
	bad := []error{
		wantEqual("the ticket", t.State, ticket.Accepted),
		wantEqual("submissions", s.Counts().Submissions, 1),
	}
	if n := h.calls + h.mine; n > 1 {
		bad = append(bad, failf("the agent of the first attempt was called %d times: want once at most", n))
	}
	for a := range s.Assignments() {
		_, submitted := s.Submission(a.ID)
		bad = append(bad, wantEqual("a submission of "+a.ID, submitted, a.ID == t.AcceptedSubmission))
		if a.Runtime != nil {
			bad = append(bad, wantEqual("process_stopped of "+a.ID, a.ProcessStopped, true))
		}
		if submitted && a.Generation == 1 && h.calls+h.mine != 1 {
			bad = append(bad, failf("%s has a result: want its agent to have been called once, got %d times", a.ID, h.calls+h.mine))
		}
	}
	sub, ok := s.Submission(t.AcceptedSubmission)
	if !ok || len(sub.Artifacts) != 1 {
		return errors.Join(append(bad, failf("want the accepted submission with one artifact, got %+v", sub))...)
	}
	content, err := h.artifact(ctx, sub.Artifacts[0].SHA256)
	bad = append(bad, err, wantEqual("the submission is stale", sub.Stale, false), wantBytes("the result", content, []byte(h.life.Answer)))
	if p := h.life.Process; p != nil {
		bad = append(bad, p.wantGone(fmt.Sprintf("at the end, after %d calls of the agent", h.calls)))
	}
	return errors.Join(bad...)
}
