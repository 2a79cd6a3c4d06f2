package run

import (
	"context"
	"sync"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host"
)

// control turns signals into what a run understands:
//
//	           no session yet      a session
//	first      give up             stop: what is admitted drains
//	second     leave at once       cancel
//	third      –                   leave at once
type control struct {
	app   *cli.App
	setup context.Context // ends at the first signal while there is no session
	end   context.CancelCauseFunc
	quit  chan struct{}
	gone  chan struct{}

	mu      sync.Mutex
	count   int
	session *host.Session
}

func newControl(parent context.Context, app *cli.App) *control {
	c := &control{app: app, quit: make(chan struct{}), gone: make(chan struct{})}
	c.setup, c.end = context.WithCancelCause(parent)
	go c.listen()
	return c
}

func (c *control) listen() {
	defer close(c.gone)
	for {
		select {
		case <-c.quit:
			return
		case <-c.app.Signals:
			c.signal()
		}
	}
}

func (c *control) signal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	switch {
	case c.session == nil && c.count == 1:
		c.end(exit.ErrInterrupted)
	case c.session == nil, c.count >= 3:
		c.app.Exit(exit.Interrupted)
	case c.count == 1:
		_ = c.session.Stop("stopped by a signal") // not running any more: the ending stands
	default:
		_ = c.session.Cancel("cancelled by a signal")
	}
}

// attach hands signals to the session from now on. It answers false where one came before.
func (c *control) attach(s *host.Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count > 0 {
		return false
	}
	c.session = s
	return true
}

func (c *control) close() {
	close(c.quit)
	<-c.gone
	c.end(nil)
}
