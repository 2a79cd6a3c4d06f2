package host_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/pluginapi"
)

// takes is a provider call of that length, which ends early with its context.
func takes(d time.Duration, m pluginapi.Message) func(context.Context) (pluginapi.Message, error) {
	return func(ctx context.Context) (pluginapi.Message, error) {
		select {
		case <-time.After(d):
			return m, nil
		case <-ctx.Done():
			return pluginapi.Message{}, ctx.Err()
		}
	}
}

func TestWallTimeDrainsFirstAndInterruptsThen(t *testing.T) {
	tests := []struct {
		name          string
		call          time.Duration
		timeout       time.Duration
		took          time.Duration
		status        loop.Status
		want          counters
		providerCalls int64
	}{
		{"in time", time.Minute, time.Hour, 2 * time.Minute, loop.Completed, counters{2, 2, 2}, 2},
		{"the call at hand drains", time.Minute, 50 * time.Second, time.Minute, loop.BudgetExhausted, counters{1, 1, 1}, 1},
		{"a call that does not drain is interrupted", time.Hour, 50 * time.Second, 50*time.Second + host.DefaultDrainTimeout, loop.BudgetExhausted, counters{1, 0, 1}, 1},
		{"the last iteration that drains completes the loop", time.Minute, 110 * time.Second, 2 * time.Minute, loop.Completed, counters{2, 2, 2}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				p := &script{answers: []any{takes(tt.call, say("a"))}}
				spec := r.spec(p, 2, 4)
				spec.Timeout = tt.timeout
				began := time.Now()
				res, err := r.open("s").Run(context.Background(), spec)
				took := time.Since(began)
				if err != nil {
					t.Fatal(err)
				}
				got := of(r.stored("s").Loop)
				if res.Status != tt.status || got != tt.want || took != tt.took || p.calls.Load() != tt.providerCalls {
					t.Errorf("got %s %v after %v and %d calls, want %s %v after %v and %d", res.Status, got, took, p.calls.Load(), tt.status, tt.want, tt.took, tt.providerCalls)
				}
				if res.Status == loop.BudgetExhausted && res.ReasonCode != loop.ReasonWallTime {
					t.Errorf("got reason %q, want wall_time", res.ReasonCode)
				}
				if n := r.count(host.EventComplete); n != 1 {
					t.Errorf("got %d Complete events, want 1", n)
				}
			})
		})
	}
}

func TestAnExpiredWallTimeStartsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var tools, reviews atomic.Int64
		p := &script{answers: []any{func(context.Context) (pluginapi.Message, error) {
			<-time.After(2 * time.Minute) // it does not listen
			return useTool("echo", `{}`), nil
		}}}
		spec := r.spec(p, 1, 4)
		spec.Timeout = time.Minute
		spec.Tools = []plugin.Tool{echoTool(&tools)}
		spec.Hooks = []plugin.Hook{hook("watch", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
			reviews.Add(1)
			return pluginapi.Decision{Action: pluginapi.Continue}
		})}
		res, err := r.open("s").Run(context.Background(), spec)
		if err != nil || res.Status != loop.BudgetExhausted {
			t.Fatalf("got %s and %v, want budget_exhausted", res.Status, err)
		}
		if tools.Load() != 0 || reviews.Load() != 0 {
			t.Errorf("%d tools and %d hooks ran after the drain, want none", tools.Load(), reviews.Load())
		}
	})
}

func TestAStopThatDoesNotDrainBecomesACancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		s := r.open("s")
		spec := r.spec(&script{answers: []any{takes(time.Hour, say("a"))}}, 1, 1)
		spec.DrainTimeout = 10 * time.Second
		time.AfterFunc(time.Minute, func() {
			if err := s.Stop("enough"); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		res, err := s.Run(context.Background(), spec)
		if took := time.Since(began); !errors.Is(err, host.ErrCancelled) || took != 70*time.Second {
			t.Errorf("got %v after %v, want ErrCancelled after 1m10s", err, took)
		}
		if res.Status != loop.Cancelled || res.ReasonCode != loop.ReasonDrainTimeout {
			t.Errorf("got %s %s, want cancelled drain_timeout", res.Status, res.ReasonCode)
		}
	})
}

// unrenewable is a store whose leases can't be renewed while down is true.
type unrenewable struct {
	store.Store
	down *atomic.Bool
}

func (u unrenewable) Renew(ctx context.Context, key store.Key, f store.Fence, ttl time.Duration) error {
	if u.down.Load() {
		return &store.Error{Op: "renew", Key: key, Kind: store.ErrUnavailable}
	}
	return u.Store.Renew(ctx, key, f, ttl)
}

// An owner that could not renew for one ttl starts no effect until it has renewed (L-28).
func TestNoEffectStartsWithoutALease(t *testing.T) {
	const outage = 5 * time.Minute
	type started struct {
		what string
		at   time.Duration
	}
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		mem := memstore.New().Open()
		t.Cleanup(func() { _ = mem.Close() })
		r := newRig(t, unrenewable{mem, &down})
		began := time.Now()
		var seen []started
		note := func(what string) { seen = append(seen, started{what, time.Since(began)}) }
		p := &script{answers: []any{
			func(ctx context.Context) (pluginapi.Message, error) {
				note("provider")
				down.Store(true)
				time.AfterFunc(outage, func() { down.Store(false) })
				return takes(time.Minute, useTool("echo", `{}`))(ctx) // longer than a lease
			},
			func(context.Context) (pluginapi.Message, error) {
				note("provider")
				return say("done"), nil
			},
		}}
		spec := r.spec(p, 1, 2)
		for _, point := range []pluginapi.HookPoint{pluginapi.AfterProvider, pluginapi.BeforeTool, pluginapi.AfterTool, pluginapi.AfterRound} {
			spec.Hooks = append(spec.Hooks, hook(string(point), point, func(*pluginapi.HookInput) pluginapi.Decision {
				note(string(point))
				return pluginapi.Decision{Action: pluginapi.Continue}
			}))
		}
		var calls atomic.Int64
		spec.Tools = []plugin.Tool{echoTool(&calls)}
		res, err := r.open("s").Run(context.Background(), spec)
		if err != nil || res.Status != loop.Completed {
			t.Fatalf("got %s and %v, want completed", res.Status, err)
		}
		if len(seen) < 6 || calls.Load() != 1 {
			t.Fatalf("got the effects %v and %d tool runs, want all of the run's", seen, calls.Load())
		}
		for _, e := range seen {
			if e.at > host.DefaultLeaseTTL && e.at < outage {
				t.Errorf("%s started at %v, without a lease", e.what, e.at)
			}
		}
	})
}

func TestSessionEndHooksDoNotRunWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		mem := memstore.New().Open()
		t.Cleanup(func() { _ = mem.Close() })
		r := newRig(t, unrenewable{mem, &down})
		ended := 0
		spec := r.spec(&script{answers: []any{func(ctx context.Context) (pluginapi.Message, error) {
			down.Store(true)
			return pluginapi.Message{}, errors.Join(func() error { _, err := takes(time.Minute, say(""))(ctx); return err }(), fails(pluginapi.FailAuth, 0))
		}}}, 1, 1)
		spec.Hooks = []plugin.Hook{hook("end", pluginapi.SessionEnd, func(*pluginapi.HookInput) pluginapi.Decision {
			ended++
			return pluginapi.Decision{Action: pluginapi.Continue}
		})}
		if _, err := r.open("s").Run(context.Background(), spec); err == nil {
			t.Fatal("got success, want the provider's failure")
		}
		if ended != 0 {
			t.Errorf("the session_end hook ran %d times without a lease (L-28)", ended)
		}
	})
}

func TestACancelEndsTheWaitForALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		mem := memstore.New().Open()
		t.Cleanup(func() { _ = mem.Close() })
		r := newRig(t, unrenewable{mem, &down})
		s := r.open("s")
		<-time.After(2 * host.DefaultLeaseTTL)
		time.AfterFunc(time.Minute, func() {
			if err := s.Cancel("enough"); err != nil {
				t.Error(err)
			}
		})
		p := &script{answers: []any{say("a")}}
		began := time.Now()
		_, err := s.Run(context.Background(), r.spec(p, 1, 1))
		if took := time.Since(began); !errors.Is(err, host.ErrCancelled) || took != time.Minute || p.calls.Load() != 0 {
			t.Errorf("got %v after %v and %d calls, want ErrCancelled after 1m0s and none", err, took, p.calls.Load())
		}
	})
}

func TestAnOwnerLearnsFromItsLeaseThatItIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		a, b := mem.Open(), mem.Open()
		t.Cleanup(func() { _, _ = a.Close(), b.Close() })
		r, other := newRig(t, a), newRig(t, b)
		s := r.open("s")
		p := &script{answers: []any{takes(time.Hour, say("a"))}}
		taken := make(chan struct{})
		time.AfterFunc(time.Minute, func() {
			defer close(taken)
			if _, err := other.host.TakeOver(context.Background(), "s", "it hangs"); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		_, err := s.Run(context.Background(), r.spec(p, 1, 1))
		<-taken
		if took := time.Since(began); !host.IsFenced(err) || took > time.Minute+host.DefaultRenewEvery {
			t.Errorf("got %v after %v, want fenced within a renewal of the take-over (L-21)", err, took)
		}
		if n := r.count(host.EventFenced); n != 1 {
			t.Errorf("got %d fenced events, want 1", n)
		}
	})
}

// The provider is told to end and takes its time: what happens meanwhile finds the
// machine at its end already.
func TestWhatComesAfterTheFenceChangesNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(s *host.Session, leave context.CancelFunc)
	}{
		{"a stop", func(s *host.Session, _ context.CancelFunc) { _ = s.Stop("late") }},
		{"the caller leaves", func(_ *host.Session, leave context.CancelFunc) { leave() }},
		{"the wall time", func(*host.Session, context.CancelFunc) { <-time.After(time.Hour) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				s := r.open("s")
				other := newRig(t, r.store)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				p := &script{answers: []any{func(ctx context.Context) (pluginapi.Message, error) {
					if _, err := other.host.TakeOver(context.Background(), "s", "it hangs"); err != nil {
						t.Error(err)
					}
					<-ctx.Done() // the lease tells of the take-over
					c.then(s, leave)
					synctest.Wait()
					return pluginapi.Message{}, ctx.Err()
				}}}
				spec := r.spec(p, 2, 4)
				spec.Timeout = 30 * time.Minute
				_, err := s.Run(ctx, spec)
				if !host.IsFenced(err) {
					t.Errorf("got %v, want fenced", err)
				}
				if n := r.count(host.EventFenced); n != 1 {
					t.Errorf("got %d fenced events, want 1", n)
				}
			})
		})
	}
}
