package worker

import (
	"context"
	"sync"
	"time"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
)

// control turns signals into what a worker understands: the first takes no more
// dispatches and drains, the second cancels the children, the third leaves at once.
type control struct {
	app   *cli.App
	drain time.Duration
	take  context.Context // while dispatches may be taken
	alive context.Context // while children may run
	stop  context.CancelCauseFunc
	kill  context.CancelCauseFunc
	quit  chan struct{}
	gone  chan struct{}
	once  sync.Once
}

func newControl(parent context.Context, app *cli.App, drain time.Duration) *control {
	c := &control{app: app, drain: drain, quit: make(chan struct{}), gone: make(chan struct{})}
	c.take, c.stop = context.WithCancelCause(parent)
	c.alive, c.kill = context.WithCancelCause(context.WithoutCancel(parent))
	go c.listen()
	return c
}

func (c *control) listen() {
	defer close(c.gone)
	var late <-chan time.Time
	for count := 0; ; {
		select {
		case <-c.quit:
			return
		case <-late:
			c.kill(exit.ErrInterrupted)
		case <-c.app.Signals:
			switch count++; count {
			case 1:
				c.stop(exit.ErrInterrupted)
				timer := time.NewTimer(c.drain)
				defer timer.Stop()
				late = timer.C
			case 2:
				c.kill(exit.ErrInterrupted)
			default:
				c.app.Exit(exit.Interrupted)
				return
			}
		}
	}
}

func (c *control) close() {
	c.once.Do(func() {
		close(c.quit)
		<-c.gone
		c.stop(nil)
		c.kill(nil)
	})
}
