package conformance

import (
	"context"
	"errors"
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
		q("Q-2/gone-worker", "What a worker had that is gone is handed out again: at once where the store knows who lives, else when the lease ran out.", queueGoneWorker),
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
	ctx, cancel := context.WithTimeout(ctx, e.patience) // a store that counts wrong lets it wait
	defer cancel()
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

// lease is the store's, of which a wait that does not end with its context is a failure
// soon.
func (w work) lease(ctx context.Context, worker string, ttl time.Duration, max int) ([]store.Leased, error) {
	type answer struct {
		got []store.Leased
		err error
	}
	ch := make(chan answer, 1)
	go func() {
		got, err := w.q.Lease(ctx, w.name, worker, ttl, max)
		ch <- answer{got, err}
	}()
	select {
	case a := <-ch:
		return a.got, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(w.e.patience)
	defer timer.Stop()
	select {
	case a := <-ch:
		return a.got, a.err
	case <-timer.C:
		return nil, failf("want a lease that ends with its context, got none within %s", w.e.patience)
	}
}

// take leases one item, which must be id at that delivery.
func (w work) take(ctx context.Context, ttl time.Duration, id string, delivery uint64) (store.Leased, error) {
	ctx, cancel := context.WithTimeout(ctx, w.e.patience)
	defer cancel()
	got, err := w.lease(ctx, "a worker", ttl, 1)
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
	got, err := w.lease(ctx, "a worker that must get nothing", time.Minute, 1)
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
