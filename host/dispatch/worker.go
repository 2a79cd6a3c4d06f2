package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// WorkerConfig says what a Worker works with. Scope, Store, Queue, Runner, Work and
// Name are required.
type WorkerConfig struct {
	Scope  *scope.Scope
	Store  store.Store
	Queue  store.Queue
	Runner *child.Runner
	// Work is what every child does.
	Work child.Work
	Name string // for people, at most store.MaxOwnerBytes
	// Slots is how many children run at once; 0: 1.
	Slots int
	// TTL is the lease of a dispatch; 0: store.DefaultTTL.
	TTL    time.Duration
	Sweep  time.Duration // 0: DefaultSweep
	Logger *slog.Logger  // nil: silent
	// Report is told how each assignment went, on the worker's own goroutines; nil: nobody.
	Report func(assignment string, o child.Outcome, err error)
}

// Worker takes dispatches from a scope's queue and runs their children. Make one with
// NewWorker and call Run.
type Worker struct {
	c    WorkerConfig
	busy atomic.Int64 // dispatches in hand
}

// NewWorker makes a worker. It touches nothing.
func NewWorker(c WorkerConfig) *Worker {
	if c.Slots <= 0 {
		c.Slots = 1
	}
	if c.TTL <= 0 {
		c.TTL = store.DefaultTTL
	}
	if c.Sweep <= 0 {
		c.Sweep = DefaultSweep
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Worker{c: c}
}

// Run takes dispatches until ctx ends, and then drains: it takes no more, and waits
// for the children that run. kill cancels them (T-11); it must outlive ctx. Run returns
// when the last one is finished. Failures of the store are logged and tried again.
func (w *Worker) Run(ctx, kill context.Context) {
	var group sync.WaitGroup
	for range w.c.Slots {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := w.next(ctx, kill); err != nil && ctx.Err() == nil {
					w.c.Logger.Warn("no dispatch can be taken; it is tried again", "scope", w.scopeID(), "error", err)
					pause(ctx, time.Second)
				}
			}
		})
	}
	group.Go(func() { w.sweep(ctx) })
	group.Wait()
}

// Idle reports whether nothing is in hand and nothing waits in the queue.
func (w *Worker) Idle(ctx context.Context) (bool, error) {
	if w.busy.Load() > 0 {
		return false, nil
	}
	n, err := w.c.Queue.Queued(ctx, w.queue())
	return err == nil && n.Waiting == 0 && w.busy.Load() == 0, err
}

func (w *Worker) scopeID() string { return w.c.Scope.Binding().ScopeID }

func (w *Worker) queue() string { return QueueName(w.scopeID()) }

// next takes one dispatch and does it.
func (w *Worker) next(ctx, kill context.Context) error {
	leased, err := w.c.Queue.Lease(ctx, w.queue(), w.c.Name, w.c.TTL, 1)
	if err != nil {
		return err
	}
	for _, l := range leased {
		w.busy.Add(1)
		w.do(kill, l)
		w.busy.Add(-1)
	}
	return nil
}

// do runs the child of a dispatch and keeps its lease meanwhile.
func (w *Worker) do(kill context.Context, l store.Leased) {
	it, err := decodeItem(l.Data)
	if err != nil || it.ScopeID != w.scopeID() {
		w.c.Logger.Error("a dispatch in the queue is not this scope's; it is dropped", "id", l.ID, "error", err)
		w.settle(kill, l, nil)
		return
	}
	keep, done := context.WithCancel(context.WithoutCancel(kill))
	var keeper sync.WaitGroup
	keeper.Go(func() { w.keep(keep, l) })
	o, err := w.c.Runner.Run(kill, it.Assignment, w.c.Work)
	done()
	keeper.Wait()
	if err != nil {
		w.c.Logger.Warn("a dispatch was not done to its end", "assignment", it.Assignment, "error", err)
	}
	if w.c.Report != nil && (o.Status != "" || !refusal(err)) {
		w.c.Report(it.Assignment, o, err)
	}
	w.settle(kill, l, err)
}

// refusal reports whether the scope or the child said no: somebody else has the
// dispatch, or it is none any more.
func refusal(err error) bool {
	_, ok := errors.AsType[*ticket.Error](err)
	return ok
}

// settle gives the item up: for good where it was done, or is no dispatch any more;
// else back to the queue, after a while that grows with each delivery. One that should
// have stayed is enqueued again by the coordinator.
func (w *Worker) settle(ctx context.Context, l store.Leased, err error) {
	if err == nil || refusal(err) && !errors.Is(err, ticket.RevisionConflict) {
		err = w.answer(ctx, func(ctx context.Context) error { return w.c.Queue.Done(ctx, w.queue(), l.Token) })
	} else {
		pause(ctx, min(firstWait<<min(l.Delivery, 10), w.c.TTL/4))
		err = w.answer(ctx, func(ctx context.Context) error { return w.c.Queue.Return(ctx, w.queue(), l.Token) })
	}
	if err != nil && !errors.Is(err, store.ErrFenced) {
		w.c.Logger.Warn("a dispatch stays leased until its lease runs out", "id", l.ID, "error", err)
	}
}

// firstWait is how long a dispatch that could not be done is kept from the queue first.
const firstWait = 25 * time.Millisecond

// answer gives a call of the queue as long as the lease lasts, also after ctx ended.
func (w *Worker) answer(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.c.TTL)
	defer cancel()
	return call(ctx)
}

// keep extends the lease of a dispatch until ctx ends. That it is lost stops nothing:
// the child's own fence decides.
func (w *Worker) keep(ctx context.Context, l store.Leased) {
	tick := time.NewTicker(w.c.TTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := w.c.Queue.Extend(ctx, w.queue(), l.Token, w.c.TTL)
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, store.ErrFenced):
			return
		default:
			w.c.Logger.Warn("a dispatch's lease was not extended", "id", l.ID, "error", err)
		}
	}
}

// sweep recovers what was given up and can be proved on this machine (T-14). The
// coordinator sees only its own.
func (w *Worker) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		if s, err := w.c.Scope.Refresh(ctx); err == nil {
			for a := range s.Unsettled() {
				if a.State != ticket.OutcomeUnknown || a.Runtime == nil || a.ProcessStopped {
					continue
				}
				if _, err := w.c.Runner.Recover(ctx, a.ID); err == nil {
					w.c.Logger.Info("recovered", "assignment", a.ID)
				} else if !refusal(err) && ctx.Err() == nil {
					w.c.Logger.Warn("recovering failed; it is tried again", "assignment", a.ID, "error", err)
				}
			}
		}
		pause(ctx, w.c.Sweep)
	}
}
