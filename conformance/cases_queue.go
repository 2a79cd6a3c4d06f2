package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loophost/loophost/host/store"
)

// queueCases are about store.Queue. The rules are those of its comments:
// Q-1 one holder, Q-2 delivered again, Q-3 fenced tokens, Q-4 order, Q-5 ids,
// Q-6 waiting, Q-7 durability, Q-8 limits, Q-9 contexts and closed handles.
func queueCases() []Case {
	q := func(id, sentence string, run func(context.Context, *Env) error, needs ...Need) Case {
		return Case{ID: id, Sentence: sentence, Profile: ProfileTickets, Needs: append([]Need{NeedQueue}, needs...), Run: run}
	}
	return []Case{
		q("Q-1/one-holder", "An item that is leased is handed to nobody else, through no handle.", queueOneHolder),
		q("Q-1/shared-work", "Workers at two handles get every item, each exactly once while its lease runs.", queueSharedWork),
		q("Q-1/queues-are-apart", "What is in one queue is in no other, and the counts say what is in each.", queueApart),
		q("Q-2/lease-ran-out", "An item whose lease ran out is handed out again, whole, and says how often it was.", queueAgain),
		q("Q-2/wakes-at-the-end", "Who waits gets an item when its lease runs out.", queueWakesAtEnd),
		q("Q-2/extended", "An extended lease keeps its item.", queueExtended),
		q("Q-3/late-token", "The token of a worker that lost its lease changes nothing any more.", queueLateToken),
		q("Q-3/end-alone-takes-nothing", "A lease that ran out still counts while nobody else got the item.", queueEndAlone),
		q("Q-3/foreign-token", "A token that was never given, is spent, or is of another queue is refused.", queueForeignToken),
		q("Q-4/oldest-first", "Items come in the order in which they were enqueued, as many as were asked for.", queueOrder),
		q("Q-4/returned", "An item that is returned comes at once, behind those that wait.", queueReturned),
		q("Q-5/once", "An id that waits or is leased is not added again; one that is done is.", queueOnce),
		q("Q-5/raced", "Of many that enqueue an id at once, one adds it.", queueRaced),
		q("Q-6/wakes", "Who waits gets an item within a second after it was enqueued or returned.", queueWakes),
		q("Q-6/wait-ends", "A wait ends with its context, and takes no item with it.", queueWaitEnds),
		q("Q-7/crash", "What was enqueued, and that it is done, survives a crash.", queueCrash, NeedCrash, NeedProcess),
		q("Q-7/handles", "What is in a queue does not end with the handle that put it there.", queueHandles),
		q("Q-8/limits", "Names, ids and data up to their limits come back exactly; beyond them they are refused.", queueLimits),
		q("Q-8/zeros", "No time and no number mean the default lease and one item.", queueZeros),
		q("Q-9/context", "A call whose context has ended changes nothing.", queueContext),
		q("Q-9/closed", "A closed handle answers that it is not available, to those too who wait.", queueClosed),
	}
}

// work is one queue through one handle.
type work struct {
	e    *Env
	q    store.Queue
	name string
}

// queues are the same new queue through n handles.
func (e *Env) queues(ctx context.Context, name string, n int) ([]work, error) {
	name = e.name + "-" + name
	e.mu.Lock()
	e.queued = append(e.queued, name)
	e.mu.Unlock()
	var out []work
	for range n {
		s, err := e.Open(ctx)
		if err != nil {
			return nil, err
		}
		q, ok := s.(store.Queue)
		if !ok {
			return nil, failf("the store describes the capability queue: want its handles to be a store.Queue, got %T", s)
		}
		out = append(out, work{e, q, name})
	}
	return out, nil
}

// drain takes what a case left in its queues, as far as nobody holds it.
func (e *Env) drain(ctx context.Context, s store.Store) {
	q, ok := s.(store.Queue)
	if !ok {
		return
	}
	for _, name := range e.queued {
		for range maxLeftovers {
			if b, err := q.Queued(ctx, name); err != nil || b.Waiting == 0 {
				break
			}
			got, err := q.Lease(ctx, name, "conformance clean-up", time.Minute, store.MaxLeases)
			if err != nil {
				break
			}
			for _, l := range got {
				_ = q.Done(ctx, name, l.Token) // best effort: nothing depends on it
			}
		}
	}
}

func (w work) add(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		if err := w.q.Enqueue(ctx, w.name, store.Item{ID: id, Data: []byte("data of " + id)}); err != nil {
			return failf("enqueue %q: want success, got %w", id, err)
		}
	}
	return nil
}

// take leases one item, which must be id at that delivery.
func (w work) take(ctx context.Context, ttl time.Duration, id string, delivery uint64) (store.Leased, error) {
	ctx, cancel := context.WithTimeout(ctx, w.e.patience)
	defer cancel()
	got, err := w.q.Lease(ctx, w.name, "a worker", ttl, 1)
	if err != nil {
		return store.Leased{}, failf("lease: want %q, got %w", id, err)
	}
	if len(got) != 1 {
		return store.Leased{}, failf("lease of one: want %q, got %d items", id, len(got))
	}
	l := got[0]
	err = errors.Join(
		wantEqual("leased", l.ID, id), wantEqual("delivery of "+id, l.Delivery, delivery),
		wantBytes("data of "+id, l.Data, []byte("data of "+id)),
	)
	if l.Token == "" {
		err = errors.Join(err, failf("lease of %q: want a token, got none", id))
	}
	return l, err
}

// aMoment is how long a wait for what must not come lasts.
const aMoment = 150 * time.Millisecond

// nothing checks that no item is there for w.
func (w work) nothing(ctx context.Context, when string) error {
	ctx, cancel := context.WithTimeout(ctx, aMoment)
	defer cancel()
	got, err := w.q.Lease(ctx, w.name, "a worker that must get nothing", time.Minute, 1)
	if len(got) > 0 {
		return failf("%s: want nothing to lease, got %q", when, got[0].ID)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return failf("%s: want the context's error of a lease that waits, got %v", when, err)
	}
	return nil
}

func (w work) done(ctx context.Context, l store.Leased) error {
	return wantOK("done "+l.ID, w.q.Done(ctx, w.name, l.Token))
}

func (w work) counts(ctx context.Context, when string, waiting, leased uint64) error {
	b, err := w.q.Queued(ctx, w.name)
	return errors.Join(wantOK("count", err), wantEqual(when+": counts", b, store.Backlog{Waiting: waiting, Leased: leased}))
}

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
				batch, err := mine.q.Lease(working, mine.name, fmt.Sprint("worker ", i), time.Hour, 1+i)
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
		if got, err := w[1].q.Lease(wait, w[1].name, "another", time.Hour, 1); len(got) > 0 || !errors.Is(err, context.DeadlineExceeded) {
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

func queueOrder(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "order", 2)
	if err != nil {
		return err
	}
	var ids []string
	for i := range 12 {
		ids = append(ids, fmt.Sprint("item ", e.Rand.IntN(1000), "-", i))
		if err := w[i%2].add(ctx, ids[i]); err != nil {
			return err
		}
	}
	var got []string
	var held []store.Leased
	for i := 0; len(got) < len(ids); i++ {
		batch, err := w[i%2].q.Lease(ctx, w[i%2].name, "a worker", time.Hour, i+1)
		if err != nil {
			return failf("lease of %d: want success, got %w", i+1, err)
		}
		if want := min(i+1, len(ids)-len(got)); len(batch) != want {
			return failf("lease of %d with %d waiting: want %d items, got %d", i+1, len(ids)-len(got), want, len(batch))
		}
		for _, l := range batch {
			got = append(got, l.ID)
		}
		held = append(held, batch...)
	}
	if !slices.Equal(got, ids) {
		return failf("order: want %q, got %q", ids, got)
	}
	for _, l := range held {
		if err := w[0].done(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func queueReturned(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "returned", 2)
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
	if err := wantOK("return", w[0].q.Return(ctx, w[0].name, l.Token)); err != nil {
		return err
	}
	if err := w[1].counts(ctx, "after a return", 3, 0); err != nil {
		return err
	}
	for _, want := range []struct {
		id       string
		delivery uint64
	}{{"b", 1}, {"c", 1}, {"a", 2}} {
		l, err := w[1].take(ctx, time.Hour, want.id, want.delivery)
		if err := errors.Join(err, w[1].done(ctx, l)); err != nil {
			return err
		}
	}
	return nil
}

func queueOnce(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "once", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a"); err != nil {
		return err
	}
	again := func(when string) error {
		return wantOK("enqueue an id that "+when, w[1].q.Enqueue(ctx, w[1].name, store.Item{ID: "a", Data: []byte("other data")}))
	}
	if err := errors.Join(again("waits"), w[0].counts(ctx, "enqueued twice", 1, 0)); err != nil {
		return err
	}
	l, err := w[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	if err := errors.Join(again("is leased"), w[0].counts(ctx, "enqueued while it is leased", 0, 1), wantOK("return", w[0].q.Return(ctx, w[0].name, l.Token))); err != nil {
		return err
	}
	if err := errors.Join(again("was returned"), w[0].counts(ctx, "enqueued after it was returned", 1, 0)); err != nil {
		return err
	}
	if l, err = w[0].take(ctx, time.Hour, "a", 2); err != nil {
		return err
	}
	if err := errors.Join(w[0].done(ctx, l), w[0].add(ctx, "a")); err != nil {
		return err
	}
	l, err = w[1].take(ctx, time.Hour, "a", 1)
	return errors.Join(err, w[1].done(ctx, l))
}

func queueRaced(ctx context.Context, e *Env) error {
	const racers, rounds = 4, 5
	w, err := e.queues(ctx, "raced", 2)
	if err != nil {
		return err
	}
	for round := range rounds {
		id := fmt.Sprint("item ", round)
		var group sync.WaitGroup
		bad := make([]error, racers)
		for i := range racers {
			group.Go(func() { bad[i] = w[i%2].add(ctx, id) })
		}
		group.Wait()
		if err := errors.Join(append(bad, w[0].counts(ctx, "raced", 1, 0))...); err != nil {
			return err
		}
		l, err := w[1].take(ctx, time.Hour, id, 1)
		if err := errors.Join(err, w[1].done(ctx, l)); err != nil {
			return err
		}
	}
	return nil
}

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
		got := waiter(1)
		// It may not wait yet, and must not be missed then either.
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
		got, err := w[0].q.Lease(waiting, w[0].name, "one that gives up", time.Hour, 1)
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

func queueLimits(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "limits", 1)
	if err != nil {
		return err
	}
	q, name := w[0].q, w[0].name
	data := bytes.Repeat([]byte{0, 0xff, '\n', '<', '"'}, store.MaxItemBytes/5+1)[:store.MaxItemBytes]
	for _, item := range []store.Item{
		{ID: strings.Repeat("x", store.MaxItemIDBytes), Data: data}, {ID: "scope/assignment\x00/7 ü\u2028\n", Data: []byte("\xff\x00\r\n")}, {ID: " "}, {ID: "A", Data: []byte{}}, {ID: "a"},
	} {
		if err := wantOK("enqueue within the limits", q.Enqueue(ctx, name, item)); err != nil {
			return err
		}
		got, err := q.Lease(ctx, name, strings.Repeat("w", store.MaxOwnerBytes), time.Hour, 1)
		if err != nil || len(got) != 1 {
			return failf("lease: want one item, got %d and %v", len(got), err)
		}
		if got[0].ID != item.ID {
			return failf("id: want %s, got %s", brief([]byte(item.ID)), brief([]byte(got[0].ID)))
		}
		if err := errors.Join(wantBytes("data", got[0].Data, item.Data), w[0].done(ctx, got[0])); err != nil {
			return err
		}
	}
	var bad []error
	for what, c := range map[string]struct {
		queue string
		item  store.Item
		want  error
	}{
		"no name": {"", store.Item{ID: "a"}, store.ErrInvalidID}, "a name with a slash": {"a/b", store.Item{ID: "a"}, store.ErrInvalidID},
		"a name of dots": {"..", store.Item{ID: "a"}, store.ErrInvalidID}, "a long name": {strings.Repeat("n", store.MaxQueueBytes+1), store.Item{ID: "a"}, store.ErrInvalidID},
		"a name in capitals": {"A", store.Item{ID: "a"}, store.ErrInvalidID},
		"no id":              {name, store.Item{}, store.ErrInvalidID}, "a long id": {name, store.Item{ID: strings.Repeat("x", store.MaxItemIDBytes+1)}, store.ErrInvalidID},
		"an id that is no UTF-8": {name, store.Item{ID: "\xff"}, store.ErrInvalidID},
		"too much data":          {name, store.Item{ID: "a", Data: append(data, 0)}, store.ErrTooLarge},
	} {
		bad = append(bad, wantKind("enqueue with "+what, q.Enqueue(ctx, c.queue, c.item), c.want))
	}
	soon, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	_, err = q.Lease(soon, "..", "w", time.Hour, 1)
	bad = append(bad, wantKind("lease from a queue of dots", err, store.ErrInvalidID))
	_, err = q.Lease(soon, name, strings.Repeat("w", store.MaxOwnerBytes+1), time.Hour, 1)
	bad = append(bad, wantKind("lease by a long worker", err, store.ErrTooLarge))
	_, err = q.Lease(soon, name, "\xff", time.Hour, 1)
	bad = append(bad, wantKind("lease by a worker that is no UTF-8", err, store.ErrUnsupported))
	_, err = q.Queued(ctx, "..")
	bad = append(bad, wantKind("count a queue of dots", err, store.ErrInvalidID), wantKind("done in a queue of dots", q.Done(ctx, "..", "t"), store.ErrInvalidID))
	return errors.Join(append(bad, w[0].counts(ctx, "after refusals", 0, 0))...)
}

func queueZeros(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "zeros", 2)
	if err != nil {
		return err
	}
	if err := w[0].counts(ctx, "a queue that was never used", 0, 0); err != nil {
		return err
	}
	if err := w[0].add(ctx, "a", "b"); err != nil {
		return err
	}
	got, err := w[0].q.Lease(ctx, w[0].name, "", 0, 0)
	if err != nil || len(got) != 1 {
		return failf("lease of no number: want one item, got %d and %v", len(got), err)
	}
	if err := errors.Join(wantOK("extend by no time", w[0].q.Extend(ctx, w[0].name, got[0].Token, 0)), w[1].counts(ctx, "leased for no time", 1, 1)); err != nil {
		return err
	}
	l, err := w[1].take(ctx, time.Hour, "b", 1)
	return errors.Join(err, w[1].done(ctx, l), w[0].done(ctx, got[0]))
}

func queueContext(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "context", 1)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a", "b"); err != nil {
		return err
	}
	l, err := w[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	q, name := w[0].q, w[0].name
	_, leased := q.Lease(gone, name, "w", time.Hour, 1)
	_, counted := q.Queued(gone, name)
	for what, err := range map[string]error{
		"enqueue": q.Enqueue(gone, name, store.Item{ID: "c"}), "lease": leased, "count": counted,
		"extend": q.Extend(gone, name, l.Token, time.Hour), "return": q.Return(gone, name, l.Token), "done": q.Done(gone, name, l.Token),
	} {
		if !errors.Is(err, context.Canceled) || store.KindOf(err) != nil {
			return failf("%s under an ended context: want the context's error alone, got %v", what, err)
		}
	}
	return errors.Join(w[0].counts(ctx, "after calls under an ended context", 1, 1), w[0].done(ctx, l))
}

func queueClosed(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "closed", 1)
	if err != nil {
		return err
	}
	s, ok := w[0].q.(store.Store)
	if !ok {
		return failf("want a handle that is a store.Store, got %T", w[0].q)
	}
	soon, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	waited := make(chan error, 1)
	go func() {
		_, err := w[0].q.Lease(soon, w[0].name, "one that waits", time.Hour, 1)
		waited <- err
	}()
	// Meanwhile another one waits beside it, so it has begun as far as one can know.
	beside := w[0].nothing(ctx, "an empty queue")
	bad := []error{beside, wantOK("close", s.Close()), wantKind("a lease that waits while its handle is closed", <-waited, store.ErrUnavailable)}
	_, err = w[0].q.Lease(soon, w[0].name, "late", time.Hour, 1)
	bad = append(bad, wantKind("lease", err, store.ErrUnavailable))
	_, err = w[0].q.Queued(ctx, w[0].name)
	return errors.Join(append(bad, wantKind("count", err, store.ErrUnavailable),
		wantKind("enqueue", w[0].q.Enqueue(ctx, w[0].name, store.Item{ID: "a"}), store.ErrUnavailable),
		wantKind("done", w[0].q.Done(ctx, w[0].name, "t"), store.ErrUnavailable))...)
}
