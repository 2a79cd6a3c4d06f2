package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/host/store"
)

func queueWakes(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "wakes", 2)
	if err != nil {
		return err
	}
	// One slow wake may be the machine's fault; most of five are the store's.
	const tries = 5
	slow := 0
	for i := range tries {
		id := fmt.Sprint("item ", i)
		type result struct {
			l   store.Leased
			err error
			at  time.Time
		}
		waiter := func(delivery uint64) <-chan result {
			ch := make(chan result, 1)
			go func() {
				l, err := w[0].take(ctx, time.Hour, id, delivery)
				ch <- result{l, err, time.Now()}
			}()
			return ch
		}
		// It may not wait yet, and must not be missed then either. The first ones do, as far
		// as one can know.
		beside := func(when string) error {
			if i > 0 {
				return nil
			}
			return w[1].nothing(ctx, when)
		}
		got := waiter(1)
		if err := beside("an empty queue"); err != nil {
			return err
		}
		start := time.Now()
		if err := w[1].add(ctx, id); err != nil {
			return err
		}
		first := <-got
		if first.err != nil {
			return first.err
		}
		if first.at.Sub(start) > wakeWithin {
			slow++
		}
		got = waiter(2)
		if err := beside("while the item is leased"); err != nil {
			return err
		}
		if err := wantOK("return", w[1].q.Return(ctx, w[1].name, first.l.Token)); err != nil {
			return err
		}
		second := <-got
		if err := errors.Join(second.err, w[0].done(ctx, second.l)); err != nil {
			return err
		}
	}
	if slow > tries/2 {
		return failf("want a wake within %s, got %d of %d slower ones", wakeWithin, slow, tries)
	}
	return nil
}

func queueWaitEnds(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "ends", 2)
	if err != nil {
		return err
	}
	if err := w[0].nothing(ctx, "an empty queue"); err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		got, err := w[0].lease(waiting, "one that gives up", time.Hour, 1)
		if len(got) > 0 {
			err = failf("a wait on an empty queue: want nothing, got %q", got[0].ID)
		}
		ended <- err
	}()
	timer := time.AfterFunc(aMoment, cancel)
	defer timer.Stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return failf("a wait whose context was cancelled: want the context's error, got %v", err)
	}
	if err := w[1].add(ctx, "a"); err != nil {
		return err
	}
	elsewhere, err := e.queues(ctx, "elsewhere", 1)
	if err != nil {
		return err
	}
	if err := errors.Join(elsewhere[0].nothing(ctx, "another queue"), w[1].counts(ctx, "a moment after an item came", 1, 0)); err != nil {
		return err
	}
	l, err := w[1].take(ctx, time.Hour, "a", 1)
	return errors.Join(err, w[1].done(ctx, l))
}

func queueCrash(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "crash", 1)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a", "b", "c"); err != nil {
		return err
	}
	l, err := w[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	if err := w[0].done(ctx, l); err != nil {
		return err
	}
	c, ok := e.Harness.(Crasher)
	if !ok {
		return failf("the harness is no conformance.Crasher any more")
	}
	if err := c.Crash(ctx); err != nil {
		return err
	}
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	q, ok := s.(store.Queue)
	if !ok {
		return failf("want a store.Queue after the crash too, got %T", s)
	}
	now := work{e, q, w[0].name}
	if err := now.counts(ctx, "after the crash", 2, 0); err != nil {
		return err
	}
	for _, id := range []string{"b", "c"} {
		l, err := now.take(ctx, time.Hour, id, 1)
		if err := errors.Join(err, now.done(ctx, l)); err != nil {
			return err
		}
	}
	return nil
}

func queueHandles(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "handles", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a", "b"); err != nil {
		return err
	}
	if s, ok := w[0].q.(store.Store); ok {
		if err := wantOK("close", s.Close()); err != nil {
			return err
		}
	}
	for _, id := range []string{"a", "b"} {
		l, err := w[1].take(ctx, time.Hour, id, 1)
		if err := errors.Join(err, w[1].done(ctx, l)); err != nil {
			return err
		}
	}
	return nil
}
