package host_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/pluginapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a provider that answers from a list, then repeats the last answer.
type script struct {
	answers []any // pluginapi.Message, error or func(ctx) (pluginapi.Message, error)
	calls   atomic.Int64
	mu      sync.Mutex
	seen    []pluginapi.ProviderRequest
}

func say(text string) pluginapi.Message { return pluginapi.Message{Text: text} }

func useTool(name string, args string) pluginapi.Message {
	return pluginapi.Message{ToolCalls: []pluginapi.ToolCall{{ID: "c", Name: name, Arguments: json.RawMessage(args)}}}
}

func (p *script) Info() plugin.Info { return plugin.Info{Name: "script", Isolation: "none"} }

func (p *script) Complete(ctx context.Context, _ plugin.Session, req *plugin.Request, emit func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
	n := p.calls.Add(1)
	p.mu.Lock()
	p.seen = append(p.seen, req.ProviderRequest)
	p.mu.Unlock()
	a := p.answers[min(int(n), len(p.answers))-1]
	if f, ok := a.(func(context.Context) (pluginapi.Message, error)); ok {
		m, err := f(ctx)
		if err != nil {
			return nil, err
		}
		a = m
	}
	if err, ok := a.(error); ok {
		return nil, err
	}
	m := a.(pluginapi.Message)
	m.ToolCalls = append([]pluginapi.ToolCall(nil), m.ToolCalls...)
	if m.Text != "" {
		if err := emit(pluginapi.Chunk{Type: pluginapi.ChunkText, Text: m.Text}); err != nil {
			return nil, err
		}
	}
	one := uint64(1)
	return &pluginapi.ProviderResult{Message: m, Finish: pluginapi.FinishStop, Usage: &pluginapi.Usage{InputTokens: &one, OutputTokens: &one}}, nil
}

// rig is a host over one store, with everything it emitted.
type rig struct {
	t      *testing.T
	store  store.Store
	host   *host.Host
	mu     sync.Mutex
	events []host.Event
}

func newRig(t *testing.T, st store.Store) *rig {
	t.Helper()
	if st == nil {
		st = memstore.New().Open()
		t.Cleanup(func() { _ = st.Close() })
	}
	h, err := host.New(host.Config{Store: st, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, store: st, host: h}
}

func (r *rig) open(id string) *host.Session {
	r.t.Helper()
	s, err := r.host.Open(context.Background(), host.OpenRequest{ID: id})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			r.t.Errorf("close: %v", err)
		}
	})
	return s
}

func (r *rig) spec(p plugin.Provider, k, rounds int64) host.RunSpec {
	return host.RunSpec{Objective: "do it", Iterations: k, Rounds: rounds, Provider: p, Observer: r.observe}
}

func (r *rig) observe(e host.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *rig) count(t host.EventType) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Type == t {
			n++
		}
	}
	return n
}

// stored is the session's head as another handle would read it.
func (r *rig) stored(id string) host.Head {
	r.t.Helper()
	v, err := r.host.Show(context.Background(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return v.Head
}

func (r *rig) messages(id string) []pluginapi.Message {
	r.t.Helper()
	page, err := r.host.Log(context.Background(), id, 1, 10_000)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []pluginapi.Message
	for _, item := range page.Items {
		if item.Entry.Message != nil {
			out = append(out, *item.Entry.Message)
		}
	}
	return out
}

type counters struct{ started, completed, rounds uint32 }

func of(l *loop.State) counters {
	return counters{l.IterationsStarted, l.IterationsCompleted, l.RoundsStarted}
}

func echoTool(calls *atomic.Int64) plugin.FuncTool {
	return plugin.FuncTool{
		Name:  "echo",
		Tools: []pluginapi.ToolSpec{{Name: "echo", Description: "says it again", InputSchema: json.RawMessage(`{"type":"object"}`)}},
		Fn: func(_ context.Context, _ plugin.Session, call pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			calls.Add(1)
			return pluginapi.ToolOutput{Text: string(call.Arguments)}, nil
		},
	}
}

func hook(name string, point pluginapi.HookPoint, fn func(in *pluginapi.HookInput) pluginapi.Decision) plugin.FuncHook {
	return plugin.FuncHook{
		Name: name, Decls: []pluginapi.HookDecl{{Point: point}},
		Fn: func(_ context.Context, _ plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error) {
			return fn(in), nil
		},
	}
}

func within(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not happen", what)
	}
}
