package wasm

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/loophost/loophost/host/plugin"
)

func TestManyCallersStartNoMoreInstancesThanMayRunAtOnce(t *testing.T) {
	const callers, calls = 64, 40
	p := load(t, Config{}, Grants{}, nil)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range calls {
				if _, err := hook(t.Context(), p, "calls", ""); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got, most := p.booted.Load(), int64(p.limits.Concurrent); got > most {
		t.Errorf("%d calls of %d callers started %d instances, want at most the %d that may run at once", callers*calls, callers, got, most)
	}
}

func TestInstancesThatNobodyNeedsGo(t *testing.T) {
	p := load(t, Config{Limits: Limits{IdleTime: time.Hour}}, Grants{}, nil)
	var all []*instance
	for range 4 {
		in, err := p.lease(t.Context(), "", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, in)
	}
	for _, in := range all {
		p.giveBack(in, false, true)
	}
	idle := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.idle)
	}
	if n := idle(); n != 4 {
		t.Fatalf("%d instances are idle, want 4", n)
	}
	p.lookAtIdle() // the first look only counts: all were needed since the instances came
	if n := idle(); n < 1 {
		t.Fatalf("%d instances are idle after the first look", n)
	}
	for range 3 {
		ask(t, p, "calls", "")
		p.lookAtIdle()
	}
	if n := idle(); n != 1 {
		t.Errorf("%d instances are idle after calls that needed one at a time, want 1", n)
	}
	if got := ask(t, p, "calls", ""); got == "1" {
		t.Error("the warmest instance is gone")
	}
}

func TestAPluginIsOnAgainWhenItsLateCallsHaveEnded(t *testing.T) {
	release := make(chan struct{})
	log := slog.New(stuck{slog.Default().Handler(), release})
	p := load(t, Config{Logger: log, Limits: Limits{HookTimeout: 100 * time.Millisecond}}, Grants{}, nil)
	for range maxAbandoned {
		_, err := hook(t.Context(), p, "log", "x")
		wantFault(t, err, plugin.FaultTimeout)
	}
	_, err := hook(t.Context(), p, "calls", "")
	wantFault(t, err, plugin.FaultDisabled)
	close(release)
	for {
		p.mu.Lock()
		out := p.abandoned
		p.mu.Unlock()
		if out == 0 {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the guests did not return")
		case <-time.After(time.Millisecond):
		}
	}
	for {
		_, err := hook(t.Context(), p, "calls", "")
		if err == nil {
			return
		}
		wantFault(t, err, plugin.FaultStart) // a busy machine may need more than the test's short limit to start one
	}
}
