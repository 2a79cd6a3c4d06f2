package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/pluginapi"
)

// A session that somebody took over and deleted is as lost to its old owner as
// one that somebody only took over (L-21), whichever of its calls finds out.
func TestTheOwnerOfADeletedSessionIsFenced(t *testing.T) {
	mem := memstore.New()
	a, b := mem.Open(), mem.Open()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	r, other := newRig(t, a), newRig(t, b)
	ctx := context.Background()
	p := &script{answers: []any{func(context.Context) (pluginapi.Message, error) {
		if _, err := other.host.TakeOver(ctx, "s", "it goes away"); err != nil {
			return pluginapi.Message{}, err
		}
		return say("late"), other.host.Delete(ctx, "s")
	}}}
	s := r.open("s")
	_, err := s.Run(ctx, r.spec(p, 1, 1))
	if !host.IsFenced(err) {
		t.Errorf("the run: got %v, want fenced", err)
	}
	if err := s.Checkpoint(ctx); !host.IsFenced(err) {
		t.Errorf("a checkpoint: got %v, want fenced", err)
	}
	if r.count(host.EventFenced) != 1 || r.count(host.EventFailed) != 0 || r.count(host.EventComplete) != 0 {
		t.Errorf("got the events %+v, want fenced alone at the end", r.events)
	}
	if _, err := b.Load(ctx, store.SessionKey("s")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("load: got %v, want ErrNotFound", err)
	}
}

// A text that no store takes fails its checkpoint, and the failure is stored.
func TestAnInjectedTextTooLargeToBeStoredFailsTheRunDurably(t *testing.T) {
	r := newRig(t, nil)
	p := &script{answers: []any{say("a")}}
	spec := r.spec(p, 2, 2)
	spec.Hooks = []plugin.Hook{hook("wordy", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
		return pluginapi.Decision{Action: pluginapi.Inject, Text: string(make([]byte, store.MaxEntryBytes/6+1))}
	})}
	s := r.open("s")
	_, err := s.Run(context.Background(), spec)
	failed, ok := errors.AsType[*host.CheckpointError](err)
	if !ok || failed.Unknown || !errors.Is(err, store.ErrTooLarge) {
		t.Fatalf("got %.300v, want a checkpoint failure that wraps ErrTooLarge and is settled", err)
	}
	if got := of(r.stored("s").Loop); got != (counters{2, 1, 2}) || p.calls.Load() != 1 {
		t.Errorf("got %v after %d calls, want (2, 1, 2) after 1: an attempted admission counts (L-19)", got, p.calls.Load())
	}
	if err := s.Checkpoint(context.Background()); err != nil {
		t.Errorf("a checkpoint after it: %v", err)
	}
}

func TestNewRefusesWhatItCanNotWorkWith(t *testing.T) {
	st := memstore.New().Open()
	defer st.Close()
	for name, cfg := range map[string]host.Config{
		"no store":            {},
		"a long owner":        {Store: st, Owner: string(make([]byte, 257))},
		"a negative ttl":      {Store: st, LeaseTTL: -1},
		"a negative interval": {Store: st, RenewEvery: -1},
		"a negative poll":     {Store: st, SignalPoll: -1},
		"a negative timeout":  {Store: st, StoreTimeout: -1},
		"a late renewal":      {Store: st, RenewEvery: host.DefaultLeaseTTL},
		"a lease of nothing":  {Store: st, LeaseTTL: 1},
	} {
		if h, err := host.New(cfg); err == nil || h != nil {
			t.Errorf("%s: got %v and %v, want an error", name, h, err)
		}
	}
}

func TestASpecIsCheckedBeforeAnythingIsTouched(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("s")
	before := r.raw("s")
	b := &bench{}
	for name, change := range map[string]func(*host.RunSpec){
		"no provider":          func(x *host.RunSpec) { x.Provider = nil },
		"a negative timeout":   func(x *host.RunSpec) { x.Timeout = -1 },
		"a negative drain":     func(x *host.RunSpec) { x.DrainTimeout = -1 },
		"a negative wait":      func(x *host.RunSpec) { x.MaxWait = -1 },
		"a long once key":      func(x *host.RunSpec) { x.OnceKey = string(make([]byte, host.MaxOnceKeyBytes+1)) },
		"a once key of bytes":  func(x *host.RunSpec) { x.OnceKey = "\xff" },
		"options of no object": func(x *host.RunSpec) { x.Options = []byte(`[]`) },
		"a tool twice":         func(x *host.RunSpec) { x.Tools = []plugin.Tool{b.tool(), b.tool()} },
		"a tool without a usable schema": func(x *host.RunSpec) {
			x.Tools = []plugin.Tool{plugin.FuncTool{Name: "t", Tools: []pluginapi.ToolSpec{{Name: "t", InputSchema: []byte(`{"type":1}`)}}}}
		},
		"a tool whose schema refers outside": func(x *host.RunSpec) {
			x.Tools = []plugin.Tool{plugin.FuncTool{Name: "t", Tools: []pluginapi.ToolSpec{{Name: "t", InputSchema: []byte(`{"$ref":"file:///etc/passwd"}`)}}}}
		},
		"two hooks of one name": func(x *host.RunSpec) {
			x.Hooks = []plugin.Hook{redactor("h", 0, pluginapi.BeforePrompt), redactor("h", 0, pluginapi.BeforeTool)}
		},
	} {
		p := &script{answers: []any{say("a")}}
		spec := r.spec(p, 1, 1)
		change(&spec)
		if _, err := s.Run(context.Background(), spec); err == nil || p.calls.Load() != 0 {
			t.Errorf("%s: got %v after %d provider calls, want an error before any", name, err, p.calls.Load())
		}
	}
	if r.raw("s") != before {
		t.Error("a refused spec changed the store")
	}
	if _, err := s.Run(context.Background(), r.spec(&script{answers: []any{say("a")}}, 1, 1)); err != nil {
		t.Errorf("the session does not run after refused specs: %v", err)
	}
}
