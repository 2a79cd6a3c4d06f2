package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

// leaser is one call of Lease.
type leaser struct {
	s                    *Store
	queue, nonce, worker string
	items, leases, held  string
	ttl                  int64 // µs
	max                  int

	own *goredis.Client // waits; it has one connection, outside the pool of the others
}

func (l *leaser) run(ctx context.Context) ([]store.Leased, error) {
	const op = "lease"
	key, keys := store.QueueKey(l.queue), []string{l.items, l.leases, l.held}
	// The wait ends with the context and with the store.
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-l.s.done:
			cancel()
		case <-stop:
		}
	}()
	for failed := false; ; {
		r, err := l.s.eval(ctx, op, key, leaseScript, keys, l.nonce, l.worker, l.ttl, l.max, pickUpTime.Milliseconds())
		if err != nil {
			return nil, err
		}
		if r.verdict() == "ok" {
			return l.leased(r)
		}
		wait := queueLook
		if n := r.number(1); n > 0 {
			wait = min(wait, time.Duration(n)*time.Millisecond)
		}
		entries, err := l.pickUp(waiting, wait)
		switch {
		case len(entries) > 0:
			// Also when ctx has ended meanwhile: the item would wait for nothing.
			r, err := l.s.eval(context.WithoutCancel(ctx), op, key, holdScript, keys, append([]any{l.nonce, l.worker, l.ttl}, entries...)...)
			if err != nil {
				return nil, err
			}
			if out, err := l.leased(r); err != nil || len(out) > 0 {
				return out, err
			}
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case waiting.Err() != nil:
			return nil, &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Detail: "the store is closed"}
		case err != nil && failed:
			return nil, l.s.fail(op, key, err, false)
		}
		// A server that is no master any more, a slot that moved, a queue that was
		// removed: the script finds out.
		failed = err != nil
		if failed {
			l.drop()
			if l.s.srv.cluster != nil {
				l.s.srv.cluster.ReloadState(ctx)
			}
		}
	}
}

// pickUp waits at most so long until the server gives this worker items, and gives their
// entries. The connection ends with ctx: an item that is given to it then is handed out
// again after pickUpTime.
func (l *leaser) pickUp(ctx context.Context, wait time.Duration) (entries []any, err error) {
	if l.own == nil {
		n, err := l.s.srv.of(ctx, l.items)
		if err != nil {
			return nil, err
		}
		l.own = n.alone()
	}
	entries, err = l.read(ctx, wait)
	if to, moved := redirected(err, "MOVED"); moved && l.s.srv.cluster != nil {
		n, nodeErr := l.s.srv.at(ctx, to)
		if nodeErr != nil {
			return nil, err
		}
		l.drop()
		l.own = n.alone()
		return l.read(ctx, wait)
	}
	return entries, err
}

func (l *leaser) read(ctx context.Context, wait time.Duration) (entries []any, err error) {
	own := l.own
	defer context.AfterFunc(ctx, func() { _ = own.Close() })() // it says only that it was closed
	streams, err := own.XReadGroup(context.WithoutCancel(ctx), &goredis.XReadGroupArgs{
		Group: "workers", Consumer: "pickup", Streams: []string{l.items, ">"}, Count: int64(l.max), Block: wait,
	}).Result()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	for _, stream := range streams {
		for _, m := range stream.Messages {
			entries = append(entries, m.ID)
		}
	}
	return entries, err
}

// drop ends the connection that waits.
func (l *leaser) drop() {
	if l.own != nil {
		_ = l.own.Close() // it may be closed already
		l.own = nil
	}
}

// alone is a client of the node's server with one connection. It is for reads that wait:
// in the pool they would keep everybody else from sending. What the server promises was
// found out over the other connections.
func (n *node) alone() *goredis.Client {
	o := *n.Options()
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 1, 0, 0, 0
	o.MaxRetries, o.DialerRetries, o.PipelinePoolSize = -1, 1, -1
	o.OnConnect = nil
	return goredis.NewClient(&o)
}

// leased are the items in the answer of a script.
func (l *leaser) leased(r reply) ([]store.Leased, error) {
	const op = "lease"
	micros, err := strconv.ParseInt(r.text(1), 10, 64)
	if err != nil {
		return nil, corrupt(op, store.QueueKey(l.queue), "the end of the lease is unreadable", err)
	}
	var out []store.Leased
	for i := 2; i < len(r); i++ {
		one := r.list(i)
		fields := one.list(2)
		delivery, err := format.ParseNumber(one.text(1))
		if err != nil || len(fields) != 6 || fields.text(0) != "id" || fields.text(2) != "data" || fields.text(4) != "n" {
			return nil, corrupt(op, store.QueueKey(l.queue), "the entry "+one.text(0)+" is no item of a queue; another program wrote it: remove it with XDEL "+l.items+" "+one.text(0), err)
		}
		out = append(out, store.Leased{
			Item:  store.Item{ID: fields.text(1), Data: []byte(fields.text(3))},
			Token: format.Token(one.text(0), l.nonce), Delivery: delivery, Expires: time.UnixMicro(micros).UTC(),
		})
	}
	return out, nil
}
