package conformance

import (
	"bufio"
	"context"
	"sync/atomic"
	"time"

	"github.com/loophost/loophost/host/store"
)

// toldStore is a store whose calls the owner tells of: each before it reaches the
// store, and again when the store has answered, before the host has the answer.
// At one of them it halts. Renewing the lease and watching for signals go on beside
// a run at no fixed place in it, so they are neither told nor counted.
type toldStore struct {
	inner store.Store
	say   *teller
	order crashOrder
	in    *bufio.Reader
	calls *atomic.Int64
}

var _ store.Store = toldStore{}

// newToldStore keeps the ability to watch, as the host uses it.
func newToldStore(st store.Store, say *teller, o crashOrder, in *bufio.Reader) store.Store {
	told := toldStore{st, say, o, in, new(atomic.Int64)}
	if w, ok := st.(store.SignalWatcher); ok {
		return struct {
			toldStore
			store.SignalWatcher
		}{told, w}
	}
	return told
}

// told makes one call.
func (s toldStore) told(c crashCall, call func() (crashReply, error)) {
	here := s.calls.Add(1) == int64(s.order.Halt)
	if here && !s.order.After {
		s.halt(c.Op)
	}
	s.say.line(crashLine{Sent: &c})
	reply, err := call()
	if err != nil {
		reply.Error = err.Error()
	}
	s.say.line(crashLine{Done: &reply})
	if here && s.order.After {
		s.halt(c.Op)
	}
}

// halt waits for the end of this process. The suite never answers; if it is gone,
// the run goes on for nobody.
func (s toldStore) halt(op Op) {
	s.say.line(crashLine{Halt: op})
	_, _ = readLine(s.in)
}

// tell makes a call that answers a value.
func tell[T any](s toldStore, c crashCall, call func() (T, error), reply func(T) crashReply) (v T, err error) {
	s.told(c, func() (crashReply, error) {
		v, err = call()
		return reply(v), err
	})
	return v, err
}

// tellOnly makes a call of which the suite needs to know no more than its end.
func tellOnly[T any](s toldStore, op Op, call func() (T, error)) (T, error) {
	return tell(s, crashCall{Op: op}, call, func(T) crashReply { return crashReply{} })
}

func ackReply(a store.Ack) crashReply { return crashReply{Mark: a.Mark} }

func (s toldStore) Create(ctx context.Context, key store.Key, c store.Commit) (store.Ack, error) {
	return tell(s, crashCall{Op: OpCreate, ID: c.ID, Head: c.Head, Entries: c.Entries},
		func() (store.Ack, error) { return s.inner.Create(ctx, key, c) }, ackReply)
}

func (s toldStore) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	return tell(s, crashCall{Op: OpCommit, ID: c.ID, Head: c.Head, Entries: c.Entries},
		func() (store.Ack, error) { return s.inner.Commit(ctx, key, f, c) }, ackReply)
}

func (s toldStore) Acquire(ctx context.Context, key store.Key, claim store.Claim) (store.Fence, store.Record, error) {
	var f store.Fence
	rec, err := tell(s, crashCall{Op: OpAcquire}, func() (rec store.Record, err error) {
		f, rec, err = s.inner.Acquire(ctx, key, claim)
		return rec, err
	}, func(rec store.Record) crashReply { return crashReply{Mark: rec.Mark, Fence: f} })
	return f, rec, err
}

func (s toldStore) Release(ctx context.Context, key store.Key, f store.Fence) error {
	_, err := tellOnly(s, OpRelease, func() (struct{}, error) { return struct{}{}, s.inner.Release(ctx, key, f) })
	return err
}

func (s toldStore) Describe(ctx context.Context) (store.Description, error) {
	return tellOnly(s, OpDescribe, func() (store.Description, error) { return s.inner.Describe(ctx) })
}

func (s toldStore) Resolve(ctx context.Context, key store.Key, f store.Fence, id string) (store.Outcome, error) {
	return tellOnly(s, OpResolve, func() (store.Outcome, error) { return s.inner.Resolve(ctx, key, f, id) })
}

func (s toldStore) Signal(ctx context.Context, key store.Key, sig store.Signal) error {
	_, err := tellOnly(s, OpSignal, func() (struct{}, error) { return struct{}{}, s.inner.Signal(ctx, key, sig) })
	return err
}

func (s toldStore) Load(ctx context.Context, key store.Key) (store.Record, error) {
	return tellOnly(s, OpLoad, func() (store.Record, error) { return s.inner.Load(ctx, key) })
}

func (s toldStore) ReadLog(ctx context.Context, key store.Key, from uint64, limit int) (store.LogPage, error) {
	return tellOnly(s, OpReadLog, func() (store.LogPage, error) { return s.inner.ReadLog(ctx, key, from, limit) })
}

func (s toldStore) List(ctx context.Context, q store.Query) (store.ListPage, error) {
	return tellOnly(s, OpList, func() (store.ListPage, error) { return s.inner.List(ctx, q) })
}

func (s toldStore) Delete(ctx context.Context, key store.Key, f store.Fence) error {
	_, err := tellOnly(s, OpDelete, func() (struct{}, error) { return struct{}{}, s.inner.Delete(ctx, key, f) })
	return err
}

// Renew is not told.
func (s toldStore) Renew(ctx context.Context, key store.Key, f store.Fence, ttl time.Duration) error {
	return s.inner.Renew(ctx, key, f, ttl)
}

// Close is not told.
func (s toldStore) Close() error { return s.inner.Close() }
