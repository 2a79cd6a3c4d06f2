package worker

import (
	"context"
	"sync"
	"time"

	"github.com/loophost/loophost/host/dispatch"
	"github.com/loophost/loophost/host/ticket/scope"
)

// look is how often a worker that is to end when nothing is left looks whether it is so.
const look = 100 * time.Millisecond

// together coordinates and works until a signal or, with --once, until nothing is left.
// The coordinator goes on while children drain, so that nobody takes the role for theirs.
func (r *runner) together(control *control, sc *scope.Scope, c *dispatch.Coordinator, w *dispatch.Worker) error {
	take, done := context.WithCancelCause(control.take)
	defer done(nil)
	coordinate, stop := context.WithCancel(control.alive)
	defer stop()
	var group sync.WaitGroup
	if r.flags.coordinate {
		group.Go(func() { _ = c.Run(coordinate) }) // it ends with its context
	}
	if r.flags.once {
		group.Go(func() {
			defer done(nil)
			for wait(take, look) {
				if r.nothingLeft(take, sc, c, w) {
					return
				}
			}
		})
	}
	w.Run(take, control.alive)
	stop()
	group.Wait()
	return nil
}

// nothingLeft reports whether no dispatch waits, none is in hand, and the coordinator
// of the scope has nothing to do at its newest seq.
func (r *runner) nothingLeft(ctx context.Context, sc *scope.Scope, c *dispatch.Coordinator, w *dispatch.Worker) bool {
	if idle, err := w.Idle(ctx); err != nil || !idle {
		return false
	}
	s, err := sc.Refresh(ctx)
	if err != nil {
		return false
	}
	return !r.flags.coordinate || c.Settled(s.Seq())
}
