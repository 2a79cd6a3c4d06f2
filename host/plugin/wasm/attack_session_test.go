package wasm

import (
	"context"
	"errors"
	"testing"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/pluginapi"
)

// once asks for a tool, and then is done.
func once(tool string) plugin.Provider {
	asked := false
	return plugin.FuncProvider{Name: "once", Fn: func(context.Context, plugin.Session, *plugin.Request, func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
		if asked {
			return &pluginapi.ProviderResult{Message: pluginapi.Message{Text: "done"}, Finish: pluginapi.FinishStop}, nil
		}
		asked = true
		call := pluginapi.ToolCall{ID: "1", Name: tool, Arguments: pluginapi.Raw(`{}`)}
		return &pluginapi.ProviderResult{Message: pluginapi.Message{ToolCalls: []pluginapi.ToolCall{call}}, Finish: pluginapi.FinishToolCalls}, nil
	}}
}

// outcome is what a session came to.
type outcome struct {
	status loop.Status
	code   loop.ReasonCode
	ran    bool // whether the tool ran
}

// run is a loop of one iteration over a memory store, with one hook and one tool.
func run(t *testing.T, hook plugin.Hook, tool plugin.Tool, name string) (outcome, []plugin.Record, error) {
	t.Helper()
	st := memstore.New().Open()
	defer st.Close()
	h, err := host.New(host.Config{Store: st, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Open(t.Context(), host.OpenRequest{ID: "attacked"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var records []plugin.Record
	out := outcome{}
	var hooks []plugin.Hook
	if hook != nil {
		hooks = []plugin.Hook{hook}
	}
	result, err := s.Run(t.Context(), host.RunSpec{
		Objective: "hold on", Iterations: 1, Rounds: 3, Provider: once(name), Hooks: hooks, Tools: []plugin.Tool{tool},
		Observer: func(e host.Event) {
			switch e.Type {
			case host.EventHook:
				records = append(records, *e.Hook)
			case host.EventToolFinished:
				out.ran = e.Result.Status == pluginapi.ResultOK
			}
		},
	})
	out.status, out.code = result.Status, result.ReasonCode
	return out, records, err
}

func harmless(ran *bool) plugin.Tool {
	return plugin.FuncTool{
		Name:  "tools",
		Tools: []pluginapi.ToolSpec{{Name: "echo", Description: "echoes", InputSchema: pluginapi.Raw(`{"type":"object"}`)}},
		Fn: func(context.Context, plugin.Session, pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			*ran = true
			return pluginapi.ToolOutput{Text: "echo"}, nil
		},
	}
}

// TestSessionsEndAsOnErrorSays runs a session with each attack as its before_tool
// hook: abort fails the run, deny keeps the tool from running, allow goes on; the
// default is abort for a hook that may mutate, and deny for one that may not. The
// first attack of each kind of fault goes through all of them, the others fail open.
func TestSessionsEndAsOnErrorSays(t *testing.T) {
	abort := outcome{status: loop.Failed, code: loop.ReasonHookAbort}
	deny := outcome{status: loop.Completed}
	allow := outcome{status: loop.Completed, ran: true}
	seen := map[plugin.FaultKind]bool{"": true}
	for _, a := range attacks() {
		if a.want == "" {
			continue
		}
		first := !seen[a.want]
		seen[a.want] = true
		for name, c := range map[string]struct {
			onError pluginapi.OnError
			mutates bool
			want    outcome
		}{
			"abort":                        {onError: pluginapi.OnErrorAbort, want: abort},
			"deny":                         {onError: pluginapi.OnErrorDeny, want: deny},
			"allow":                        {onError: pluginapi.OnErrorAllow, want: allow},
			"nothing, of one that mutates": {mutates: true, want: abort},
			"nothing":                      {want: deny},
		} {
			if !first && name != "allow" {
				continue
			}
			t.Run(a.name+", on_error "+name, func(t *testing.T) {
				p := a.load(t, true, func(m *pluginapi.Manifest) {
					m.Hooks = []pluginapi.HookDecl{{Point: pluginapi.BeforeTool, OnError: c.onError, Mutates: c.mutates}}
				})
				ran := false
				got, records, err := run(t, p.Hook(), harmless(&ran), "echo")
				if got != c.want || ran != c.want.ran {
					t.Errorf("got %+v (the tool ran: %v), %v; want %+v", got, ran, err, c.want)
				}
				var fault *plugin.Fault
				if c.want == abort && (!errors.As(err, &fault) || fault.Kind != a.want) {
					t.Errorf("got the error %v, want a fault of kind %s in it", err, a.want)
				}
				if c.want != abort && err != nil {
					t.Errorf("got the error %v", err)
				}
				if len(records) != 1 || records[0].Fault == "" || records[0].Plugin != "guest" || records[0].Digest != p.Info().Digest {
					t.Errorf("got the records %+v, want one that tells the fault", records)
				}
			})
		}
	}
}

// A manifest that lies gains nothing: what it does not declare is not there, and
// what it declares and can't do is a fault.
func TestManifestsThatLie(t *testing.T) {
	mutate := join(write(`{"action":"mutate","document":{"call":{"id":"1","name":"echo","arguments":{"x":1}}}}`), ic(0))
	for name, c := range map[string]struct {
		body []byte
		lie  func(*pluginapi.Manifest)
		tool string // "": the host's own
		want outcome
	}{
		"a hook that rewrites without saying so": {
			body: mutate, lie: func(m *pluginapi.Manifest) { m.Hooks[0].Mutates = false },
			want: outcome{status: loop.Completed},
		},
		"a hook that rewrites into another document": {
			body: join(write(`{"action":"mutate","document":{"text":"x"}}`), ic(0)), want: outcome{status: loop.Failed, code: loop.ReasonHookAbort},
		},
		"a hook with a decision of another point": {
			body: join(write(`{"action":"shutdown"}`), ic(0)), want: outcome{status: loop.Failed, code: loop.ReasonHookAbort},
		},
		"a hook that is a tool only": {
			body: ic(2), want: outcome{status: loop.Failed, code: loop.ReasonHookAbort},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := loadTiny(t, tiny{call: c.body}, Config{}, Grants{}, c.lie)
			if err != nil {
				t.Fatal(err)
			}
			ran := false
			got, records, err := run(t, p.Hook(), harmless(&ran), "echo")
			if got != c.want || ran {
				t.Errorf("got %+v (the tool ran: %v), %v; want %+v", got, ran, err, c.want)
			}
			if len(records) != 1 || records[0].Fault == "" {
				t.Errorf("got the records %+v, want one fault", records)
			}
		})
	}

	t.Run("a tool that it does not list", func(t *testing.T) {
		p, err := loadTiny(t, attack{body: unreachable()}.module(true), Config{}, Grants{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for tool, want := range map[string]outcome{
			"do":     {status: loop.Completed, ran: true},
			"hidden": {status: loop.Completed},
		} {
			got, _, err := run(t, nil, p.Tool(), tool)
			if got != want || err != nil {
				t.Errorf("%s: got %+v, %v; want %+v", tool, got, err, want)
			}
		}
	})

	t.Run("kinds that it does not have", func(t *testing.T) {
		p, err := loadTiny(t, tiny{call: ic(2)}, Config{}, Grants{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = complete(t.Context(), p, "", "")
		wantFault(t, err, plugin.FaultMalformed)
		_, _, err = p.Tool().Call(t.Context(), session, pluginapi.ToolCall{ID: "1", Name: "do"})
		wantFault(t, err, plugin.FaultMalformed)
	})
}
