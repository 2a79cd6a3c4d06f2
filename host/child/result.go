package child

import (
	"context"

	"github.com/loophost/loophost/host/ticket"
)

// Checkpoint is the result checkpoint (life cycle, rows 8 and 10): from what canonical
// storage holds of the child, and from nothing else, it publishes the stop and then
// submits the result. It may be taken by anybody and again: the same receipt comes
// back and nothing is written (T-1). ok is false for a child that did not complete: it
// has a stop and no result (T-9).
//
// Errors are those of ticket.State.JudgeStop, after which nothing is published, and of
// JudgeResult, after which the stop is: InvalidTransition says that the last message
// can't be a result (T-13).
func (r *Runner) Checkpoint(ctx context.Context, assignment, run string) (receipt ticket.Receipt, ok bool, err error) {
	c, err := r.canonical(ctx, assignment)
	if err != nil {
		return ticket.Receipt{}, false, err
	}
	stop, err := r.scope.State().JudgeStop(assignment, run, c)
	if err != nil {
		return ticket.Receipt{}, false, err
	}
	if _, err := r.do(ctx, stop.Operation(), stop); err != nil {
		return ticket.Receipt{}, false, err
	}
	result, ok, err := r.scope.State().JudgeResult(assignment, run, c)
	if err != nil || !ok {
		return ticket.Receipt{}, false, err
	}
	if _, err := r.artifacts.Put(ctx, result.Content); err != nil {
		return ticket.Receipt{}, false, err
	}
	receipt, err = r.do(ctx, result.Submit.Operation(), result.Submit)
	return receipt, err == nil, err
}

// Checkpoint takes the result checkpoint of the task.
func (t *Task) Checkpoint(ctx context.Context) (receipt ticket.Receipt, ok bool, err error) {
	receipt, ok, err = t.runner.Checkpoint(ctx, t.Assignment(), t.RunID())
	if err == nil || settled(err) {
		t.resultIsPublished()
	}
	return receipt, ok, err
}
