package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loophost/loophost/host/store"
)

func signalCases() []Case {
	return []Case{
		core("S-13/signal-needs-no-fence", "Anyone posts a stop or a cancel to the current run; it is pending there, and the revision stays.", signalPosted),
		core("S-13/ack-carries-signals", "A commit's ack carries what is pending, also a repeated commit's.", ackCarries),
		core("S-13/signals-are-idempotent", "The same signal again is accepted and kept once; a stop and a cancel are kept both.", signalsIdempotent),
		core("S-13/addressed-to-one-run", "A signal for a run that doesn't own the record is not found and leaves nothing.", addressedToOneRun),
		core("S-13/late-signal", "A signal for an earlier run is refused, and what was pending for it never reaches the next run.", lateSignal),
		core("S-13/signals-are-durable", "A signal is there after the handle that posted it is closed.", signalsDurable),
		core("S-13/signal-bounds", "A signal of an unknown kind or with a reason over 1,024 bytes is refused.", signalBounds),
	}
}

// pending are the kinds of signals in order of their words, "cancel stop".
func pending(signals []store.Signal) string {
	n := map[store.SignalKind]int{}
	for _, s := range signals {
		n[s.Kind]++
	}
	var words []string
	for _, k := range []store.SignalKind{store.SignalCancel, store.SignalStop} {
		for range n[k] {
			words = append(words, string(k))
		}
		delete(n, k)
	}
	for k := range n {
		words = append(words, string(k))
	}
	return strings.Join(words, " ")
}

func (a *actor) signal(ctx context.Context, s store.Store, kind store.SignalKind, reason string) error {
	err := s.Signal(ctx, a.key, store.Signal{Kind: kind, Run: a.fence.Run, Reason: reason, Time: time.Unix(1_800_000_000, 123)})
	return wantOK("signal "+string(kind), err)
}

func (a *actor) wantPending(ctx context.Context, what, want string) error {
	r, err := a.s.Load(ctx, a.key)
	if err != nil {
		return failf("%s: load: want success, got %w", what, err)
	}
	bad := []error{wantEqual(what+": pending signals", pending(r.Signals), want)}
	for _, s := range r.Signals {
		bad = append(bad, wantEqual(what+": run of the signal", s.Run, a.fence.Run))
	}
	return errors.Join(bad...)
}

func signalPosted(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []store.SignalKind{store.SignalStop, store.SignalCancel} {
		a, err := e.owner(ctx, s, e.Key("posted "+string(kind)))
		if err != nil {
			return err
		}
		before, err := a.look(ctx)
		if err != nil {
			return err
		}
		reason := "because <b>\"of\"</b>\n\u2028 \x00 " + string(kind)
		if err := errors.Join(a.signal(ctx, other, kind, reason), expectUntouched(ctx, s, "the signal", a.key, before), a.wantPending(ctx, "after "+string(kind), string(kind))); err != nil {
			return err
		}
		r, err := s.Load(ctx, a.key)
		if err := wantOK("load", err); err != nil {
			return err
		}
		if err := errors.Join(
			wantEqual("reason", r.Signals[0].Reason, reason),
			wantEqual("time", r.Signals[0].Time.UTC().Format(time.RFC3339Nano), time.Unix(1_800_000_000, 123).UTC().Format(time.RFC3339Nano)),
			a.advance(ctx, 1),
		); err != nil {
			return err
		}
	}
	return nil
}

func ackCarries(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("carried"))
	if err != nil {
		return err
	}
	expect := func(what, want string) error {
		ack, err := a.send(ctx, a.commit())
		if err != nil {
			return failf("%s: want success, got %w", what, err)
		}
		again, err := s.Commit(ctx, a.key, a.fence, a.last)
		return errors.Join(wantEqual("signals in the ack "+what, pending(ack.Signals), want), wantOK("the commit again", err), wantEqual("signals in the repeated ack "+what, pending(again.Signals), want))
	}
	return errors.Join(
		expect("before any signal", ""),
		a.signal(ctx, other, store.SignalStop, ""), expect("after a stop", "stop"), expect("one commit later", "stop"),
		a.signal(ctx, other, store.SignalCancel, ""), expect("after a cancel too", "cancel stop"),
	)
}

func signalsIdempotent(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("again"))
	if err != nil {
		return err
	}
	var bad []error
	for i := range 3 {
		bad = append(bad, a.signal(ctx, s, store.SignalStop, fmt.Sprint("reason ", i)), a.signal(ctx, other, store.SignalStop, "other reason"))
	}
	bad = append(bad, a.wantPending(ctx, "after many stops", "stop"))
	for range 2 {
		bad = append(bad, a.signal(ctx, other, store.SignalCancel, ""), a.signal(ctx, other, store.SignalStop, ""))
	}
	bad = append(bad, a.wantPending(ctx, "after many stops and cancels", "cancel stop"))
	ack, err := a.send(ctx, a.commit())
	return errors.Join(append(bad, wantOK("commit", err), wantEqual("signals in the ack", pending(ack.Signals), "cancel stop"))...)
}

func addressedToOneRun(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("addressed"))
	if err != nil {
		return err
	}
	post := func(what, run string) error {
		return wantKind(what, other.Signal(ctx, a.key, store.Signal{Kind: store.SignalStop, Run: run}), store.ErrNotFound)
	}
	bad := []error{post("a signal to an unowned record", e.UUID()), post("a signal to an unowned record's empty run", "")}
	if err := a.acquire(ctx, e.claim()); err != nil {
		return err
	}
	bad = append(bad, post("a signal for another run", e.UUID()), post("a signal for no run", ""), a.wantPending(ctx, "after signals for others", ""))
	ack, err := a.send(ctx, a.commit())
	run := a.fence.Run
	return errors.Join(append(bad,
		wantOK("commit", err), wantEqual("signals in the ack", pending(ack.Signals), ""),
		wantOK("release", s.Release(ctx, a.key, a.fence)),
		post("a signal for a run that released", run),
	)...)
}

func lateSignal(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	old, err := e.owner(ctx, s, e.Key("late"))
	if err != nil {
		return err
	}
	next := func(what string, now *actor) error {
		late := other.Signal(ctx, old.key, store.Signal{Kind: store.SignalStop, Run: old.fence.Run})
		ack, err := now.send(ctx, now.commit())
		return errors.Join(
			wantKind("a late signal "+what, late, store.ErrNotFound),
			wantOK("the next run commits", err), wantEqual("signals in its ack "+what, pending(ack.Signals), ""), now.wantPending(ctx, what, ""),
		)
	}
	if err := errors.Join(old.signal(ctx, other, store.SignalStop, "meant for the first run"), old.signal(ctx, other, store.SignalCancel, "")); err != nil {
		return err
	}
	now, err := old.rival(ctx, other)
	if err != nil {
		return err
	}
	if err := next("after a take-over", now); err != nil {
		return err
	}
	if err := errors.Join(now.signal(ctx, s, store.SignalStop, ""), wantOK("release", now.s.Release(ctx, now.key, now.fence))); err != nil {
		return err
	}
	old = now
	third := &actor{e: e, s: s, key: old.key, n: 2000}
	if err := third.acquire(ctx, e.claim()); err != nil {
		return err
	}
	return errors.Join(next("after a release", third), third.signal(ctx, other, store.SignalCancel, ""), third.wantPending(ctx, "its own signal", "cancel"))
}

func signalsDurable(ctx context.Context, e *Env) error {
	s, poster, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("durable"))
	if err != nil {
		return err
	}
	if err := errors.Join(a.signal(ctx, poster, store.SignalStop, "keep me"), wantOK("close", poster.Close())); err != nil {
		return err
	}
	r, err := e.Open(ctx)
	if err != nil {
		return err
	}
	b := *a
	b.s = r
	return errors.Join(b.wantPending(ctx, "in a new handle", "stop"), a.wantPending(ctx, "in the owner's handle", "stop"))
}

func signalBounds(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("bounds"))
	if err != nil {
		return err
	}
	long := strings.Repeat("r", store.MaxReasonBytes)
	bad := []error{
		wantKind("a signal of an unknown kind", s.Signal(ctx, a.key, store.Signal{Kind: "pause", Run: a.fence.Run}), store.ErrUnsupported),
		wantKind("a signal of no kind", s.Signal(ctx, a.key, store.Signal{Run: a.fence.Run}), store.ErrUnsupported),
		wantKind("a reason that is too long", s.Signal(ctx, a.key, store.Signal{Kind: store.SignalStop, Run: a.fence.Run, Reason: long + "r"}), store.ErrTooLarge),
		a.wantPending(ctx, "after refused signals", ""),
		a.signal(ctx, s, store.SignalStop, long),
		a.wantPending(ctx, "after a reason of the greatest length", "stop"),
	}
	return errors.Join(bad...)
}
