package child

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/ticket"
)

// Work is what a child does: a Local task or a Command.
type Work interface {
	// begin makes durable what is about to run. Nothing runs yet.
	begin(ctx context.Context, t *Task) (execution, error)
}

// execution is one run of a child's agent, ready to go.
type execution interface {
	// spec is the loop that drives it.
	spec() host.RunSpec
	// stopped drains what the run used, once its loop has ended or was never
	// started, and gives the proof that nothing of it is left.
	stopped(ctx context.Context) (ticket.StopReceipt, error)
}

// running holds the runs that execute in this process, by their ids: what else this
// process claimed and does not execute has stopped, and it may say so.
var running sync.Map

// Execute runs the child's agent, once: it begins the work, joins it, drains what it
// used, and then concludes. ctx's end, the coordinator's and the permit's cancel the
// run (L-17, T-5, T-11); what must be written then is written all the same. How the
// run ended is Outcome; an error says that its stop could not be proved, written or
// published, and Conclude may be called again.
func (t *Task) Execute(ctx context.Context, w Work) error {
	t.mu.Lock()
	if t.executed || t.over {
		t.mu.Unlock()
		return ErrExecuted
	}
	t.executed = true
	t.mu.Unlock()

	durable := context.WithoutCancel(ctx)
	e, err := w.begin(durable, t)
	if err != nil {
		t.outcome = Outcome{Status: ticket.ChildFailed, Err: err}
		e = nothing{t}
	} else {
		running.Store(t.RunID(), t)
		t.outcome = t.run(ctx, e.spec())
	}
	return t.conclude(durable, e)
}

// run runs the loop and joins it.
func (t *Task) run(ctx context.Context, spec host.RunSpec) Outcome {
	watch, done := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { t.watchPermit(watch) })
	joined := make(chan Outcome, 1)
	go func() { joined <- outcomeOf(t.session.Run(ctx, spec)) }()
	o := <-joined
	done()
	watcher.Wait()
	return o
}

// outcomeOf is what a loop's end says of the child.
func outcomeOf(r host.Result, err error) Outcome {
	o := Outcome{Status: ticket.ChildFailed, Result: r, Err: err}
	switch {
	case err == nil && r.Status == loop.Completed:
		o.Status = ticket.ChildCompleted
	case err == nil && r.ReasonCode == loop.ReasonWallTime:
		o.Status, o.Err = ticket.ChildTimedOut, errors.New("its time was over")
	case err == nil:
		o.Err = fmt.Errorf("the loop ended as %s (%s): %s", r.Status, r.ReasonCode, r.Reason)
	case errors.Is(err, host.ErrCancelled):
		o.Status = ticket.ChildCancelled
	}
	return o
}

// conclude is rows 7 and 8: the proof first into the child's own record, then to the
// scope.
func (t *Task) conclude(ctx context.Context, e execution) error {
	receipt, err := e.stopped(ctx)
	if err != nil {
		t.unproved = e
		return fmt.Errorf("assignment %s: its run is not proved to have stopped: %w", t.Assignment(), err)
	}
	t.unproved = nil
	running.Delete(t.RunID())
	receipt.Completed = t.outcome.Status == ticket.ChildCompleted
	t.stop = &receipt
	t.joinOnce.Do(func() { close(t.joined) })
	return t.Conclude(ctx)
}

// Conclude writes the stop receipt into the child's record and publishes the stop, as
// Execute does. It is for trying again: what is done already stays as it is. Where
// another owner took the child over, the error matches store.ErrFenced: Recover is the
// way then.
func (t *Task) Conclude(ctx context.Context) error {
	if e := t.unproved; e != nil {
		return t.conclude(ctx, e)
	}
	if t.stop == nil {
		return ErrNotJoined
	}
	if err := t.writeStop(ctx, *t.stop); err != nil {
		return err
	}
	_, err := t.runner.PublishStop(ctx, t.Assignment(), t.RunID())
	return err
}

// nothing is the execution of work that could not begin.
type nothing struct{ t *Task }

func (n nothing) spec() host.RunSpec { return host.RunSpec{} }

func (n nothing) stopped(context.Context) (ticket.StopReceipt, error) { return n.t.neverRan(), nil }
