package child

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/ticket"
)

// Task is one claimed and admitted assignment. Prepare makes it; Finish or Abandon
// ends it. Execute, Save, Finish and Abandon are called one after the other; the rest
// may be called from any goroutine.
type Task struct {
	runner   *Runner
	session  *host.Session // the fenced writer for exactly this child and run
	spec     ticket.DispatchSpec
	dispatch ticket.ChildDispatch // with the run
	epoch    uint64

	sent, admitted bool // the admission was sent, and is known to be carried out
	outcome        Outcome
	unproved       execution           // what was run and is not proved to have stopped; nil: nothing
	stop           *ticket.StopReceipt // once the run was joined

	mu        sync.Mutex
	executed  bool
	tracked   bool
	over      bool
	ended     chan struct{} // closed by Finish and Abandon
	joined    chan struct{} // closed once the run was joined and its resources drained
	joinOnce  sync.Once
	published chan struct{} // closed once the result, or that there is none, is published
	publish   sync.Once
	watchers  sync.WaitGroup
}

// Outcome is how a run ended.
type Outcome struct {
	Status ticket.ChildStatus
	Result host.Result // of the loop
	Err    error       // why it did not complete; nil where it did
}

// Errors of a Task's steps taken in a wrong order.
var (
	ErrExecuted    = errors.New("the task was executed already; a run happens once")
	ErrNotJoined   = errors.New("the task was not joined yet")
	ErrTaskOver    = errors.New("the task is over")
	ErrTracked     = errors.New("the task has a coordinator already")
	ErrCoordinator = errors.New("the coordinator is gone")
)

// Spec is what the child is told. Its contract and inputs must not be changed.
func (t *Task) Spec() ticket.DispatchSpec { return t.spec }

// Assignment is the assignment's id.
func (t *Task) Assignment() string { return t.dispatch.Assignment }

// SessionID is the child session's id.
func (t *Task) SessionID() string { return t.session.ID() }

// RunID is the admitted run's id: the execution that holds the child session.
func (t *Task) RunID() string { return t.session.ExecutionID() }

// Birth is the child session's birth.
func (t *Task) Birth() string { return t.session.Birth().String() }

// Worker is the principal of the run: what it may do is asked of the scope (T-5).
func (t *Task) Worker() ticket.Principal {
	return ticket.Worker(t.dispatch.Assignment, t.dispatch.Generation, t.RunID(), t.SessionID())
}

// Track watches the coordinator of the task, a goroutine or a process whose end
// closes gone. If it ends before the result is published, the run is cancelled: nobody
// would take what it makes (T-11). An error hands the coordinator back: ErrTracked, or
// ErrTaskOver.
func (t *Task) Track(gone <-chan struct{}) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return ErrTaskOver
	case t.tracked:
		return ErrTracked
	}
	t.tracked = true
	t.watchers.Go(func() {
		select {
		case <-t.published:
		case <-t.ended:
		case <-gone:
			t.orphaned()
		}
	})
	return nil
}

// orphaned cancels a run that is under way, or that is yet to begin.
func (t *Task) orphaned() {
	err := t.session.Cancel(ErrCoordinator.Error())
	if err != nil && !errors.Is(err, host.ErrNotRunning) {
		t.runner.log.Error("an orphan was not asked to stop", "assignment", t.Assignment(), "error", err)
	}
}

// Deliverable is the delivery barrier (T-10): nil once the run was joined and the
// child and run are the caller's, so that what the child left may be looked at.
func (t *Task) Deliverable(birth, run string) error {
	select {
	case <-t.joined:
	default:
		return refuse("deliver", t.Assignment(), ticket.AuthorityUnavailable, ErrNotJoined, "wait until it was joined")
	}
	switch {
	case birth != t.Birth():
		return refuse("deliver", t.Assignment(), ticket.ScopeDenied, nil, "the child's birth is %s, not %s", t.Birth(), birth)
	case run != t.RunID():
		return refuse("deliver", t.Assignment(), ticket.ScopeDenied, nil, "the run is %s, not %s", t.RunID(), run)
	}
	return nil
}

// Outcome is how the run ended; the zero value before it was joined.
func (t *Task) Outcome() Outcome {
	select {
	case <-t.joined:
		return t.outcome
	default:
		return Outcome{}
	}
}

// Save is the child's final save: how the run ended (life cycle, row 9). What the host
// wrote under its reserved keys stays as it is (T-12).
func (t *Task) Save(ctx context.Context) error {
	if err := t.Deliverable(t.Birth(), t.RunID()); err != nil {
		return err
	}
	return t.session.UpdateChild(ctx, func(c *host.Child) error {
		c.Status = t.outcome.Status
		return nil
	})
}

// Finish ends the actor and gives the session back (life cycle, row 11). The result,
// or that there is none, must be published before.
func (t *Task) Finish(ctx context.Context) error {
	select {
	case <-t.published:
	default:
		return refuse("finish", t.Assignment(), ticket.AuthorityUnavailable, nil, "its result is not published; take the result checkpoint first")
	}
	if err := t.runner.finishActor(ctx, t.session, t.Assignment()); err != nil {
		return err
	}
	return t.end(ctx)
}

// Abandon gives the session back whatever was reached; who comes next finds what is
// durable. A run that may have been admitted and never began is told so by its stop
// receipt, which whoever recovers the child publishes.
func (t *Task) Abandon(ctx context.Context) error {
	t.mu.Lock()
	began := t.executed
	t.executed = true
	t.mu.Unlock()
	var err error
	if !began && t.sent {
		err = t.writeStop(ctx, t.neverRan())
	}
	return errors.Join(err, t.end(ctx))
}

func (t *Task) end(ctx context.Context) error {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return nil
	}
	t.over = true
	close(t.ended)
	t.mu.Unlock()
	t.watchers.Wait()
	t.runner.remove(t)
	if err := t.session.Close(ctx); err != nil {
		return fmt.Errorf("give the child session back: %w", err)
	}
	return nil
}

func (t *Task) resultIsPublished() { t.publish.Do(func() { close(t.published) }) }
