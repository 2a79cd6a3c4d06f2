package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/pluginapi"
)

func attemptCases() []Case {
	return []Case{
		inTickets("M-4/lost-publication", "A stop that was saved and whose publication was lost is reconciled from the child's record after a restart: one submission, not stale, and no tool permit.", lostPublication),
		inTickets("M-4/lost-save", "A run that nobody saved after its stop was published is brought to its end after a restart, and not run again.", lostSave),
		inTickets("M-4/late-result", "A result of an older generation that comes late, before or after the newer one's, is kept as stale, and leaves the current attempt as it is.", lateResult),
		inTickets("T-8/revised-contract", "A result for a contract that was revised meanwhile is kept as stale and changes nothing else.", revisedContract),
		inTickets("T-9/failed", "A child that failed has its stop published and no submission, and its actor has failed.", func(ctx context.Context, e *Env) error {
			return unsuccessful(ctx, e, ticket.ChildFailed, ticket.ActorFailed, func(o *onTask) child.Work {
				o.agent.fail = &pluginapi.Failure{Kind: pluginapi.FailAuth, Message: "no key"}
				return o.agent.work()
			})
		}),
		inTickets("T-9/timed-out", "A child whose time was over has its stop published and no submission, and its actor has failed.", func(ctx context.Context, e *Env) error {
			return unsuccessful(ctx, e, ticket.ChildTimedOut, ticket.ActorFailed, func(o *onTask) child.Work {
				o.agent.during = func(ctx context.Context) { <-ctx.Done() }
				work := o.agent.work()
				work.Spec.Timeout, work.Spec.DrainTimeout = shortRun, shortRun
				return work
			})
		}),
		inTickets("T-11/orphan", "A run whose coordinator ends before its publication is cancelled: its stop is published, and no result is.", func(ctx context.Context, e *Env) error {
			return unsuccessful(ctx, e, ticket.ChildCancelled, ticket.ActorFailed, func(o *onTask) child.Work {
				o.agent.during = func(ctx context.Context) {
					close(o.gone)
					<-ctx.Done()
				}
				return o.agent.work()
			})
		}),
		inTickets("T-10/one-worker", "While a worker has the child, nobody else can claim it, and nobody can recover it.", oneWorker),
		inTickets("T-10/claimed-anew", "A claim after one that was given up is another attempt of the actor under a higher epoch, and its run is the one that is admitted.", claimedAnew),
		inTickets("T-10/raced-claims", "Of two workers that prepare one assignment at once one admits its run, which is executed once.", racedClaims),
		inTickets("T-12/late-worker", "A worker that stood still while another one took its child over and recovered it runs nothing, and writes nothing to the child or the scope.", lateWorker),
		inTickets("T-15/no-start-before-the-stop", "A new attempt waits until the stop of the one before is proved; only a person may confirm it without proof, and a reason is asked for.", noStartBeforeTheStop),
		inTickets("T-15/attempts", "A failed attempt makes its ticket ready again while its contract allows attempts, and blocks it then.", attemptsAreCounted),
		inTickets("M-4/real-process", "A real process child that was reaped leaves a receipt that is bound to its pid and names no task; nothing of its group survives it, and its result is its output.", realProcess, NeedGroups),
	}
}

// shortRun is the wall time of a run that must take too long.
const shortRun = 20 * time.Millisecond

func lostPublication(ctx context.Context, e *Env) error {
	o, err := e.prepared(ctx, "lost")
	if err != nil {
		return err
	}
	worker := o.task.Worker()
	// Whatever is committed to the scope from now on is lost, until the restart.
	o.faulty.Inject(Fault{Op: OpCommit, Match: func(c Call) bool { return c.Key == o.key() }, Times: -1, Err: definite()})
	if err := o.task.Execute(ctx, o.agent.work()); err == nil {
		return failf("execute without a scope that can be written: want an error, got success")
	}
	before, err := o.still(ctx)
	if err != nil {
		return err
	}
	raw, _, err := o.stopReceipt(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(
		wantEqual("process_stopped before the restart", before.stopped[o.assignment], false),
		wantOK("give the session back", o.task.Abandon(ctx)),
	); err != nil {
		return err
	}
	return o.recovered(ctx, raw, worker)
}

// recovered restarts the worker, lets it recover the assignment, and checks that this
// published the one result of the one run.
func (o *onTask) recovered(ctx context.Context, raw string, worker ticket.Principal) error {
	rig, err := o.restarted(ctx)
	if err != nil {
		return err
	}
	o.scopeRig = rig
	first, err := rig.runner.Recover(ctx, o.assignment)
	if err != nil {
		return failf("recover: want success, got %w", err)
	}
	before, err := rig.still(ctx)
	if err != nil {
		return err
	}
	again, err := rig.runner.Recover(ctx, o.assignment)
	if err != nil {
		return failf("recover again: want success, got %w", err)
	}
	now, _, err := o.stopReceipt(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		wantReceipt("recover again", again, first),
		rig.wantStill(ctx, "recovering again", before),
		wantEqual("calls of the agent", o.agent.count(), 1),
		wantEqual("the stop receipt", now, raw),
		wantEqual("process_stopped", before.stopped[o.assignment], true),
		wantEqual("submissions", before.counts.Submissions, 1),
		o.wantResult(ctx, false),
		wantRefusal("the permit after the restart", rig.scope.State().Permit(worker), ticket.ScopeDenied, ""),
		rig.wantActor(ctx, "after the restart", o.task.SessionID(), ticket.ActorSucceeded),
		rig.give(ctx, ticket.Accept{Of: of("work"), Submission: o.assignment}),
	)
}

func lostSave(ctx context.Context, e *Env) error {
	o, err := e.executed(ctx, "unsaved")
	if err != nil {
		return err
	}
	raw, _, err := o.stopReceipt(ctx)
	if err != nil {
		return err
	}
	worker := o.task.Worker()
	if err := o.task.Abandon(ctx); err != nil {
		return failf("give the session back: want success, got %w", err)
	}
	return o.recovered(ctx, raw, worker)
}

func lateResult(ctx context.Context, e *Env) error {
	return errors.Join(late(ctx, e, "before", false), late(ctx, e, "after", true))
}

// late lets a second generation begin, and end if submitted is true, before the result of
// the first one comes.
func late(ctx context.Context, e *Env, id string, submitted bool) error {
	old, err := e.executed(ctx, "late-"+id)
	if err != nil {
		return err
	}
	if err := old.task.Save(ctx); err != nil {
		return failf("the final save: want success, got %w", err)
	}
	if err := old.give(ctx, ticket.Cancel{Of: of("work")}, ticket.Reopen{Of: of("work")}, ticket.Start{Of: of("work")}); err != nil {
		return err
	}
	second := ticket.AssignmentID("work", 2)
	rig, err := old.another(ctx)
	if err != nil {
		return err
	}
	current, err := rig.prepare(ctx, second, e.answer("the newer result, "+id))
	if err != nil {
		return err
	}
	finish := func() error {
		if err := current.task.Execute(ctx, current.agent.work()); err != nil {
			return failf("the newer run: want success, got %w", err)
		}
		_, err := current.submit(ctx)
		return err
	}
	if submitted {
		if err := finish(); err != nil {
			return err
		}
	}
	before, err := rig.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	if _, ok, err := old.task.Checkpoint(ctx); err != nil || !ok {
		return failf("the late result: want it kept, got %t, %w", ok, orNone(err))
	}
	after, err := rig.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(old.wantResult(ctx, true), sameAttempt("after the late result", before, after, second)); err != nil {
		return err
	}
	if !submitted {
		if err := finish(); err != nil {
			return err
		}
	}
	return errors.Join(
		current.wantResult(ctx, false),
		old.wantResult(ctx, true),
		rig.wantActor(ctx, "of the older generation", old.task.SessionID(), ticket.ActorRunning),
		wantOK("finish the older one", old.task.Finish(ctx)),
		rig.wantActor(ctx, "of the older generation after its end", old.task.SessionID(), ticket.ActorSucceeded),
		rig.give(ctx, ticket.Accept{Of: of("work"), Submission: second}),
	)
}

// sameAttempt checks that the ticket and an attempt at it, with its submission, are as
// they were.
func sameAttempt(what string, before, after *ticket.State, assignment string) error {
	a, _ := before.Assignment(assignment)
	b, _ := after.Assignment(assignment)
	ta, _ := before.Ticket(a.Ticket)
	tb, _ := after.Ticket(a.Ticket)
	_, had := before.Submission(assignment)
	_, has := after.Submission(assignment)
	return errors.Join(
		wantEqual(what+": the current attempt's state", b.State, a.State),
		wantEqual(what+": its process_stopped", b.ProcessStopped, a.ProcessStopped),
		wantEqual(what+": the ticket's state", tb.State, ta.State),
		wantEqual(what+": the ticket's revision", tb.RecordRevision, ta.RecordRevision),
		wantEqual(what+": the active assignment", tb.ActiveAssignment, ta.ActiveAssignment),
		wantEqual(what+": the current submission", tb.CurrentSubmission, ta.CurrentSubmission),
		wantEqual(what+": the current attempt has a submission", has, had),
	)
}

func revisedContract(ctx context.Context, e *Env) error {
	o, err := e.executed(ctx, "revised")
	if err != nil {
		return err
	}
	c := contractOf(1)
	c.Objective = "prove something else"
	if err := errors.Join(o.task.Save(ctx), o.give(ctx, ticket.Revise{Ticket: "work", Contract: &c})); err != nil {
		return err
	}
	before, err := o.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	if _, ok, err := o.task.Checkpoint(ctx); err != nil || !ok {
		return failf("the result for the older contract: want it kept, got %t, %w", ok, orNone(err))
	}
	after, err := o.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	was, _ := before.Ticket("work")
	is, _ := after.Ticket("work")
	return errors.Join(o.wantResult(ctx, true),
		wantEqual("the ticket's state", is.State, was.State),
		wantEqual("the ticket's revision", is.RecordRevision, was.RecordRevision),
		wantEqual("the current submission", is.CurrentSubmission, ""))
}

// unsuccessful runs a child that does not complete, to the end of its actor.
func unsuccessful(ctx context.Context, e *Env, status ticket.ChildStatus, actor ticket.ActivationStatus, work func(*onTask) child.Work) error {
	o, err := e.prepared(ctx, "unsuccessful")
	if err != nil {
		return err
	}
	if err := o.task.Execute(ctx, work(o)); err != nil {
		return failf("execute: want success, got %w", err)
	}
	bad := []error{wantEqual("how the run ended", o.task.Outcome().Status, status), wantOK("the final save", o.task.Save(ctx))}
	_, ok, err := o.task.Checkpoint(ctx)
	before, serr := o.still(ctx)
	if serr != nil {
		return serr
	}
	bad = append(bad,
		wantOK("the result checkpoint", err),
		wantEqual("it gave a result", ok, false),
		wantEqual("process_stopped", before.stopped[o.assignment], true),
		wantEqual("submissions", before.counts.Submissions, 0))
	_, ok, err = o.runner.Checkpoint(ctx, o.assignment, o.task.RunID())
	_, fields, rerr := o.stopReceipt(ctx)
	a, aerr := o.scopeRig.assignment(ctx, o.assignment)
	return errors.Join(append(bad,
		wantOK("the result checkpoint again", err), rerr, aerr,
		wantEqual("it gave a result then", ok, false),
		o.wantStill(ctx, "the result checkpoint again", before),
		wantEqual("completed", fields["completed"], any(false)),
		wantEqual("the assignment", a.State, ticket.Failed),
		wantOK("finish", o.task.Finish(ctx)),
		o.wantActor(ctx, "after its end", o.task.SessionID(), actor))...)
}

func oneWorker(ctx context.Context, e *Env) error {
	o, err := e.prepared(ctx, "one")
	if err != nil {
		return err
	}
	other, err := o.another(ctx)
	if err != nil {
		return err
	}
	key := store.SessionKey(o.task.SessionID())
	before, err := look(ctx, other.other, key)
	if err != nil {
		return err
	}
	return errors.Join(
		other.refused(ctx, "preparing what another worker has", ticket.InvalidTransition, "", func() error {
			_, err := other.runner.Prepare(ctx, o.assignment)
			return err
		}),
		other.refused(ctx, "recovering what a live worker has", ticket.ResourceBlocked, "", func() error {
			_, err := other.runner.Recover(ctx, o.assignment)
			return err
		}),
		expectUntouched(ctx, other.other, "what the other worker tried", key, before),
		wantOK("execute", o.task.Execute(ctx, o.agent.work())),
	)
}

func claimedAnew(ctx context.Context, e *Env) error {
	rig, err := e.newScope(ctx, "anew", "work")
	if err != nil {
		return err
	}
	assignment, err := rig.start(ctx, "work", 1)
	if err != nil {
		return err
	}
	admission := Fault{Op: OpCommit, Match: func(c Call) bool { return c.Key == rig.key() }, Err: definite()}
	rig.faulty.Inject(admission)
	if _, err := rig.runner.Prepare(ctx, assignment); err == nil {
		return failf("prepare without an admission: want an error, got success")
	}
	a, err := rig.assignment(ctx, assignment)
	if err != nil {
		return err
	}
	first, err := rig.child(ctx, ticket.ChildSessionID(a.DispatchKey))
	if err != nil {
		return err
	}
	o, err := rig.prepare(ctx, assignment, e.answer("the second claim's"))
	if err != nil {
		return err
	}
	second, err := rig.child(ctx, o.task.SessionID())
	if err != nil {
		return err
	}
	if first.Actor == nil || second.Actor == nil {
		return failf("want an actor after each claim, got %v and %v", first.Actor, second.Actor)
	}
	a, err = rig.assignment(ctx, assignment)
	if err != nil {
		return err
	}
	if a.Runtime == nil {
		return failf("want a run to be admitted, got none")
	}
	bad := []error{
		wantEqual("the first claim's attempt", first.Actor.Attempt, 1),
		wantEqual("the first claim's epoch", first.Actor.LeaseEpoch, 1),
		wantEqual("the second claim's attempt", second.Actor.Attempt, 2),
		wantEqual("the second claim's epoch", second.Actor.LeaseEpoch, 2),
		wantEqual("the second claim's run", second.Actor.RunID, o.task.RunID()),
		wantEqual("the admitted run", a.Runtime.RunID, o.task.RunID()),
		wantEqual("the actor before it runs", second.Actor.Status, ticket.ActorReserved),
	}
	if err := o.task.Execute(ctx, o.agent.work()); err != nil {
		return errors.Join(append(bad, failf("execute: want success, got %w", err))...)
	}
	_, err = o.submit(ctx)
	return errors.Join(append(bad, err, o.wantResult(ctx, false), wantOK("finish", o.task.Finish(ctx)))...)
}

func racedClaims(ctx context.Context, e *Env) error {
	rig, err := e.newScope(ctx, "race", "work")
	if err != nil {
		return err
	}
	assignment, err := rig.start(ctx, "work", 1)
	if err != nil {
		return err
	}
	other, err := rig.another(ctx)
	if err != nil {
		return err
	}
	text := e.answer("the faster one's")
	var tasks [2]*onTask
	var errs [2]error
	var both sync.WaitGroup
	for i, r := range []*scopeRig{rig, other} {
		both.Go(func() { tasks[i], errs[i] = r.prepare(ctx, assignment, text) })
	}
	both.Wait()
	won := tasks[0]
	if won == nil {
		won = tasks[1]
	}
	if (errs[0] == nil) == (errs[1] == nil) {
		return failf("two workers prepare one assignment: want one of them to, got %w and %w", orNone(errs[0]), orNone(errs[1]))
	}
	a, err := rig.assignment(ctx, assignment)
	if err != nil {
		return err
	}
	if a.Runtime == nil {
		return failf("want a run to be admitted, got none")
	}
	bad := wantEqual("the admitted run", a.Runtime.RunID, won.task.RunID())
	if err := won.task.Execute(ctx, won.agent.work()); err != nil {
		return errors.Join(bad, failf("execute: want success, got %w", err))
	}
	_, err = won.submit(ctx)
	return errors.Join(bad, err, won.wantResult(ctx, false))
}

func lateWorker(ctx context.Context, e *Env) error {
	o, err := e.prepared(ctx, "late-worker")
	if err != nil {
		return err
	}
	other, err := o.another(ctx)
	if err != nil {
		return err
	}
	if _, err := other.host.TakeOver(ctx, o.task.SessionID(), "its worker stands still"); err != nil {
		return failf("take the child over: want success, got %w", err)
	}
	if _, err := other.runner.Recover(ctx, o.assignment); err != nil {
		return failf("recover a run that never began: want success, got %w", err)
	}
	before, err := other.still(ctx)
	if err != nil {
		return err
	}
	key := store.SessionKey(o.task.SessionID())
	child, err := look(ctx, other.other, key)
	if err != nil {
		return err
	}
	return errors.Join(
		wantEqual("process_stopped", before.stopped[o.assignment], true),
		wantKind("the late worker's execution", o.task.Execute(ctx, o.agent.work()), store.ErrFenced),
		wantEqual("calls of the agent", o.agent.count(), 0),
		other.wantStill(ctx, "the late worker's execution", before),
		expectUntouched(ctx, other.other, "the late worker's execution", key, child),
	)
}

func noStartBeforeTheStop(ctx context.Context, e *Env) error {
	a, err := e.admitted(ctx, "unproved", true)
	if err != nil {
		return err
	}
	if err := a.give(ctx, ticket.Cancel{Of: of("work")}, ticket.Reopen{Of: of("work")}); err != nil {
		return err
	}
	begin := func() error { _, err := a.do(ctx, a.boss(), ticket.Start{Of: of("work")}); return err }
	confirm := func(p ticket.Principal, reason string) func() error {
		return func() error {
			_, err := a.do(ctx, p, ticket.ConfirmStopped{Assignment: a.assignment, Reason: reason})
			return err
		}
	}
	const reason = "the machine was switched off"
	bad := []error{
		a.refused(ctx, "a start before the stop is proved", ticket.AuthorityUnavailable, a.assignment, begin),
		a.refused(ctx, "a supervisor's word", ticket.ScopeDenied, "", confirm(a.boss(), reason)),
		a.refused(ctx, "a host's word", ticket.ScopeDenied, "", confirm(ticket.Runtime("conformance"), reason)),
		a.refused(ctx, "a person's word without a reason", ticket.InvalidTransition, "reason", confirm(ada, " ")),
		wantOK("a person's word", confirm(ada, reason)()),
		a.refused(ctx, "a second word", ticket.InvalidTransition, "", confirm(ada, reason)),
		wantOK("a start after it", begin()),
	}
	next, err := a.prepare(ctx, ticket.AssignmentID("work", 2), e.answer("the second attempt's"))
	if err != nil {
		return errors.Join(append(bad, err)...)
	}
	if err := next.task.Execute(ctx, next.agent.work()); err != nil {
		return errors.Join(append(bad, failf("the second attempt: want success, got %w", err))...)
	}
	_, err = next.submit(ctx)
	return errors.Join(append(bad, err, next.wantResult(ctx, false))...)
}

func attemptsAreCounted(ctx context.Context, e *Env) error {
	const allowed = 2
	rig, err := e.newScope(ctx, "counted", "work")
	if err != nil {
		return err
	}
	if err := rig.give(ctx, newTicket("work", allowed), ticket.MarkReady{Of: of("work")}); err != nil {
		return err
	}
	var bad []error
	for n := uint64(1); n <= allowed; n++ {
		if err := rig.give(ctx, ticket.Start{Of: of("work")}); err != nil {
			return err
		}
		o, err := rig.prepare(ctx, ticket.AssignmentID("work", n), "never given")
		if err != nil {
			return err
		}
		o.agent.fail = &pluginapi.Failure{Kind: pluginapi.FailAuth, Message: "no key"}
		if err := o.task.Execute(ctx, o.agent.work()); err != nil {
			return failf("attempt %d: want its stop published, got %w", n, err)
		}
		want := ticket.Ready
		if n == allowed {
			want = ticket.Blocked
		}
		t, _ := rig.scope.State().Ticket("work")
		bad = append(bad, wantEqual("the ticket after a failed attempt", t.State, want), wantEqual("its generation", t.Generation, n))
	}
	return errors.Join(append(bad, rig.refused(ctx, "a third start", ticket.InvalidTransition, "blocked", func() error {
		_, err := rig.do(ctx, rig.boss(), ticket.Start{Of: of("work")})
		return err
	}))...)
}

func realProcess(ctx context.Context, e *Env) error {
	o, err := e.prepared(ctx, "process")
	if err != nil {
		return err
	}
	c := newProcessChild(o.agent.text)
	if err := o.task.Execute(ctx, c.work()); err != nil {
		return failf("execute: want success, got %w", err)
	}
	if err := c.wantGone("after the stop receipt"); err != nil {
		return err
	}
	_, fields, err := o.stopReceipt(ctx)
	if err != nil {
		return err
	}
	stored, err := o.child(ctx, o.task.SessionID())
	if err != nil {
		return err
	}
	p, err := ticket.DecodeProcessIdentity([]byte(stored.Metadata[ticket.MetaProcessIdentity]))
	if err != nil {
		return failf("the process's identity: want it kept, got %w", err)
	}
	_, task := fields["task_instance"]
	pid, _ := fields["pid"].(float64)
	_, state := stored.Metadata[ticket.MetaTaskState]
	a, err := o.scopeRig.assignment(ctx, o.assignment)
	if err != nil {
		return err
	}
	bad := []error{
		wantEqual("how the run ended", o.task.Outcome().Status, ticket.ChildCompleted),
		wantEqual("the receipt names a task", task, false),
		wantEqual("the receipt's pid", uint64(pid), p.PID),
		wantEqual("the record names a task's state", state, false),
		wantEqual("process_stopped", a.ProcessStopped, true),
		wantEqual("submissions: a stop alone is no result", o.scope.State().Counts().Submissions, 0),
		o.wantActor(ctx, "until the result is published", o.task.SessionID(), ticket.ActorRunning),
	}
	_, err = o.submit(ctx)
	return errors.Join(append(bad, err, o.wantResult(ctx, false), wantOK("finish", o.task.Finish(ctx)))...)
}
