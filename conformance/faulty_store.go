package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/loophost/loophost/host/store"
)

// Store is the wrapped store. It can watch and check if the inner one can; it offers
// neither a history nor queues, and says so.
func (f *Faulty) Store() store.Store {
	_, watches := f.inner.(store.SignalWatcher)
	_, checks := f.inner.(store.Checker)
	base := faultyStore{f}
	switch {
	case watches && checks:
		return struct {
			faultyStore
			faultyWatcher
			faultyChecker
		}{base, faultyWatcher{f}, faultyChecker{f}}
	case watches:
		return struct {
			faultyStore
			faultyWatcher
		}{base, faultyWatcher{f}}
	case checks:
		return struct {
			faultyStore
			faultyChecker
		}{base, faultyChecker{f}}
	default:
		return base
	}
}

type faultyStore struct{ f *Faulty }

var _ store.Store = faultyStore{}

func (s faultyStore) Describe(ctx context.Context) (store.Description, error) {
	d, err := do(ctx, s.f, Call{Op: OpDescribe}, s.f.inner.Describe)
	d.Capabilities = slices.DeleteFunc(slices.Clone(d.Capabilities), func(c string) bool { return c == "queue" })
	return d, err
}

func (s faultyStore) Create(ctx context.Context, key store.Key, c store.Commit) (store.Ack, error) {
	return do(ctx, s.f, Call{Op: OpCreate, Key: key, Commit: c}, func(ctx context.Context) (store.Ack, error) {
		return s.f.inner.Create(ctx, key, c)
	})
}

func (s faultyStore) Acquire(ctx context.Context, key store.Key, claim store.Claim) (store.Fence, store.Record, error) {
	type answer struct {
		fence  store.Fence
		record store.Record
	}
	a, err := do(ctx, s.f, Call{Op: OpAcquire, Key: key, Claim: claim}, func(ctx context.Context) (answer, error) {
		f, r, err := s.f.inner.Acquire(ctx, key, claim)
		return answer{f, r}, err
	})
	return a.fence, a.record, err
}

func (s faultyStore) Renew(ctx context.Context, key store.Key, f store.Fence, ttl time.Duration) error {
	return do0(ctx, s.f, Call{Op: OpRenew, Key: key, Fence: f}, func(ctx context.Context) error {
		return s.f.inner.Renew(ctx, key, f, ttl)
	})
}

func (s faultyStore) Release(ctx context.Context, key store.Key, f store.Fence) error {
	return do0(ctx, s.f, Call{Op: OpRelease, Key: key, Fence: f}, func(ctx context.Context) error {
		return s.f.inner.Release(ctx, key, f)
	})
}

func (s faultyStore) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	return do(ctx, s.f, Call{Op: OpCommit, Key: key, Fence: f, Commit: c}, func(ctx context.Context) (store.Ack, error) {
		return s.f.inner.Commit(ctx, key, f, c)
	})
}

func (s faultyStore) Resolve(ctx context.Context, key store.Key, f store.Fence, id string) (store.Outcome, error) {
	return do(ctx, s.f, Call{Op: OpResolve, Key: key, Fence: f, ID: id}, func(ctx context.Context) (store.Outcome, error) {
		return s.f.inner.Resolve(ctx, key, f, id)
	})
}

func (s faultyStore) Signal(ctx context.Context, key store.Key, sig store.Signal) error {
	return do0(ctx, s.f, Call{Op: OpSignal, Key: key, Signal: sig}, func(ctx context.Context) error {
		return s.f.inner.Signal(ctx, key, sig)
	})
}

func (s faultyStore) Load(ctx context.Context, key store.Key) (store.Record, error) {
	return do(ctx, s.f, Call{Op: OpLoad, Key: key}, func(ctx context.Context) (store.Record, error) {
		return s.f.inner.Load(ctx, key)
	})
}

func (s faultyStore) ReadLog(ctx context.Context, key store.Key, from uint64, limit int) (store.LogPage, error) {
	return do(ctx, s.f, Call{Op: OpReadLog, Key: key}, func(ctx context.Context) (store.LogPage, error) {
		return s.f.inner.ReadLog(ctx, key, from, limit)
	})
}

func (s faultyStore) List(ctx context.Context, q store.Query) (store.ListPage, error) {
	return do(ctx, s.f, Call{Op: OpList, Key: store.Key{Kind: q.Kind}}, func(ctx context.Context) (store.ListPage, error) {
		return s.f.inner.List(ctx, q)
	})
}

func (s faultyStore) Delete(ctx context.Context, key store.Key, f store.Fence) error {
	return do0(ctx, s.f, Call{Op: OpDelete, Key: key, Fence: f}, func(ctx context.Context) error {
		return s.f.inner.Delete(ctx, key, f)
	})
}

// Close closes the inner store; it is not recorded and never fails by a fault.
func (s faultyStore) Close() error { return s.f.inner.Close() }

type faultyWatcher struct{ f *Faulty }

func (w faultyWatcher) WatchSignals(ctx context.Context, key store.Key, f store.Fence) (<-chan store.Signal, error) {
	i, x := w.f.begin(Call{Op: OpWatch, Key: key, Fence: f})
	if x != nil {
		// A watch has nothing to apply, so every kind of fault refuses it.
		err := x.error(Call{Op: OpWatch, Key: key})
		w.f.end(i, err)
		return nil, err
	}
	ch, err := w.f.inner.(store.SignalWatcher).WatchSignals(ctx, key, f)
	w.f.end(i, err)
	return ch, err
}

type faultyChecker struct{ f *Faulty }

func (k faultyChecker) Check(ctx context.Context, key store.Key) (store.CheckReport, error) {
	return do(ctx, k.f, Call{Op: OpCheck, Key: key}, func(ctx context.Context) (store.CheckReport, error) {
		return k.f.inner.(store.Checker).Check(ctx, key)
	})
}
