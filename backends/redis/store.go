package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/backends/redis/internal/address"
	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Store is an open store. It implements store.Store, store.SignalWatcher, store.Checker,
// store.Historian and store.Queue. Make one with Open.
type Store struct {
	c    Config
	addr address.Address
	srv  *servers
	log  *slog.Logger

	noQueue string // why the server's user can't have queues; "": it can

	mu     sync.Mutex
	closed bool
	done   chan struct{}  // closed by Close
	busy   sync.WaitGroup // calls and watches
}

var (
	_ store.Store         = (*Store)(nil)
	_ store.SignalWatcher = (*Store)(nil)
	_ store.Checker       = (*Store)(nil)
)

// Open connects to the server that c names, looks at its settings, and tries what the
// store needs there. Errors: ErrUnsupported (the URL, the server's version, its
// eviction policy or its mode can't be used), ErrUnavailable (it can't be reached, or
// refuses the user), or ctx's error.
func Open(ctx context.Context, c Config) (*Store, error) {
	const op = "open"
	a, err := parse(c.URL)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &Store{c: c.normal(), addr: a, done: make(chan struct{})}
	s.log = s.c.Logger
	if s.srv, err = connect(a, c.Password, s.probe); err != nil {
		return nil, &store.Error{Op: op, Kind: store.ErrUnsupported, Detail: a.String(), Err: err}
	}
	if err := s.try(ctx); err != nil {
		return nil, errors.Join(s.fail(op, store.Key{}, err, false), s.srv.close())
	}
	return s, nil
}

// probe looks at a server through each new connection, so a promise that changed is
// known before anything is sent over it (S-5).
func (s *Store) probe(ctx context.Context, c *goredis.Conn, n *node) error {
	p, err := probeConn(ctx, c, s.addr.Mode)
	if p == nil || err != nil {
		return err
	}
	if old := n.promise.Swap(p); old != nil && old.durability.Level != p.durability.Level {
		s.log.Warn("the server's durability changed", "server", s.addr.String(), "before", old.durability.String(), "now", p.durability.String(), "probe", p.how)
	}
	return nil
}

// try looks at every master and does what the store needs. A full memory passes: what is
// stored can still be read.
func (s *Store) try(ctx context.Context) error {
	err := s.srv.masters(ctx, func(ctx context.Context, n *node) error { return n.Ping(ctx).Err() })
	if err != nil {
		return err
	}
	return passFull(s.rehearse(ctx))
}

// Describe says what the store promises: the least of what its servers do.
func (s *Store) Describe(ctx context.Context) (store.Description, error) {
	const op = "describe"
	leave, err := s.start(ctx, op, store.Key{})
	if err != nil {
		return store.Description{}, err
	}
	defer leave()
	var least *promise
	err = s.srv.masters(ctx, func(ctx context.Context, n *node) error {
		p, err := n.recount(ctx)
		if err != nil {
			return err
		}
		if least == nil || p.durability.Level < least.durability.Level {
			q := *p
			if least != nil {
				q.durability.Replicas = min(q.durability.Replicas, least.durability.Replicas)
			}
			least = &q
		}
		least.durability.Replicas = min(least.durability.Replicas, p.durability.Replicas)
		return nil
	})
	if err == nil && least == nil {
		err = &refusal{kind: store.ErrUnavailable, detail: "the Cluster names no master"}
	}
	if err != nil {
		return store.Description{}, s.fail(op, store.Key{}, err, false)
	}
	can := []string{"watch", "check", "processes", "queue"}
	if s.noQueue != "" {
		can = can[:3]
	}
	return store.Description{
		Name: "redis", Version: least.version,
		Location:   fmt.Sprintf("%s, keys %s:*", s.addr, s.addr.Prefix),
		Durability: least.durability, Probe: least.how,
		Capabilities: can,
	}, nil
}

// promised is what the node promised last; it connects if it never did.
func (n *node) promised(ctx context.Context) (*promise, error) {
	if p := n.promise.Load(); p != nil {
		return p, nil
	}
	if err := n.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	if p := n.promise.Load(); p != nil {
		return p, nil
	}
	return nil, &refusal{kind: store.ErrUnavailable, detail: "the server was not looked at when it was connected to"}
}

// recount looks again at how many replicas follow the node.
func (n *node) recount(ctx context.Context) (*promise, error) {
	text, err := n.Info(ctx, "replication").Result()
	if err != nil {
		return nil, err
	}
	old, err := n.promised(ctx)
	if err != nil {
		return nil, err
	}
	p := *old
	p.durability.Replicas = onlineReplicas(parseInfo(text))
	n.promise.CompareAndSwap(old, &p)
	return &p, nil
}

// start lets one call in, unless its context or the store has ended (S-9).
func (s *Store) start(ctx context.Context, op string, key store.Key) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Detail: "the store is closed"}
	}
	s.busy.Add(1)
	return s.busy.Done, nil
}

// Close waits for the calls under way, at most for the timeout of the URL, and ends
// the connections. Records that are owned here are left to their leases.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	s.mu.Unlock()
	s.busy.Wait()
	if err := s.srv.close(); err != nil && !errors.Is(err, goredis.ErrClosed) && !errors.Is(err, io.EOF) {
		return &store.Error{Op: "close", Kind: store.ErrUnavailable, Err: err}
	}
	return nil
}

// name is the Redis key of a record.
func (s *Store) name(k store.Key) string { return format.Record(s.addr.Prefix, k) }

// micros is a lease in the server's unit, rounded up.
func micros(ttl time.Duration) int64 {
	if ttl <= 0 {
		ttl = store.DefaultTTL
	}
	return int64((ttl + time.Microsecond - 1) / time.Microsecond)
}
