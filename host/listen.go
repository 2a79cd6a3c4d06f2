package host

import (
	"context"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
)

// listen hears what comes from outside while an effect is under way, and steps the
// machine with it. It is the run's other goroutine; it ends when d.over is closed.
func (d *driver) listen(ctx context.Context) {
	done, fenced := d.caller.Done(), (<-chan struct{})(d.s.lease.fenced)
	var wall, drain <-chan time.Time
	if d.wall != nil {
		wall = d.wall.C
	}
	for {
		var late loop.EventKind
		select {
		case <-d.over:
			return
		case drain = <-d.draining:
			continue
		case <-d.s.mail.wake:
		case <-done:
			done = nil
		case <-fenced:
			fenced = nil
		case <-wall:
			wall, late = nil, loop.EvWallTime
		case <-drain:
			drain, late = nil, loop.EvExpire
		}
		select {
		case d.turn <- struct{}{}:
		case <-d.over:
			return
		}
		d.interfere(ctx, late)
		<-d.turn
	}
}

// interfere steps the machine with what was heard during an effect. late is the
// timer that fired; "": none. The caller has the turn.
func (d *driver) interfere(ctx context.Context, late loop.EventKind) {
	var events []loop.Event
	if d.s.lease.ended() != nil {
		events = append(events, loop.Event{Kind: loop.EvFenced})
	}
	events = append(events, d.heard(nil)...)
	switch {
	case late == loop.EvWallTime:
		events = append(events, loop.Event{Kind: loop.EvWallTime, Reason: "the run reached its wall time of " + d.spec.Timeout.String()})
	case late == loop.EvExpire && d.m.HaltStatus() == loop.BudgetExhausted:
		events = append(events, loop.Event{Kind: loop.EvExpire})
	case late == loop.EvExpire:
		events = append(events, loop.Event{Kind: loop.EvCancel, Code: loop.ReasonDrainTimeout, Reason: "what was admitted did not drain within " + d.spec.DrainTimeout.String() + " of the stop"})
	}
	for _, ev := range events {
		// None of these events asks for an effect that answers.
		if _, err := d.step(ctx, ev); err != nil {
			d.broken = err
			d.flight.cancel(errInterrupted)
			return
		}
	}
}

func (d *driver) callerEnded() loop.Event {
	return loop.Event{Kind: loop.EvCancel, Reason: context.Cause(d.caller).Error()}
}

func signalEvent(s store.Signal) loop.Event {
	if s.Kind == store.SignalCancel {
		return loop.Event{Kind: loop.EvCancel, Reason: orElse(s.Reason, "cancelled by an operator")}
	}
	return loop.Event{Kind: loop.EvStop, Reason: orElse(s.Reason, "stopped by an operator")}
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// heard are the signals that have arrived, and the end of the caller's context, without waiting.
func (d *driver) heard(acked []store.Signal) []loop.Event {
	for _, sig := range acked {
		if sig.Run == d.s.fence.Run {
			_ = d.s.mail.offer(sig) // the mailbox is open while the run is
		}
	}
	var out []loop.Event
	for _, sig := range d.s.mail.take() {
		out = append(out, signalEvent(sig))
	}
	if d.caller.Err() != nil && !d.m.CancelRaised() {
		out = append(out, d.callerEnded())
	}
	return out
}

func (d *driver) stopTimers() {
	for _, t := range []*time.Timer{d.wall, d.drain} {
		if t != nil {
			t.Stop()
		}
	}
}
