package child_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/ticket"
)

// T-10, T-12 and rows 2 to 11 of the life cycle, step by step.
func TestALocalTaskLives(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	id := r.start("a", contract())
	task, err := r.runner.Prepare(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.assignment(id); a.State != ticket.Running || a.Runtime.RunID != task.RunID() || a.Runtime.SessionID != task.SessionID() || a.ChildBirth != task.Birth() {
		t.Errorf("after its admission: %+v", a)
	}
	if got := r.stored(task.SessionID()).Child.Actor.Status; got != ticket.ActorReserved {
		t.Errorf("the actor is %s, want %s", got, ticket.ActorReserved)
	}
	gone := make(chan struct{})
	if err := task.Track(gone); err != nil {
		t.Fatal(err)
	}
	if err := task.Track(gone); !errors.Is(err, child.ErrTracked) {
		t.Errorf("a second coordinator: got %v, want %v", err, child.ErrTracked)
	}
	barrier := func(what, birth, run string, want error) {
		t.Helper()
		if err := task.Deliverable(birth, run); !errors.Is(err, want) {
			t.Errorf("the barrier %s: got %v, want %v", what, err, want)
		}
	}
	barrier("before execution", task.Birth(), task.RunID(), child.ErrNotJoined)
	work := local(says("the result", func(context.Context) {
		barrier("while it runs", task.Birth(), task.RunID(), child.ErrNotJoined)
		c := r.stored(task.SessionID()).Child
		if c.Metadata[ticket.MetaTaskState] != ticket.TaskRunning || c.Metadata[ticket.MetaOwnedStop] != "" || c.Actor.Status != ticket.ActorRunning {
			t.Errorf("while it runs: %+v, actor %+v", c, c.Actor)
		}
	}))
	if err := task.Execute(ctx, work); err != nil {
		t.Fatal(err)
	}
	if err := task.Execute(ctx, work); !errors.Is(err, child.ErrExecuted) {
		t.Errorf("a second execution: got %v, want %v", err, child.ErrExecuted)
	}
	barrier("after the join", task.Birth(), task.RunID(), nil)
	barrier("for another birth", "2001-01-01T00:00:00.000000000Z", task.RunID(), ticket.ScopeDenied)
	barrier("for another run", task.Birth(), "another-run", ticket.ScopeDenied)

	c := r.stored(task.SessionID()).Child
	var raw map[string]any
	if err := json.Unmarshal([]byte(c.Metadata[ticket.MetaOwnedStop]), &raw); err != nil {
		t.Fatal(err)
	}
	instance, err := uuid.Parse(raw["task_instance"].(string))
	if err != nil || instance == uuid.Nil {
		t.Errorf("task_instance %v: %v", raw["task_instance"], err)
	}
	if _, ok := raw["pid"]; ok || raw["completed"] != true || raw["child_birth"] != task.Birth() || raw["receipt"].(map[string]any)["run_id"] != task.RunID() {
		t.Errorf("the stop receipt is %v", raw)
	}
	if c.Metadata[ticket.MetaTaskInstance] != instance.String() || c.Metadata[ticket.MetaTaskState] != ticket.TaskStopped {
		t.Errorf("the mirror is %v", c.Metadata)
	}
	if a := r.assignment(id); !a.ProcessStopped || r.scope.State().Counts().Submissions != 0 {
		t.Errorf("after the stop: %+v, %+v; want it stopped, and no submission: a stop is no result", a, r.scope.State().Counts())
	}
	if c.Actor.Status != ticket.ActorRunning {
		t.Errorf("the actor is %s, want it running until the result is published", c.Actor.Status)
	}
	if err := task.Finish(ctx); !errors.Is(err, ticket.AuthorityUnavailable) {
		t.Errorf("finish before the result: got %v, want %v", err, ticket.AuthorityUnavailable)
	}

	before := c.Metadata[ticket.MetaOwnedStop]
	if err := task.Save(ctx); err != nil {
		t.Fatal(err)
	}
	if c := r.stored(task.SessionID()).Child; c.Status != ticket.ChildCompleted || c.Metadata[ticket.MetaOwnedStop] != before {
		t.Errorf("after the final save: %+v", c)
	}
	first, ok, err := task.Checkpoint(ctx)
	if err != nil || !ok {
		t.Fatalf("the result checkpoint: got %v, %v", ok, err)
	}
	was := r.bytes()
	again, ok, err := r.newRunner().Checkpoint(ctx, id, task.RunID())
	if err != nil || !ok || !cmp.Equal(first, again) {
		t.Errorf("the result checkpoint again, of a host that was restarted: got %+v, %v, %v; want %+v", again, ok, err, first)
	}
	r.unchanged("a second result checkpoint", was)
	if err := r.runner.Shutdown(); err == nil || err.Error() != "not finished: a@1" {
		t.Errorf("shutdown before finish: got %v, want one that names a@1", err)
	}
	if err := task.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if got := r.stored(task.SessionID()).Child.Actor.Status; got != ticket.ActorSucceeded {
		t.Errorf("the actor is %s, want %s", got, ticket.ActorSucceeded)
	}
	close(gone)
	if err := r.runner.Shutdown(); err != nil {
		t.Errorf("shutdown after finish: got %v, want none", err)
	}
	if _, err := r.runner.Prepare(ctx, id); !errors.Is(err, ticket.InvalidTransition) {
		t.Errorf("prepare of what ran: got %v, want %v", err, ticket.InvalidTransition)
	}
}

func TestInputsReachTheChild(t *testing.T) {
	r := newRig(t, nil)
	first := r.start("a", contract())
	if o, err := r.runner.Run(t.Context(), first, local(says("what a gave", nil))); err != nil || o.Status != ticket.ChildCompleted {
		t.Fatalf("got %+v, %v", o, err)
	}
	r.give(boss, ticket.Accept{Of: ticket.Of{Ticket: "a"}, Submission: first})
	second := r.start("b", contract(), "a")
	task, err := r.runner.Prepare(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	spec := task.Spec()
	if len(spec.Inputs) != 1 || spec.Inputs[0].Submission != first {
		t.Errorf("got inputs %+v", spec.Inputs)
	}
	if err := task.Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// T-9: an unsuccessful child publishes its stop and no submission.
func TestAFailedChildHasAStopAndNoResult(t *testing.T) {
	r := newRig(t, nil)
	id := r.start("a", contract())
	o, err := r.runner.Run(t.Context(), id, local(says("", nil))) // an empty answer, three times
	if err != nil || o.Status != ticket.ChildFailed || o.Err == nil {
		t.Errorf("got %+v, %v; want it failed", o, err)
	}
	if a := r.assignment(id); a.State != ticket.Failed || !a.ProcessStopped || r.scope.State().Counts().Submissions != 0 {
		t.Errorf("got %+v", a)
	}
	if got := r.stored(r.assignment(id).Runtime.SessionID).Child.Actor.Status; got != ticket.ActorFailed {
		t.Errorf("the actor is %s, want %s", got, ticket.ActorFailed)
	}
	if tk := r.ticket("a"); tk.State != ticket.Blocked {
		t.Errorf("the ticket is %s, want it blocked: its one attempt is spent", tk.State)
	}
}

// T-11: without its coordinator a child is cancelled.
func TestAnOrphanIsCancelled(t *testing.T) {
	r := newRig(t, nil)
	id := r.start("a", contract())
	ctx, gone := context.WithCancel(t.Context())
	o, err := r.runner.Run(ctx, id, local(says("too late", func(ctx context.Context) {
		gone()
		<-ctx.Done()
	})))
	if err != nil || o.Status != ticket.ChildCancelled {
		t.Errorf("got %+v, %v; want it cancelled", o, err)
	}
	if a := r.assignment(id); !a.ProcessStopped || r.scope.State().Counts().Submissions != 0 {
		t.Errorf("got %+v; want its stop published and no result", a)
	}
}

func TestATrackedCoordinatorThatEndsCancelsARunToCome(t *testing.T) {
	r := newRig(t, nil)
	id := r.start("a", contract())
	task, err := r.runner.Prepare(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	if err := task.Track(gone); err != nil {
		t.Fatal(err)
	}
	close(gone)
	if err := task.Execute(t.Context(), local(says("x", func(ctx context.Context) { <-ctx.Done() }))); err != nil {
		t.Fatal(err)
	}
	if got := task.Outcome().Status; got != ticket.ChildCancelled {
		t.Errorf("got %s, want %s", got, ticket.ChildCancelled)
	}
	if err := task.Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// T-5: a run whose ticket is cancelled loses its permit and is cancelled.
func TestARunWithoutPermitIsCancelled(t *testing.T) {
	r := newRig(t, nil)
	id := r.start("a", contract())
	o, err := r.runner.Run(t.Context(), id, local(says("late", func(ctx context.Context) {
		r.give(boss, ticket.Cancel{Of: ticket.Of{Ticket: "a"}})
		<-ctx.Done()
	})))
	if err != nil || o.Status != ticket.ChildCancelled {
		t.Errorf("got %+v, %v; want it cancelled", o, err)
	}
	if a := r.assignment(id); a.State != ticket.AssignmentCancelled || !a.ProcessStopped {
		t.Errorf("got %+v", a)
	}
}

// T-13: a result that can't be one is never submitted; its stop is.
func TestAnAnswerThatIsNoResultIsNotSubmitted(t *testing.T) {
	r := newRig(t, nil)
	id := r.start("a", contract())
	o, err := r.runner.Run(t.Context(), id, local(says(strings.Repeat("x", ticket.MaxArtifactBytes+1), nil)))
	if err != nil || o.Status != ticket.ChildCompleted {
		t.Fatalf("got %s, %v; want a completed run with an answer that is too long", o.Status, err)
	}
	if _, _, err := r.runner.Checkpoint(t.Context(), id, r.assignment(id).Runtime.RunID); !errors.Is(err, ticket.InvalidTransition) {
		t.Errorf("the result checkpoint: got %v, want %v", err, ticket.InvalidTransition)
	}
	if a := r.assignment(id); !a.ProcessStopped || r.scope.State().Counts().Submissions != 0 {
		t.Errorf("got %+v; want it stopped and nothing submitted", a)
	}
}

func TestAnAbandonedAdmissionIsProvedToHaveStopped(t *testing.T) {
	r := newRig(t, nil)
	id := r.start("a", contract())
	task, err := r.runner.Prepare(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.runner.Recover(t.Context(), id); !errors.Is(err, ticket.ResourceBlocked) {
		t.Errorf("recover of what is held: got %v, want %v", err, ticket.ResourceBlocked)
	}
	if err := task.Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := task.Execute(t.Context(), local(says("x", nil))); !errors.Is(err, child.ErrExecuted) {
		t.Errorf("execute after abandon: got %v, want %v", err, child.ErrExecuted)
	}
	if _, err := r.runner.Recover(t.Context(), id); err != nil {
		t.Errorf("recover: got %v, want none", err)
	}
	if a := r.assignment(id); a.State != ticket.Failed || !a.ProcessStopped {
		t.Errorf("got %+v, want it failed, its stop proved", a)
	}
}

// T-8: a result that comes after its ticket was cancelled is kept, and changes nothing.
func TestALateResultIsKeptAsStale(t *testing.T) {
	r := newRig(t, nil)
	id := r.start("a", contract())
	task, err := r.runner.Prepare(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Execute(t.Context(), local(says("too late", nil))); err != nil {
		t.Fatal(err)
	}
	if err := task.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.give(boss, ticket.Cancel{Of: ticket.Of{Ticket: "a"}})
	before := r.ticket("a")
	if _, ok, err := task.Checkpoint(t.Context()); err != nil || !ok {
		t.Errorf("the result checkpoint: got %v, %v", ok, err)
	}
	if sub, ok := r.scope.State().Submission(id); !ok || !sub.Stale {
		t.Errorf("got %+v, %v; want it kept as stale", sub, ok)
	}
	if d := cmp.Diff(before, r.ticket("a")); d != "" {
		t.Errorf("the late result changed the ticket:\n%s", d)
	}
	if err := task.Finish(t.Context()); err != nil {
		t.Error(err)
	}
}
