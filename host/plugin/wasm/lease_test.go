package wasm

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func inSession(id string) plugin.Session {
	return plugin.Session{Info: pluginapi.SessionInfo{ID: id}}
}

func lease(l pluginapi.Lease) func(*pluginapi.Manifest) {
	return func(m *pluginapi.Manifest) { m.Lease = l }
}

func TestFreshInstancesServeOnce(t *testing.T) {
	p := load(t, Config{}, Grants{}, lease(pluginapi.LeaseFresh))
	for range 3 {
		if got := ask(t, p, "calls", ""); got != "1" {
			t.Errorf("got call number %s of its instance, want 1", got)
		}
	}
}

func TestPooledInstancesAreRecycled(t *testing.T) {
	p := load(t, Config{Limits: Limits{RecycleCalls: 2}}, Grants{}, nil)
	for i, want := range []string{"1", "2", "1", "2", "1"} {
		if got := ask(t, p, "calls", ""); got != want {
			t.Errorf("call %d: got number %s of its instance, want %s", i, got, want)
		}
	}
	p = load(t, Config{Limits: Limits{RecycleMemory: 24 << 20}}, Grants{}, nil)
	ask(t, p, "keep", "1")
	if got := ask(t, p, "keep", "28"); got != "kept" {
		t.Fatal(got)
	}
	if got := ask(t, p, "calls", ""); got != "1" {
		t.Errorf("got call number %s of an instance that had grown over the mark, want 1", got)
	}
}

func TestSessionsKeepTheirInstance(t *testing.T) {
	p := load(t, Config{Limits: Limits{Sessions: 2}}, Grants{}, lease(pluginapi.LeaseSession))
	check := func(session, want string) {
		t.Helper()
		if got := askIn(t, p, inSession(session), "calls", ""); got != want {
			t.Errorf("session %s: got call number %s of its instance, want %s", session, got, want)
		}
	}
	check("a", "1")
	check("b", "1")
	check("a", "2")
	p.EndSession("a")
	p.EndSession("unknown")
	check("a", "1")
	check("b", "2")
	check("c", "1") // the third session: a is idle for longest and goes
	check("b", "3")
	check("a", "1")
	if n := len(p.sessions); n != 2 {
		t.Errorf("%d sessions have instances, want 2", n)
	}
	if _, err := hook(t.Context(), p, "panic", ""); err == nil {
		t.Error("no fault")
	}
	if got := ask(t, p, "calls", ""); got != "1" {
		t.Errorf("got call number %s after a panic, want 1", got)
	}
}

func TestCallsOfOneSessionTakeTurns(t *testing.T) {
	p := load(t, Config{}, Grants{}, lease(pluginapi.LeaseSession))
	var wg sync.WaitGroup
	seen := make([]string, 20)
	for i := range seen {
		wg.Go(func() {
			out, _, err := p.Tool().Call(t.Context(), session, pluginapi.ToolCall{Arguments: command("calls", "")})
			if err != nil {
				t.Error(err)
			}
			seen[i] = out.Text
		})
	}
	wg.Wait()
	numbers := map[string]bool{}
	for _, s := range seen {
		numbers[s] = true
	}
	if len(numbers) != len(seen) {
		t.Errorf("got the call numbers %v, want each of 1 to %d: one instance, one call at a time", seen, len(seen))
	}
}

func TestPooledCallsRunSideBySide(t *testing.T) {
	p := load(t, Config{Limits: Limits{Concurrent: 3, Idle: 2}}, Grants{}, nil)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			arg := strconv.Itoa(i)
			d, err := hook(t.Context(), p, "checksum", arg)
			want := checksum(encode(t, &pluginapi.HookInput{Point: pluginapi.BeforeTool, Session: session.Info, Document: command("checksum", arg)}))
			if err != nil || d.Reason != want {
				t.Errorf("call %d: got %q, %v; want %q", i, d.Reason, err, want)
			}
		})
	}
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n == 0 || n > 2 {
		t.Errorf("%d instances are idle, want 1 or 2", n)
	}
}

func TestBusyInstancesMakeCallersWaitNoLongerThanTheirLimit(t *testing.T) {
	p := load(t, Config{Limits: Limits{Concurrent: 1, HookTimeout: 50 * time.Millisecond}}, Grants{Clock: true}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	started := make(chan struct{})
	go func() {
		_, err := p.Provider().Complete(ctx, session, request("drip", ""), func(pluginapi.Chunk) error { close(started); return nil })
		done <- err
	}()
	<-started
	_, err := hook(t.Context(), p, "calls", "")
	wantFault(t, err, plugin.FaultTimeout)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCloseEndsRunningCalls(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	done := make(chan error)
	started := make(chan struct{})
	go func() {
		_, err := p.Provider().Complete(context.Background(), session, request("drip", ""), func(pluginapi.Chunk) error { close(started); return nil })
		done <- err
	}()
	<-started
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
	if _, err := hook(t.Context(), p, "", ""); !errors.Is(err, ErrClosed) {
		t.Errorf("a call after Close: got %v, want %v", err, ErrClosed)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	p.EndSession("a")
}

func TestRuntimeClosed(t *testing.T) {
	r := newRuntime(t, Config{})
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := r.Load(t.Context(), Module{Wasm: goGuest(t), SidecarManifest: encode(t, manifest())})
	if !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
}

// stuck is a log that takes as long as the test wants, so that a guest does not
// return when it is told to.
type stuck struct {
	slog.Handler
	release chan struct{}
}

func (s stuck) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "plugin says" {
		<-s.release
	}
	return nil
}

func TestCallersAreFreeWhenTheGuestIsNot(t *testing.T) {
	const limit = 200 * time.Millisecond
	release := make(chan struct{})
	log := slog.New(stuck{slog.Default().Handler(), release})
	p := load(t, Config{Logger: log, Limits: Limits{HookTimeout: limit}}, Grants{}, nil)
	for i := range 2 {
		start := time.Now()
		_, err := hook(t.Context(), p, "log", "x")
		// The promise is 50 ms; a machine that runs other tests may take longer to wake us.
		if d := time.Since(start); d > limit+time.Second {
			t.Errorf("call %d: the caller was free after %v, want soon after %v", i, d, limit)
		}
		wantFault(t, err, plugin.FaultTimeout)
	}
	_, err := hook(t.Context(), p, "", "")
	wantFault(t, err, plugin.FaultDisabled)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closing while guests run: got %v, want %v", err, context.DeadlineExceeded)
	}
	close(release)
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("closing after they returned: %v", err)
	}
}

func TestUnmeteredInstancesAreUsedAgain(t *testing.T) {
	p, err := loadTiny(t, tiny{call: answer204(), plain: true}, Config{}, Grants{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := p.idle[0]
	for range 3 {
		if _, err := hook(t.Context(), p, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.idle) != 1 || p.idle[0] != first || first.served != 3 {
		t.Errorf("%d instances are idle, the first served %d calls; want one that served all 3", len(p.idle), first.served)
	}
}

func TestClosingTheRuntimeWhileModulesLoad(t *testing.T) {
	for range 5 {
		r := newRuntime(t, Config{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				p, err := r.Load(t.Context(), Module{Wasm: goGuest(t), SidecarManifest: encode(t, manifest())})
				if err != nil && !errors.Is(err, ErrClosed) {
					t.Errorf("got %v, want %v or nothing", err, ErrClosed)
				}
				if err == nil {
					if _, err := hook(t.Context(), p, "", ""); err != nil && !errors.Is(err, ErrClosed) {
						t.Errorf("got %v, want %v or nothing", err, ErrClosed)
					}
				}
			})
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}
