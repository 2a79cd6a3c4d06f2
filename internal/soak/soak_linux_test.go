package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/plugins/bundled"
)

var (
	soakTime = flag.Duration("soak", 3*time.Second, "how long the sessions are kept busy")
	sessions = flag.Int("sessions", 64, "how many sessions run at once")
)

// cache is a folder of compiled code for all tests.
var cache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "loophost-soak-")
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	cache = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			println(err.Error())
			code = 1
		}
		os.Exit(code)
	}))
}

// script asks for a tool and then answers, in every iteration.
const script = `{"script": {"steps": [{"tool_calls": [{"name": "count_words", "arguments": {"text": "one two"}}]}, {"text": "done"}], "repeat": true}}`

// guests are the plugins of all sessions.
type guests struct {
	runtime  *wasm.Runtime
	provider plugin.Provider
	tools    []plugin.Tool
	hooks    []plugin.Hook
}

func load(t *testing.T) guests {
	t.Helper()
	// Patient, since 64 sessions on a busy machine are slow: here deadlines are not
	// what is looked at. With few instances the pools are full after the warm-up.
	limits := wasm.Limits{HookTimeout: 5 * time.Minute, StartTimeout: 5 * time.Minute, Concurrent: 4, Idle: 4}
	r, err := wasm.New(t.Context(), wasm.Config{CacheDir: cache, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	one := func(name, config string) *wasm.Plugin {
		module, err := bundled.Module(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Load(t.Context(), wasm.Module{Path: name, Wasm: module, Config: json.RawMessage(config), Grants: wasm.Grants{KV: true, Clock: true, Random: true}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	scripted := one("scripted", script)
	return guests{
		runtime: r, provider: scripted.Provider(), tools: []plugin.Tool{scripted.Tool()},
		hooks: []plugin.Hook{
			one("tool-guard", `{"rules": [{"tool": "write_*", "action": "deny"}]}`).Hook(),
			one("stop-when", `{"pattern": "never said"}`).Hook(),
			one("redact", "").Hook(),
		},
	}
}

// loopsOfASession is how many loops a session has before it is deleted: then its
// size says nothing about a leak.
const loopsOfASession = 5

// warmLoops is how many loops each session has at least before memory is looked at first.
// A guest collects its garbage when there are 4 MiB of it, after about 2,000 calls: until
// then its instance grows. No multiple of loopsOfASession: every session is there then.
const warmLoops = 33

// slack is by how much the pools' fill may differ between two looks. What leaks
// once a loop is at least *sessions more at the end.
const slack = 16

// runOnce runs one loop in the session and looks at its ending. The last loop of
// a session deletes it.
func (g guests) runOnce(ctx context.Context, h *host.Host, id string, nth int) error {
	s, err := h.Open(ctx, host.OpenRequest{ID: id})
	if err != nil {
		return err
	}
	r, err := s.Run(ctx, host.RunSpec{
		Objective: "keep busy", Iterations: 2, Rounds: 8, Provider: g.provider, Tools: g.tools, Hooks: g.hooks,
	})
	if err := errors.Join(err, s.Close(ctx)); err != nil {
		return err
	}
	if r.Status != loop.Completed || r.RoundsStarted != 4 {
		return fmt.Errorf("session %s ended %s after %d rounds; want completed after 4", id, r.Status, r.RoundsStarted)
	}
	if nth%loopsOfASession == loopsOfASession-1 {
		return h.Delete(ctx, id)
	}
	return nil
}

// keepBusy lets every session run loops until the time is over, and at least so many.
func (g guests) keepBusy(t *testing.T, h *host.Host, d time.Duration, least int) (loops int64) {
	t.Helper()
	over := time.Now().Add(d)
	var done atomic.Int64
	var wg sync.WaitGroup
	for i := range *sessions {
		wg.Go(func() {
			for nth := 0; nth < least || time.Now().Before(over); nth++ {
				if err := g.runOnce(t.Context(), h, fmt.Sprintf("session %d", i), nth); err != nil {
					t.Errorf("session %d, loop %d: %v", i, nth, err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return done.Load()
}

func TestManySessionsAtOnceLeaveNothingBehind(t *testing.T) {
	startPoller(t)
	started := measure(t)
	g := load(t)
	dir := t.TempDir()
	if _, err := os.Stat("/dev/shm"); err == nil { // the plugins are what is kept busy, not a disk
		if dir, err = os.MkdirTemp("/dev/shm", "soak-"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}()
	}
	st, err := fs.Open(fs.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(host.Config{Store: st, Owner: "soak"})
	if err != nil {
		t.Fatal(err)
	}
	// A fifth of the time fills the pools: of instances, of buffers, of open records.
	warmed := g.keepBusy(t, h, *soakTime/5, warmLoops)
	warm := measure(t)
	loops := g.keepBusy(t, h, *soakTime, 1)
	end := measure(t)
	t.Logf("%d sessions, %d loops to warm up, then %d loops of 4 rounds in %s", *sessions, warmed, loops, *soakTime)
	t.Logf("warm: %v", warm)
	t.Logf("end:  %v (%+.1f %% RSS)", end, 100*(float64(end.RSS)/float64(warm.RSS)-1))
	if loops < int64(*sessions) {
		t.Errorf("only %d loops ended", loops)
	}
	if end.Goroutines > warm.Goroutines+slack || end.Descriptors > warm.Descriptors+slack || end.Mappings > warm.Mappings+4*slack {
		t.Errorf("at the end there are %v, when warm there were %v", end, warm)
	}
	// Allocators keep some of what a burst took.
	if limit := warm.RSS + warm.RSS/10 + 8<<20; end.RSS > limit {
		t.Errorf("at the end the process has %d bytes, want at most %d", end.RSS, limit)
	}
	report, err := st.Check(t.Context(), store.SessionKey("session 0"))
	if err != nil && !errors.Is(err, store.ErrNotFound) || len(report.Findings) > 0 {
		t.Errorf("check: %+v, %v", report, err)
	}
	if err := errors.Join(g.runtime.Close(t.Context()), st.Close()); err != nil {
		t.Fatal(err)
	}
	closed := measure(t)
	t.Logf("closed: %v, before: %v", closed, started)
	if closed.Goroutines > started.Goroutines || closed.Descriptors > started.Descriptors {
		t.Errorf("closed there are %v, at the start there were %v; open are %q", closed, started, descriptors(t))
	}
}

func TestTenThousandCallsOfAPluginTakeNoMoreMemoryThanAThousand(t *testing.T) {
	g := load(t)
	info := pluginapi.SessionInfo{ID: "s"}
	in := &pluginapi.HookInput{Point: pluginapi.BeforeTool, Session: info, Document: pluginapi.Raw(`{"id":"call-1","name":"read_file","arguments":{"path":"a"}}`)}
	hook, tool := g.hooks[0], g.tools[0]
	calls := func(n int) {
		for range n {
			if _, _, err := hook.Run(t.Context(), plugin.Session{Info: info}, in); err != nil {
				t.Fatal(err)
			}
			if _, _, err := tool.Call(t.Context(), plugin.Session{Info: info}, pluginapi.ToolCall{ID: "c", Name: "count_words", Arguments: pluginapi.Raw(`{"text":"a b"}`)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	calls(1_000 / slowdown)
	early := measure(t)
	calls(9_000 / slowdown)
	late := measure(t)
	t.Logf("after 1,000 calls: %v; after 10,000: %v (%+.1f %% RSS)", early, late, 100*(float64(late.RSS)/float64(early.RSS)-1))
	if late.RSS > early.RSS+early.RSS/10 || late.Goroutines > early.Goroutines || late.Descriptors > early.Descriptors || late.Mappings > early.Mappings {
		t.Errorf("got %v after 10,000 calls, %v after 1,000; want at most 10 %% more memory and nothing else", late, early)
	}
	if err := g.runtime.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
