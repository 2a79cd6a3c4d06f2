package child

import (
	"context"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/ticket"
)

// neverRan is the receipt of a task that was joined before it began.
func (t *Task) neverRan() ticket.StopReceipt {
	instance := uuid.NewString()
	return ticket.StopReceipt{Receipt: *t.dispatch.Receipt, ChildBirth: t.dispatch.ChildBirth, TaskInstance: &instance}
}

// writeStop makes a stop durable in the child's own record: the receipt and what
// metadata says beside it, in one commit, before anybody is told (life cycle, row 7).
func (t *Task) writeStop(ctx context.Context, r ticket.StopReceipt) error {
	if err := t.session.UpdateChild(ctx, func(c *host.Child) error { return putStop(c, r) }); err != nil {
		return err
	}
	t.stop = &r
	return nil
}

// putStop puts a receipt into a child's metadata. It is written once: the same again
// is nothing new, another one is denied (T-6).
func putStop(c *host.Child, r ticket.StopReceipt) error {
	value, changed, err := r.Store(c.Metadata)
	if err != nil || !changed {
		return err
	}
	c.Metadata[ticket.MetaOwnedStop] = value
	if r.TaskInstance != nil {
		c.Metadata[ticket.MetaTaskState], c.Metadata[ticket.MetaTaskInstance] = ticket.TaskStopped, *r.TaskInstance
	}
	return nil
}

// PublishStop tells the scope of a stop that the child's own record proves (life
// cycle, row 8). The same again gives the same receipt (T-1). Errors: those of
// ticket.State.JudgeStop; then nothing is published.
func (r *Runner) PublishStop(ctx context.Context, assignment, run string) (ticket.Receipt, error) {
	c, err := r.canonical(ctx, assignment)
	if err != nil {
		return ticket.Receipt{}, err
	}
	stop, err := r.scope.State().JudgeStop(assignment, run, c)
	if err != nil {
		return ticket.Receipt{}, err
	}
	return r.do(ctx, stop.Operation(), stop)
}
