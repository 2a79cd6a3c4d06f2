package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/pluginapi"
)

func taskCases() []Case {
	return []Case{
		inTickets("M-4/real-task", "A real task that was joined leaves a receipt that is bound to its instance's UUID and names no pid, a mirror that is stopped, and process_stopped; there is no submission until the result checkpoint, and its actor is still running.", realTask),
		inTickets("M-4/barrier", "The delivery barrier answers an error before the execution and while it runs, and after it for a wrong birth and for another run.", barrier),
		inTickets("M-4/result-twice", "The result checkpoint gives the canonical child's last message; taken twice it gives the same receipt and leaves the same bytes.", resultTwice),
		inTickets("M-4/result-after-reopening", "When everything was closed and opened again, the result checkpoint gives the same receipt, the bytes since reopening stay, and there is one submission.", resultAfterReopening),
		inTickets("T-12/steps-in-order", "A run is executed once, with the dispatch's model; the final save keeps what the host wrote; nothing is finished before its result, and shutdown names what is still alive.", stepsInOrder),
		inTickets("T-5/permit-ends-with-the-stop", "A worker has its permit while it runs and none once its stop is proved.", permitEnds),
		inTickets("T-5/cancelled-ticket", "A run whose ticket another worker cancels loses its permit and is cancelled.", cancelledTicket),
	}
}

// fixtureModel is the model that every dispatch of a local task names.
const fixtureModel = "fixture-model"

// agent is the agent of a local task: it counts its calls and answers one text.
type agent struct {
	text   string
	during func(ctx context.Context) // before the answer; nil: nothing
	fail   error                     // instead of an answer; nil: none

	mu     sync.Mutex
	calls  int
	models []string
}

// work is the task that runs the agent.
func (a *agent) work() child.Local {
	return child.Local{Spec: host.RunSpec{Iterations: 1, Rounds: 1, Model: fixtureModel, Provider: plugin.FuncProvider{Name: "conformance", Fn: a.complete}}}
}

func (a *agent) complete(ctx context.Context, _ plugin.Session, req *plugin.Request, _ func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
	a.mu.Lock()
	a.calls++
	a.models = append(a.models, req.Model)
	a.mu.Unlock()
	if a.during != nil {
		a.during(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.fail != nil {
		return nil, a.fail
	}
	return &pluginapi.ProviderResult{Message: pluginapi.Message{Role: pluginapi.RoleAssistant, Text: a.text}, Finish: pluginapi.FinishStop}, nil
}

func (a *agent) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}

// onTask is a scope with one ticket that was started, and its task, prepared and tracked.
type onTask struct {
	*scopeRig
	agent      *agent
	assignment string
	task       *child.Task
	gone       chan struct{} // the coordinator's end
}

// prepared takes the steps to an admitted run of a ticket "work".
func (e *Env) prepared(ctx context.Context, id string) (*onTask, error) {
	rig, err := e.newScope(ctx, id, "work")
	if err != nil {
		return nil, err
	}
	assignment, err := rig.start(ctx, "work", 1)
	if err != nil {
		return nil, err
	}
	return rig.prepare(ctx, assignment, e.answer("the result of "+id))
}

// prepare claims an assignment and admits its run.
func (r *scopeRig) prepare(ctx context.Context, assignment, text string) (*onTask, error) {
	task, err := r.runner.Prepare(ctx, assignment)
	if err != nil {
		return nil, failf("prepare %s: want success, got %w", assignment, err)
	}
	o := &onTask{scopeRig: r, agent: &agent{text: text}, assignment: assignment, task: task, gone: make(chan struct{})}
	r.e.atEnd(func() { _ = task.Abandon(context.Background()) }) // one that is over stays so
	return o, wantOK("track the coordinator", task.Track(o.gone))
}

// executed takes the steps to a published stop.
func (e *Env) executed(ctx context.Context, id string) (*onTask, error) {
	o, err := e.prepared(ctx, id)
	if err != nil {
		return nil, err
	}
	return o, wantOK("execute", o.task.Execute(ctx, o.agent.work()))
}

// submitted takes the steps to a result, and gives its receipt.
func (e *Env) submitted(ctx context.Context, id string) (*onTask, ticket.Receipt, error) {
	o, err := e.executed(ctx, id)
	if err != nil {
		return nil, ticket.Receipt{}, err
	}
	receipt, err := o.submit(ctx)
	return o, receipt, err
}

// submit takes the final save and the result checkpoint.
func (o *onTask) submit(ctx context.Context) (ticket.Receipt, error) {
	if err := o.task.Save(ctx); err != nil {
		return ticket.Receipt{}, failf("the final save: want success, got %w", err)
	}
	receipt, ok, err := o.task.Checkpoint(ctx)
	if err != nil || !ok {
		return receipt, failf("the result checkpoint: want a result, got %t, %w", ok, orNone(err))
	}
	return receipt, nil
}

// stopReceipt is the stored receipt of the task, as it is and as JSON.
func (o *onTask) stopReceipt(ctx context.Context) (string, map[string]any, error) {
	c, err := o.child(ctx, o.task.SessionID())
	if err != nil {
		return "", nil, err
	}
	raw, fields := c.Metadata[ticket.MetaOwnedStop], map[string]any{}
	if err := json.Unmarshal([]byte(raw), &fields); err != nil {
		return raw, nil, failf("the stop receipt %q: %w", raw, err)
	}
	return raw, fields, nil
}

func realTask(ctx context.Context, e *Env) error {
	o, err := e.executed(ctx, "real")
	if err != nil {
		return err
	}
	raw, fields, err := o.stopReceipt(ctx)
	if err != nil {
		return err
	}
	text, _ := fields["task_instance"].(string)
	instance, err := uuid.Parse(text)
	if err != nil || instance == uuid.Nil {
		return failf("task_instance: want a UUID that is not nil, got %q", text)
	}
	c, err := o.child(ctx, o.task.SessionID())
	if err != nil {
		return err
	}
	a, err := o.scopeRig.assignment(ctx, o.assignment)
	if err != nil {
		return err
	}
	_, pid := fields["pid"]
	receipt, _ := fields["receipt"].(map[string]any)
	return errors.Join(
		wantEqual("calls of the agent", o.agent.count(), 1),
		wantEqual("the receipt names a pid", pid, false),
		wantEqual("child_birth", fields["child_birth"], any(o.task.Birth())),
		wantEqual("completed", fields["completed"], any(true)),
		wantEqual("run_id", receipt["run_id"], any(o.task.RunID())),
		wantEqual("session_id", receipt["session_id"], any(o.task.SessionID())),
		wantEqual("dispatch_key", receipt["dispatch_key"], any(a.DispatchKey)),
		wantEqual("spec_hash", receipt["spec_hash"], any(a.SpecHash)),
		wantEqual(ticket.MetaTaskInstance, c.Metadata[ticket.MetaTaskInstance], instance.String()),
		wantEqual(ticket.MetaTaskState, c.Metadata[ticket.MetaTaskState], ticket.TaskStopped),
		wantEqual("process_stopped", a.ProcessStopped, true),
		wantEqual("submissions: a stop alone is no result", o.scope.State().Counts().Submissions, 0),
		o.wantActor(ctx, "until the result is published", o.task.SessionID(), ticket.ActorRunning),
		wantOK("publish the same stop again", o.sameStop(ctx, raw)),
	)
}

// sameStop publishes the stop once more: nothing changes (T-6).
func (o *onTask) sameStop(ctx context.Context, raw string) error {
	before, err := o.still(ctx)
	if err != nil {
		return err
	}
	_, err = o.runner.PublishStop(ctx, o.assignment, o.task.RunID())
	now, _, rerr := o.stopReceipt(ctx)
	return errors.Join(err, rerr, wantEqual("the stored receipt", now, raw), o.wantStill(ctx, "a stop that was published already", before))
}

func barrier(ctx context.Context, e *Env) error {
	o, err := e.prepared(ctx, "barrier")
	if err != nil {
		return err
	}
	birth, run := o.task.Birth(), o.task.RunID()
	deliver := func(what, birth, run string, kind ticket.Kind) error {
		return wantRefusal("the barrier "+what, o.task.Deliverable(birth, run), kind, "")
	}
	before := deliver("before the execution", birth, run, ticket.AuthorityUnavailable)
	var during error
	o.agent.during = func(context.Context) {
		during = deliver("while the agent runs", birth, run, ticket.AuthorityUnavailable)
	}
	return errors.Join(before,
		wantOK("execute", o.task.Execute(ctx, o.agent.work())), during,
		wantOK("the barrier after the join", o.task.Deliverable(birth, run)),
		deliver("for a wrong birth", "1", run, ticket.ScopeDenied),
		deliver("for another run", birth, "another-run", ticket.ScopeDenied),
	)
}

// wantResult checks the one submission of the task, by what storage holds.
func (o *onTask) wantResult(ctx context.Context, stale bool) error {
	s, err := o.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	sub, ok := s.Submission(o.assignment)
	if !ok {
		return failf("want a submission of %s, got none", o.assignment)
	}
	want := ticket.NameArtifact([]byte(o.agent.text))
	bad := []error{
		wantEqual("the submission is stale", sub.Stale, stale),
		wantEqual("its artifacts", len(sub.Artifacts), 1),
		wantEqual("its run", sub.Runtime.RunID, o.task.RunID()),
	}
	if len(sub.Artifacts) == 1 {
		content, err := o.artifact(ctx, sub.Artifacts[0].SHA256)
		bad = append(bad, err, wantEqual("its artifact", sub.Artifacts[0], want), wantBytes("what the artifact holds", content, []byte(o.agent.text)))
	}
	return errors.Join(bad...)
}

func resultTwice(ctx context.Context, e *Env) error {
	o, first, err := e.submitted(ctx, "twice")
	if err != nil {
		return err
	}
	before, err := o.still(ctx)
	if err != nil {
		return err
	}
	again, ok, err := o.runner.Checkpoint(ctx, o.assignment, o.task.RunID())
	if err != nil || !ok {
		return failf("the result checkpoint again: want a result, got %t, %w", ok, orNone(err))
	}
	return errors.Join(
		wantReceipt("the result checkpoint again", again, first),
		o.wantStill(ctx, "the result checkpoint again", before),
		o.wantResult(ctx, false),
		wantEqual("submissions", before.counts.Submissions, 1),
	)
}

func resultAfterReopening(ctx context.Context, e *Env) error {
	o, first, err := e.submitted(ctx, "reopened")
	if err != nil {
		return err
	}
	closed, err := o.still(ctx)
	if err != nil {
		return err
	}
	if err := o.task.Finish(ctx); err != nil {
		return failf("finish: want success, got %w", err)
	}
	rig, err := o.restarted(ctx)
	if err != nil {
		return err
	}
	if err := rig.wantStill(ctx, "closing and reopening", closed); err != nil {
		return err
	}
	again, ok, err := rig.runner.Checkpoint(ctx, o.assignment, o.task.RunID())
	if err != nil || !ok {
		return failf("the result checkpoint of a worker that was started anew: want a result, got %t, %w", ok, orNone(err))
	}
	o.scopeRig = rig
	return errors.Join(
		wantReceipt("the result checkpoint after reopening", again, first),
		rig.wantStill(ctx, "the result checkpoint after reopening", closed),
		wantEqual("submissions", rig.scope.State().Counts().Submissions, 1),
		o.wantResult(ctx, false),
		rig.wantActor(ctx, "after its end", o.task.SessionID(), ticket.ActorSucceeded),
	)
}

func stepsInOrder(ctx context.Context, e *Env) error {
	o, err := e.executed(ctx, "steps")
	if err != nil {
		return err
	}
	work := o.agent.work()
	second := wantEqual("executing again is refused", errors.Is(o.task.Execute(ctx, work), child.ErrExecuted), true)
	raw, _, err := o.stopReceipt(ctx)
	if err != nil {
		return err
	}
	early := wantRefusal("finish before the result is published", o.task.Finish(ctx), ticket.AuthorityUnavailable, "")
	_, err = o.submit(ctx)
	if err != nil {
		return err
	}
	alive := wantText("shutdown before finish", o.runner.Shutdown(), o.assignment)
	c, err := o.child(ctx, o.task.SessionID())
	if err != nil {
		return err
	}
	after, _, err := o.stopReceipt(ctx)
	if err != nil {
		return err
	}
	o.agent.mu.Lock()
	models := o.agent.models
	o.agent.mu.Unlock()
	return errors.Join(second, early, alive,
		wantEqual("the models that the agent was called with", len(models) == 1 && models[0] == fixtureModel, true),
		wantEqual("the final status", c.Status, ticket.ChildCompleted),
		wantEqual("the stop receipt after the final save", after, raw),
		wantOK("finish", o.task.Finish(ctx)),
		o.wantActor(ctx, "after finish", o.task.SessionID(), ticket.ActorSucceeded),
		wantOK("shutdown after finish", o.runner.Shutdown()),
	)
}

func permitEnds(ctx context.Context, e *Env) error {
	o, err := e.prepared(ctx, "permit")
	if err != nil {
		return err
	}
	worker := o.task.Worker()
	var during error
	o.agent.during = func(ctx context.Context) {
		s, err := o.scope.Refresh(ctx)
		if err == nil {
			err = s.Permit(worker)
		}
		during = wantOK("the permit of a run under way", err)
	}
	if err := o.task.Execute(ctx, o.agent.work()); err != nil {
		return failf("execute: want success, got %w", err)
	}
	late, err := o.another(ctx)
	if err != nil {
		return err
	}
	return errors.Join(during,
		wantRefusal("the permit after the stop", late.scope.State().Permit(worker), ticket.ScopeDenied, "stop"),
		o.refused(ctx, "an effect after the stop", ticket.ScopeDenied, "stop", func() error {
			_, err := o.do(ctx, worker, ticket.RecordEffect{Assignment: o.assignment, Effect: "it was late"})
			return err
		}))
}

func cancelledTicket(ctx context.Context, e *Env) error {
	o, err := e.prepared(ctx, "cancelled")
	if err != nil {
		return err
	}
	boss, err := o.another(ctx)
	if err != nil {
		return err
	}
	var given error
	o.agent.during = func(ctx context.Context) {
		if given = boss.give(ctx, ticket.Cancel{Of: of("work")}); given == nil {
			<-ctx.Done()
		}
	}
	if err := errors.Join(o.task.Execute(ctx, o.agent.work()), given); err != nil {
		return failf("execute: want success, got %w", err)
	}
	a, err := o.scopeRig.assignment(ctx, o.assignment)
	if err != nil {
		return err
	}
	return errors.Join(
		wantEqual("how the run ended", o.task.Outcome().Status, ticket.ChildCancelled),
		wantEqual("the assignment", a.State, ticket.AssignmentCancelled),
		wantEqual("process_stopped", a.ProcessStopped, true),
		wantEqual("submissions", o.scope.State().Counts().Submissions, 0),
	)
}
