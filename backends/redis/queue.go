package redis

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

var _ store.Queue = (*Store)(nil)

const (
	// queueLook is how long a worker waits at most before it looks at the leases again.
	queueLook = 5 * time.Second
	// pickUpTime is how long a worker that waited has from the moment the server gave it
	// an item to the lease of it: one round trip. After that somebody else gets the item.
	pickUpTime = 2 * time.Second
)

// A queue is a stream with one consumer group, "workers", which hands each entry out
// once and lets the next worker that waits have the next one. Two of its consumers say
// what became of an entry:
//
//	              lease, or a read that waits       lease, hold            done
//	    stream ──────────────────────────▶ pickup ─────────────▶ held ──────────▶ gone
//	                                          ▲                    │
//	                                          └── 2 s: lease       └── lease ran out: lease
//
// A read that waits can't be part of a script, so between it and its lease the worker may
// die; what stays with pickup is handed out again. The lease itself is in two keys beside
// the stream: when it ends, and the nonce of its holder. All the rest is in the scripts.

// onQueue runs a script on the keys of a queue.
func (s *Store) onQueue(ctx context.Context, op, queue string, f func(items, leases, held, ids string) (reply, error)) error {
	leave, err := s.startQueue(ctx, op, queue)
	if err != nil {
		return err
	}
	defer leave()
	r, err := f(format.QueueKeys(s.addr.Prefix, queue))
	if err == nil && r.verdict() == "fenced" {
		return store.NotLeased(op, queue)
	}
	return err
}

// startQueue is start for a queue whose name is checked.
func (s *Store) startQueue(ctx context.Context, op, queue string) (leave func(), err error) {
	key := store.QueueKey(queue)
	if leave, err = s.start(ctx, op, key); err != nil {
		return nil, err
	}
	if err = store.CheckQueue(op, queue); err == nil && s.noQueue != "" {
		err = &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Detail: noPermission, Err: errors.New(s.noQueue)}
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// Enqueue adds an item, unless its id is there.
func (s *Store) Enqueue(ctx context.Context, queue string, item store.Item) error {
	const op = "enqueue"
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := item.Validate(queue); err != nil {
		return err
	}
	return s.onQueue(ctx, op, queue, func(items, _, _, ids string) (reply, error) {
		return s.eval(ctx, op, store.QueueKey(queue), enqueueScript, []string{items, ids}, item.ID, string(item.Data))
	})
}

// Lease hands out items, and waits for one on a connection of its own.
func (s *Store) Lease(ctx context.Context, queue, worker string, ttl time.Duration, max int) ([]store.Leased, error) {
	const op = "lease"
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ttl, max, err := store.CheckLease(queue, worker, ttl, max)
	if err != nil {
		return nil, err
	}
	leave, err := s.startQueue(ctx, op, queue)
	if err != nil {
		return nil, err
	}
	defer leave()
	nonce, err := uuid.NewRandom()
	if err != nil {
		return nil, &store.Error{Op: op, Key: store.QueueKey(queue), Kind: store.ErrUnavailable, Err: err}
	}
	l := leaser{s: s, queue: queue, nonce: nonce.String(), worker: worker, ttl: micros(ttl), max: max}
	l.items, l.leases, l.held, _ = format.QueueKeys(s.addr.Prefix, queue)
	defer l.drop()
	return l.run(ctx)
}

// Extend moves the end of a lease.
func (s *Store) Extend(ctx context.Context, queue, token string, ttl time.Duration) error {
	return s.keep(ctx, "extend", queue, token, micros(ttl))
}

// Done removes an item.
func (s *Store) Done(ctx context.Context, queue, token string) error {
	return s.keep(ctx, "done", queue, token, 0)
}

// Return puts an item at the end.
func (s *Store) Return(ctx context.Context, queue, token string) error {
	return s.keep(ctx, "return", queue, token, 0)
}

func (s *Store) keep(ctx context.Context, op, queue, token string, ttl int64) error {
	return s.onQueue(ctx, op, queue, func(items, leases, held, ids string) (reply, error) {
		entry, nonce, ok := format.ParseToken(token)
		if !ok {
			return nil, store.NotLeased(op, queue)
		}
		return s.eval(ctx, op, store.QueueKey(queue), keepScript, []string{items, leases, held, ids}, op, entry, nonce, ttl)
	})
}

// Queued counts the items.
func (s *Store) Queued(ctx context.Context, queue string) (b store.Backlog, err error) {
	const op = "queued"
	err = s.onQueue(ctx, op, queue, func(items, leases, _, _ string) (reply, error) {
		r, err := s.eval(ctx, op, store.QueueKey(queue), queuedScript, []string{items, leases})
		if err == nil {
			leased := max(r.number(2), 0)
			b = store.Backlog{Waiting: uint64(max(r.number(1)-leased, 0)), Leased: uint64(leased)}
		}
		return r, err
	})
	return b, err
}
