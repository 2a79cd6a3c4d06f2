package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// lease keeps a fence's lease alive and says whether effects may start (L-28).
// The fence protects records; the lease protects effects: an owner that could not
// renew for one ttl starts no provider call, tool or hook until it has renewed.
// It reads the monotonic clock only.
type lease struct {
	renew func(ctx context.Context) error
	ttl   time.Duration
	every time.Duration

	mu     sync.Mutex
	last   time.Time     // before the last renewal that worked was sent
	change chan struct{} // closed at each change of last or lost
	lost   error         // another owner, or no record any more

	fenced chan struct{} // closed once lost is set
	stop   context.CancelFunc
	done   chan struct{}
}

func startLease(acquired time.Time, ttl, every time.Duration, renew func(ctx context.Context) error) *lease {
	ctx, stop := context.WithCancel(context.Background())
	l := &lease{
		renew: renew, ttl: ttl, every: every, last: acquired,
		change: make(chan struct{}), fenced: make(chan struct{}), stop: stop, done: make(chan struct{}),
	}
	go l.run(ctx)
	return l
}

func (l *lease) run(ctx context.Context) {
	defer close(l.done)
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		sent := time.Now()
		attempt, cancel := context.WithTimeout(ctx, l.ttl)
		err := l.renew(attempt)
		cancel()
		switch {
		case err == nil:
			l.set(sent, nil)
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrNotFound):
			l.set(time.Time{}, err)
			return
		}
	}
}

func (l *lease) set(renewed time.Time, lost error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lost != nil && l.lost == nil {
		l.lost = lost
		close(l.fenced)
	}
	if lost == nil {
		l.last = renewed
	}
	close(l.change)
	l.change = make(chan struct{})
}

// hold returns once the lease is known to be good: at once in the usual case,
// else after the next renewal. It fails with the store's error where the session
// was lost, or with ctx's cause.
func (l *lease) hold(ctx context.Context) error {
	for {
		l.mu.Lock()
		lost, good, change := l.lost, time.Since(l.last) < l.ttl, l.change
		l.mu.Unlock()
		switch {
		case lost != nil:
			return lost
		case good:
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ended is why the session was lost, or nil.
func (l *lease) ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// good reports whether effects may start now.
func (l *lease) good() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost == nil && time.Since(l.last) < l.ttl
}

// leasedHook starts only while the lease is good (L-28): a chain has several
// hooks, and the effect before them may have taken longer than a lease.
type leasedHook struct {
	plugin.Hook
	lease *lease
}

// Run implements plugin.Hook.
func (h leasedHook) Run(ctx context.Context, s plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, plugin.CallStats, error) {
	if err := h.lease.hold(ctx); err != nil {
		return pluginapi.Decision{}, plugin.CallStats{}, err
	}
	return h.Hook.Run(ctx, s, in)
}

// end stops renewing and waits for the goroutine.
func (l *lease) end() {
	l.stop()
	<-l.done
}
