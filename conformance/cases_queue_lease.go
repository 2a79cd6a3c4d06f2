package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/loophost/loophost/host/store"
)

func queueOneHolder(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "one", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a"); err != nil {
		return err
	}
	l, err := w[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	return errors.Join(
		w[1].nothing(ctx, "another handle, while an item is leased"), w[0].nothing(ctx, "the same handle, while an item is leased"),
		w[1].counts(ctx, "leased", 0, 1),
		w[1].done(ctx, l), // a token is bound to no handle
		w[0].nothing(ctx, "after it is done"), w[0].counts(ctx, "done", 0, 0),
	)
}

func queueSharedWork(ctx context.Context, e *Env) error {
	const workers, items = 4, 48
	w, err := e.queues(ctx, "shared", 2)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.patience*4)
	defer cancel()
	working, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	got := map[string]int{}
	finished := 0
	var group sync.WaitGroup
	bad := make([]error, workers+len(w))
	for i := range workers {
		mine := w[i%len(w)]
		group.Go(func() {
			for {
				batch, err := mine.lease(working, fmt.Sprint("worker ", i), time.Hour, 1+i)
				if err != nil {
					if working.Err() == nil {
						bad[i] = failf("lease: want items, got %w", err)
						stop()
					}
					return
				}
				mu.Lock()
				for _, l := range batch {
					got[l.ID]++
				}
				mu.Unlock()
				for _, l := range batch {
					if err := mine.done(working, l); err != nil && working.Err() == nil {
						bad[i] = err
						stop()
						return
					}
				}
				mu.Lock()
				if finished += len(batch); finished >= items {
					stop()
				}
				mu.Unlock()
			}
		})
	}
	for i, mine := range w {
		group.Go(func() {
			for n := i; n < items; n += len(w) {
				if err := mine.add(ctx, fmt.Sprint("item ", n)); err != nil {
					bad[workers+i] = err
					stop()
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(bad...); err != nil {
		return err
	}
	for n := range items {
		if id := fmt.Sprint("item ", n); got[id] != 1 {
			return failf("%q: want it handed out once, got %d times", id, got[id])
		}
	}
	return w[0].counts(ctx, "all done", 0, 0)
}

func queueApart(ctx context.Context, e *Env) error {
	one, err := e.queues(ctx, "one", 1)
	if err != nil {
		return err
	}
	other, err := e.queues(ctx, "other", 1)
	if err != nil {
		return err
	}
	if err := errors.Join(one[0].add(ctx, "a", "b"), other[0].add(ctx, "a")); err != nil {
		return err
	}
	l, err := one[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	bad := []error{one[0].counts(ctx, "one of two leased", 1, 1), other[0].counts(ctx, "the other queue", 1, 0)}
	m, err := other[0].take(ctx, time.Hour, "a", 1)
	return errors.Join(append(bad, err, one[0].done(ctx, l), other[0].done(ctx, m), one[0].counts(ctx, "one done", 1, 0))...)
}

func queueAgain(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "again", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a", "b"); err != nil {
		return err
	}
	tokens := map[string]bool{}
	for delivery := uint64(1); delivery <= 3; delivery++ {
		l, err := w[delivery%2].take(ctx, shortest, "a", delivery)
		if err != nil {
			return err
		}
		if tokens[l.Token] {
			return failf("delivery %d: want a token of its own, got one that was given before", delivery)
		}
		tokens[l.Token] = true
		if _, ok := e.Harness.(LeaseClock); !ok {
			// The store's clock may be coarse; what it says is over, is.
			if err := w[0].untilOver(ctx, 2); err != nil {
				return err
			}
		} else if err := e.over(time.Second); err != nil {
			return err
		}
	}
	if err := w[0].counts(ctx, "after the lease ran out", 2, 0); err != nil {
		return err
	}
	l, err := w[1].take(ctx, time.Hour, "a", 4)
	return errors.Join(err, w[1].done(ctx, l))
}

func queueGoneWorker(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "gone", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a"); err != nil {
		return err
	}
	ttl := shortest
	if e.Store.Has("liveness") {
		ttl = time.Hour
	}
	if _, err := w[0].take(ctx, ttl, "a", 1); err != nil {
		return err
	}
	s, ok := w[0].q.(store.Store)
	if !ok {
		return failf("want a handle that is a store.Store, got %T", w[0].q)
	}
	if err := wantOK("close", s.Close()); err != nil {
		return err
	}
	if c, ok := e.Harness.(LeaseClock); ok && !e.Store.Has("liveness") {
		c.AdvanceLeases(time.Second)
	}
	l, err := w[1].take(ctx, time.Hour, "a", 2)
	return errors.Join(err, w[1].done(ctx, l))
}

// over moves the store's clock.
func (e *Env) over(d time.Duration) error {
	if c, ok := e.Harness.(LeaseClock); ok {
		c.AdvanceLeases(d)
		return nil
	}
	return failf("the harness can't move the store's clock")
}

// untilOver asks until that many items wait.
func (w work) untilOver(ctx context.Context, waiting uint64) error {
	ctx, cancel := context.WithTimeout(ctx, w.e.patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		b, err := w.q.Queued(ctx, w.name)
		if err != nil {
			return failf("count: want %d items that wait, got %w", waiting, err)
		}
		if b.Waiting == waiting {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return failf("want %d items that wait, got %+v", waiting, b)
		}
	}
}

// briefly is a real lease where no clock can be moved.
const briefly = 300 * time.Millisecond

func queueWakesAtEnd(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "end", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a"); err != nil {
		return err
	}
	if _, err := w[0].take(ctx, briefly, "a", 1); err != nil {
		return err
	}
	if c, ok := e.Harness.(LeaseClock); ok {
		timer := time.AfterFunc(aMoment, func() { c.AdvanceLeases(time.Second) })
		defer timer.Stop()
	}
	l, err := w[1].take(ctx, time.Hour, "a", 2)
	return errors.Join(err, w[1].done(ctx, l))
}

func queueExtended(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "extended", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a"); err != nil {
		return err
	}
	l, err := w[0].take(ctx, briefly, "a", 1)
	if err != nil {
		return err
	}
	if err := wantOK("extend", w[1].q.Extend(ctx, w[1].name, l.Token, time.Hour)); err != nil {
		return err
	}
	c, ok := e.Harness.(LeaseClock)
	if !ok {
		wait, cancel := context.WithTimeout(ctx, 2*briefly)
		defer cancel()
		if got, err := w[1].lease(wait, "another", time.Hour, 1); len(got) > 0 || !errors.Is(err, context.DeadlineExceeded) {
			return failf("past the end of the first lease: want nothing but the end of the wait, got %d items and %v", len(got), err)
		}
		return errors.Join(w[0].counts(ctx, "extended", 0, 1), w[0].done(ctx, l))
	}
	c.AdvanceLeases(59 * time.Minute)
	if err := w[1].nothing(ctx, "59 minutes into an hour's lease"); err != nil {
		return err
	}
	// Shorter is possible too: the lease ends ttl from now.
	if err := wantOK("extend", w[0].q.Extend(ctx, w[0].name, l.Token, time.Second)); err != nil {
		return err
	}
	c.AdvanceLeases(2 * time.Second)
	l, err = w[1].take(ctx, time.Hour, "a", 2)
	return errors.Join(err, w[1].done(ctx, l))
}

// lose gives an item to one worker and then to another one.
func (e *Env) lose(ctx context.Context, w []work, id string, delivery uint64) (late, now store.Leased, err error) {
	if late, err = w[0].take(ctx, shortest, id, delivery); err != nil {
		return late, now, err
	}
	if c, ok := e.Harness.(LeaseClock); ok {
		c.AdvanceLeases(time.Second)
	}
	now, err = w[1].take(ctx, time.Hour, id, delivery+1)
	return late, now, err
}

func queueLateToken(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "late", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a"); err != nil {
		return err
	}
	late, now, err := e.lose(ctx, w, "a", 1)
	if err != nil {
		return err
	}
	bad := w[0].refused(ctx, "after somebody else got the item", late.Token)
	return errors.Join(
		bad, w[0].counts(ctx, "after late calls", 0, 1), w[1].nothing(ctx, "after late calls"),
		wantOK("extend by the new holder", w[1].q.Extend(ctx, w[1].name, now.Token, time.Hour)),
		w[1].done(ctx, now), w[0].refused(ctx, "after the item is done", late.Token),
	)
}

// refused checks that a token opens nothing.
func (w work) refused(ctx context.Context, when, token string) error {
	return errors.Join(
		wantKind(when+": extend", w.q.Extend(ctx, w.name, token, time.Hour), store.ErrFenced),
		wantKind(when+": return", w.q.Return(ctx, w.name, token), store.ErrFenced),
		wantKind(when+": done", w.q.Done(ctx, w.name, token), store.ErrFenced),
	)
}

func queueEndAlone(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "alone", 2)
	if err != nil {
		return err
	}
	for i, how := range []string{"done", "extended", "returned"} {
		if err := w[0].add(ctx, how); err != nil {
			return err
		}
		l, err := w[0].take(ctx, shortest, how, 1)
		if err != nil {
			return err
		}
		if c, ok := e.Harness.(LeaseClock); ok {
			c.AdvanceLeases(time.Second)
		} else if err := w[1].untilOver(ctx, 1); err != nil {
			return err
		}
		switch i {
		case 0:
			err = w[0].done(ctx, l)
		case 1:
			err = wantOK("extend after the lease ran out", w[0].q.Extend(ctx, w[0].name, l.Token, time.Hour))
			err = errors.Join(err, w[1].nothing(ctx, "after it was extended"), w[0].done(ctx, l))
		default:
			err = wantOK("return after the lease ran out", w[0].q.Return(ctx, w[0].name, l.Token))
			if err == nil {
				l, err = w[1].take(ctx, time.Hour, how, 2)
				err = errors.Join(err, w[1].done(ctx, l))
			}
		}
		if err != nil {
			return err
		}
	}
	return w[0].counts(ctx, "all done", 0, 0)
}

func queueForeignToken(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "tokens", 1)
	if err != nil {
		return err
	}
	other, err := e.queues(ctx, "others", 1)
	if err != nil {
		return err
	}
	if err := errors.Join(w[0].add(ctx, "a"), other[0].add(ctx, "a")); err != nil {
		return err
	}
	foreign, err := other[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	l, err := w[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	var bad []error
	for what, token := range map[string]string{
		"no token": "", "a made-up token": "made up", "a token with a NUL": "a\x00b", "a long token": strings.Repeat("x", 5000), "a UUID": e.UUID(),
		"the id": "a", "a token with something behind it": l.Token + "0", "a token of another queue": foreign.Token,
	} {
		bad = append(bad, w[0].refused(ctx, what, token))
	}
	returned := wantOK("return", w[0].q.Return(ctx, w[0].name, l.Token))
	bad = append(bad, returned, w[0].refused(ctx, "a token that was returned", l.Token))
	again, err := w[0].take(ctx, time.Hour, "a", 2)
	return errors.Join(append(bad, err, w[0].done(ctx, again), other[0].done(ctx, foreign))...)
}
