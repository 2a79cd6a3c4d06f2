package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/host/store"
)

func wakeCases() []Case {
	return []Case{
		core("S-13/owner-is-woken", "A signal wakes its owner within a second where the store can watch; elsewhere reading the record shows it at once.", ownerIsWoken),
		core("S-13/watch-ends", "A watch shows what was pending before it, is refused to a stale fence, and ends with its context.", watchEnds),
	}
}

// wakeWithin is the promise of S-13.
const wakeWithin = time.Second

// receive waits for a signal of kind; a watch may repeat older ones.
func (e *Env) receive(ctx context.Context, ch <-chan store.Signal, kind store.SignalKind) error {
	timer := time.NewTimer(e.patience)
	defer timer.Stop()
	for {
		select {
		case got, ok := <-ch:
			if !ok {
				return failf("watch: want a %s, got the end", kind)
			}
			if got.Kind == kind {
				return nil
			}
		case <-timer.C:
			return failf("watch: want a %s, got nothing within %s", kind, e.patience)
		case <-ctx.Done():
			return failf("watch: want a %s, got nothing: %w", kind, ctx.Err())
		}
	}
}

func ownerIsWoken(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	w, ok := s.(store.SignalWatcher)
	if !ok {
		e.Note("the store has no watch: only reading was tried")
		a, err := e.owner(ctx, s, e.Key("polled"))
		if err != nil {
			return err
		}
		return errors.Join(a.signal(ctx, other, store.SignalStop, ""), a.wantPending(ctx, "read right after the signal", "stop"))
	}
	// One slow wake may be the machine's fault; most of five are the store's.
	const tries = 5
	slow := 0
	for i := range tries {
		a, err := e.owner(ctx, s, e.Key(fmt.Sprint("watched ", i)))
		if err != nil {
			return err
		}
		watching, cancel := context.WithCancel(ctx)
		ch, err := w.WatchSignals(watching, a.key, a.fence)
		if err != nil {
			cancel()
			return failf("watch: want success, got %w", err)
		}
		start := time.Now()
		err = errors.Join(a.signal(ctx, other, store.SignalStop, ""), e.receive(ctx, ch, store.SignalStop))
		if time.Since(start) > wakeWithin {
			slow++
		}
		err = errors.Join(err, a.signal(ctx, other, store.SignalCancel, ""), e.receive(ctx, ch, store.SignalCancel))
		cancel()
		if err != nil {
			return err
		}
	}
	if slow > tries/2 {
		return failf("want a wake within %s, got %d of %d slower ones", wakeWithin, slow, tries)
	}
	return nil
}

func watchEnds(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	w, ok := s.(store.SignalWatcher)
	if !ok {
		e.Note("the store has no watch")
		return nil
	}
	a, err := e.owner(ctx, s, e.Key("watched"))
	if err != nil {
		return err
	}
	if err := a.signal(ctx, other, store.SignalStop, ""); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	ch, err := w.WatchSignals(watching, a.key, a.fence)
	if err != nil {
		return failf("watch: want success, got %w", err)
	}
	if err := e.receive(ctx, ch, store.SignalStop); err != nil {
		return failf("a signal from before the watch: %w", err)
	}
	cancel()
	if err := e.drained(ctx, ch); err != nil {
		return err
	}
	stale := a.fence
	stale.Generation = e.UUID()
	_, err = w.WatchSignals(ctx, a.key, stale)
	bad := []error{wantKind("watch under a stale fence", err, store.ErrFenced)}
	_, err = w.WatchSignals(ctx, e.Key("missing"), a.fence)
	return errors.Join(append(bad, wantKind("watch a record that is not there", err, store.ErrNotFound))...)
}

// drained waits until ch is closed.
func (e *Env) drained(ctx context.Context, ch <-chan store.Signal) error {
	timer := time.NewTimer(e.patience)
	defer timer.Stop()
	for {
		select {
		case _, ok := <-ch:
			if !ok {
				return nil
			}
		case <-timer.C:
			return failf("watch: want an end after its context ended, got none within %s", e.patience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
