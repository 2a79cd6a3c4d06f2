package scope

import (
	"context"
	"time"

	"github.com/loophost/loophost/host/ticket"
)

// Wait gives the first state known to be after seq: at once if there is one, else
// when this handle commits or when another one did, which is looked for every
// Config.Poll (the storage port wakes nobody for a commit). Errors: those of
// Refresh, and the end of ctx or of the handle.
func (s *Scope) Wait(ctx context.Context, seq uint64) (*ticket.State, error) {
	var tick *time.Ticker
	for {
		v, changed := s.latest()
		if v.state.Seq() > seq {
			return v.state, nil
		}
		if tick == nil {
			tick = time.NewTicker(s.cfg.Poll)
			defer tick.Stop()
		}
		select {
		case <-changed:
		case <-tick.C:
			if _, err := s.refreshed(ctx, s.cfg.Poll/2); err != nil {
				return nil, err
			}
		case <-s.closed:
			return nil, s.errClosed()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
