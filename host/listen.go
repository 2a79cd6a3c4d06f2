package host

import (
	"context"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
)

// wait listens until something happens. What was raised before an answer came
// counts before the answer, also where the host hears of both at once (L-10, L-17).
func (d *driver) wait() []loop.Event {
	done := d.caller.Done()
	if d.m.CancelRaised() {
		done = nil // heard
	}
	var wall, drain <-chan time.Time
	if d.wall != nil {
		wall = d.wall.C
	}
	if d.drain != nil {
		drain = d.drain.C
	}
	select {
	case a := <-d.answers:
		d.flight.cancel(nil)
		d.flight = nil
		d.reported = d.usage.total()
		return append(d.heard(nil), a.events...)
	case sig := <-d.s.mail.ch:
		return []loop.Event{signalEvent(sig)}
	case <-done:
		return []loop.Event{d.callerEnded()}
	case <-wall:
		d.wall = nil
		return []loop.Event{{Kind: loop.EvWallTime, Reason: "the run reached its wall time of " + d.spec.Timeout.String()}}
	case <-drain:
		d.drain = nil
		if d.m.HaltStatus() == loop.BudgetExhausted {
			return []loop.Event{{Kind: loop.EvExpire}}
		}
		return []loop.Event{{Kind: loop.EvCancel, Code: loop.ReasonDrainTimeout, Reason: "what was admitted did not drain within " + d.spec.DrainTimeout.String() + " of the stop"}}
	case <-d.s.lease.fenced:
		return []loop.Event{{Kind: loop.EvFenced}}
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
	for {
		select {
		case sig := <-d.s.mail.ch:
			out = append(out, signalEvent(sig))
		default:
			if d.caller.Err() != nil && !d.m.CancelRaised() {
				out = append(out, d.callerEnded())
			}
			return out
		}
	}
}

func (d *driver) stopTimers() {
	for _, t := range []*time.Timer{d.wall, d.drain} {
		if t != nil {
			t.Stop()
		}
	}
}
