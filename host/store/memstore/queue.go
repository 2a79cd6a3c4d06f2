package memstore

import (
	"bytes"
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

var _ store.Queue = (*handle)(nil)

// queue is one queue's state; guarded by Memory.mu.
type queue struct {
	ledger.Queue[[]byte]
	grown chan struct{} // closed and replaced when an item came, or an end of a lease was moved
}

// recheck is how often a Lease looks whether a lease ran out: the clock is injected, so
// no timer knows when it gets there.
const recheck = 50 * time.Millisecond

// onQueue runs f under the mutex with the queue of that name.
func (h *handle) onQueue(ctx context.Context, op, name string, f func(*queue) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.CheckQueue(op, name); err != nil {
		return err
	}
	return ledger.Error(ctx, op, store.QueueKey(name), h.engine.locked(func() error {
		q := h.engine.m.queues[name]
		if q == nil {
			q = &queue{grown: make(chan struct{})}
			h.engine.m.queues[name] = q
		}
		return f(q)
	}))
}

func (q *queue) wake() {
	close(q.grown)
	q.grown = make(chan struct{})
}

// Enqueue adds an item, unless its id is there.
func (h *handle) Enqueue(ctx context.Context, name string, item store.Item) error {
	if err := item.Validate(name); err != nil {
		return err
	}
	return h.onQueue(ctx, "enqueue", name, func(q *queue) error {
		if !q.Has(item.ID) {
			q.Add(item.ID, copied(item.Data), 0)
			q.wake()
		}
		return nil
	})
}

// Lease hands out items, and waits for one.
func (h *handle) Lease(ctx context.Context, name, worker string, ttl time.Duration, max int) ([]store.Leased, error) {
	ttl, max, err := store.CheckLease(name, worker, ttl, max)
	if err != nil {
		return nil, err
	}
	for {
		var out []store.Leased
		var grown chan struct{}
		leased := false
		err := h.onQueue(ctx, "lease", name, func(q *queue) error {
			now := h.engine.m.clock()
			for _, u := range q.Next(now, max) {
				q.Hold(u.ID, uuid.NewString(), worker, now.Add(ttl))
				out = append(out, store.Leased{Item: store.Item{ID: u.ID, Data: bytes.Clone(u.Data)}, Token: u.Token, Delivery: u.Delivery, Expires: u.Expires})
			}
			grown, leased = q.grown, !q.Soonest().IsZero()
			return nil
		})
		if err != nil || len(out) > 0 {
			return out, err
		}
		if err := h.await(ctx, grown, leased); err != nil {
			return nil, err
		}
	}
}

// await returns when it is worth to look again; the store's end shows then.
func (h *handle) await(ctx context.Context, grown <-chan struct{}, leased bool) error {
	var tick <-chan time.Time
	if leased {
		timer := time.NewTimer(recheck)
		defer timer.Stop()
		tick = timer.C
	}
	select {
	case <-grown:
	case <-tick:
	case <-h.engine.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Extend moves the end of a lease.
func (h *handle) Extend(ctx context.Context, name, token string, ttl time.Duration) error {
	if ttl <= 0 {
		ttl = store.DefaultTTL
	}
	return h.holding(ctx, "extend", name, func(q *queue) bool { return q.Extend(token, h.engine.m.clock().Add(ttl)) })
}

// Done removes an item.
func (h *handle) Done(ctx context.Context, name, token string) error {
	return h.holding(ctx, "done", name, func(q *queue) bool { return q.Remove(token) })
}

// Return puts an item at the end.
func (h *handle) Return(ctx context.Context, name, token string) error {
	return h.holding(ctx, "return", name, func(q *queue) bool { return q.Back(token) })
}

func (h *handle) holding(ctx context.Context, op, name string, change func(*queue) bool) error {
	return h.onQueue(ctx, op, name, func(q *queue) error {
		if !change(q) {
			return store.NotLeased(op, name)
		}
		q.wake()
		return nil
	})
}

// Queued counts the items.
func (h *handle) Queued(ctx context.Context, name string) (b store.Backlog, err error) {
	err = h.onQueue(ctx, "queued", name, func(q *queue) error {
		b = q.Backlog(h.engine.m.clock())
		return nil
	})
	return b, err
}
