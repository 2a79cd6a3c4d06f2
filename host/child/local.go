package child

import (
	"context"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/ticket"
)

// Local is work done by a counted loop inside this process, under a task instance of
// its own.
type Local struct {
	// Spec is the loop. The assignment (see Prompt) is added to System; Objective "" is
	// the contract's. Its tools are asked for only under the run's permit
	// (T-5), and only those that the contract allows, if it names any.
	Spec host.RunSpec
}

type localExecution struct {
	t        *Task
	instance string
	loop     host.RunSpec
}

func (l Local) begin(ctx context.Context, t *Task) (execution, error) {
	spec, err := t.told(ctx, l.Spec)
	if err != nil {
		return nil, err
	}
	e := &localExecution{t: t, instance: uuid.NewString(), loop: spec}
	tools := make([]plugin.Tool, 0, len(spec.Tools))
	for _, tool := range spec.Tools {
		if allowed := allow(tool, t.spec.Contract.AllowedTools); allowed != nil {
			tools = append(tools, permitted{allowed, t})
		}
	}
	e.loop.Tools = tools
	return e, t.session.UpdateChild(ctx, func(c *host.Child) error {
		c.Metadata[ticket.MetaTaskState], c.Metadata[ticket.MetaTaskInstance] = ticket.TaskRunning, e.instance
		return runActor(c)
	})
}

func (e *localExecution) spec() host.RunSpec { return e.loop }

// stopped: the loop was joined, and a loop has drained its calls when it returns.
func (e *localExecution) stopped(context.Context) (ticket.StopReceipt, error) {
	return ticket.StopReceipt{Receipt: *e.t.dispatch.Receipt, ChildBirth: e.t.dispatch.ChildBirth, TaskInstance: &e.instance}, nil
}
