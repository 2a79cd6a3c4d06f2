package host

import (
	"context"
	"sync"
	"time"

	"github.com/loophost/loophost/host/store"
)

// mailbox collects the stop and cancel of one execution, from this process and
// from the store; each kind counts once (S-13).
type mailbox struct {
	mu      sync.Mutex
	seen    map[store.SignalKind]bool
	pending []store.Signal
	closed  bool
	// wake holds a token while something may be pending. The signals themselves are
	// taken by whoever has the machine, so that none is on its way between the two.
	wake chan struct{}
}

func newMailbox() *mailbox {
	return &mailbox{seen: map[store.SignalKind]bool{}, wake: make(chan struct{}, 1)}
}

// offer adds a signal. It answers ErrNotRunning once the run is over.
func (m *mailbox) offer(s store.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrNotRunning
	}
	if !m.seen[s.Kind] && (s.Kind == store.SignalStop || s.Kind == store.SignalCancel) {
		m.seen[s.Kind] = true
		m.pending = append(m.pending, s)
		select {
		case m.wake <- struct{}{}:
		default: // a token is there
		}
	}
	return nil
}

// take gives what is pending, in the order in which it came.
func (m *mailbox) take() []store.Signal {
	m.mu.Lock()
	defer m.mu.Unlock()
	pending := m.pending
	m.pending = nil
	return pending
}

// close makes later signals ErrNotRunning (L-17).
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// watch feeds the mailbox from the store until ctx ends: woken where the store
// can, else by a poll of the record.
func (m *mailbox) watch(ctx context.Context, st store.Store, key store.Key, f store.Fence, poll time.Duration) {
	if w, ok := st.(store.SignalWatcher); ok {
		if ch, err := w.WatchSignals(ctx, key, f); err == nil {
			for s := range ch {
				if m.offer(s) != nil {
					return
				}
			}
			if ctx.Err() != nil {
				return
			}
		}
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		rec, err := st.Load(ctx, key)
		if err != nil || rec.Fence != f {
			continue // the lease and the next commit say what is wrong
		}
		for _, s := range rec.Signals {
			if s.Run == f.Run && m.offer(s) != nil {
				return
			}
		}
	}
}
