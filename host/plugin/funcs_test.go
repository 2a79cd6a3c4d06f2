package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func TestGoCodeSaysThatNothingHoldsItBack(t *testing.T) {
	specs := []pluginapi.ToolSpec{{Name: "read"}}
	tool := plugin.FuncTool{Name: "n", Tools: specs}
	want := plugin.Info{Name: "n", Isolation: "none"}
	for _, got := range []plugin.Info{plugin.FuncHook{Name: "n"}.Info(), plugin.FuncProvider{Name: "n"}.Info(), tool.Info()} {
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if got := tool.Specs(); len(got) != 1 || got[0].Name != "read" {
		t.Errorf("got %+v, want the tool's own", got)
	}
}

func TestAFuncHookCannotChangeTheHostsDocument(t *testing.T) {
	doc := []byte(`{"text":"x"}`)
	h := hook("h", pluginapi.HookDecl{Point: pluginapi.BeforePrompt}, func(_ context.Context, _ plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error) {
		clear(in.Document)
		return pluginapi.Decision{Action: pluginapi.Continue}, nil
	})
	if _, err := chain(t, h).Run(t.Context(), env, pluginapi.BeforePrompt, doc); err != nil {
		t.Fatal(err)
	}
	if string(doc) != `{"text":"x"}` {
		t.Errorf("got %q, want the document as it was", doc)
	}
}

func TestWhatErrorsOfGoCodeBecome(t *testing.T) {
	plain := errors.New("boom")
	failure := &pluginapi.Failure{Kind: pluginapi.FailAuth, Message: "m"}
	fault := &plugin.Fault{Plugin: "n", Kind: plugin.FaultCrash}
	cases := []struct {
		name  string
		err   error
		panic any
		// The fault's kind, the failure's kind, or the error itself.
		hook, provider, tool any
	}{
		{"a plain error", plain, nil, plugin.FaultTrap, pluginapi.FailInternal, pluginapi.FailInternal},
		{"a deadline of its own", context.DeadlineExceeded, nil, plugin.FaultTimeout, pluginapi.FailInternal, pluginapi.FailInternal},
		{"a typed error", failure, nil, failure, failure, failure},
		{"a fault", fault, nil, fault, fault, fault},
		{"a panic with a text", nil, "ouch", plugin.FaultTrap, plugin.FaultTrap, plugin.FaultTrap},
		{"a panic with an error", nil, plain, plugin.FaultTrap, plugin.FaultTrap, plugin.FaultTrap},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			end := func() error {
				if c.panic != nil {
					panic(c.panic)
				}
				return c.err
			}
			wantError(t, "hook", runHook(t.Context(), end), c.hook)
			wantError(t, "provider", runProvider(t.Context(), end), c.provider)
			wantError(t, "tool", runTool(t.Context(), end), c.tool)
		})
	}
}

func TestTheEndOfContextKeepsItsIdentity(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("cancelled by the operator")
	cancel(cause)
	for _, err := range []error{context.Canceled, cause} {
		end := func() error { return err }
		wantError(t, "hook", runHook(ctx, end), err)
		wantError(t, "provider", runProvider(ctx, end), err)
		wantError(t, "tool", runTool(ctx, end), err)
	}
}

func TestFuncToolAndFuncHookCountTheirBytes(t *testing.T) {
	tool := plugin.FuncTool{Name: "t", Fn: func(context.Context, plugin.Session, pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
		return pluginapi.ToolOutput{Text: "abc"}, nil
	}}
	out, stats, err := tool.Call(t.Context(), plugin.Session{}, pluginapi.ToolCall{Arguments: json.RawMessage(`{}`)})
	if err != nil || out.Text != "abc" || stats.BytesIn != 2 || stats.BytesOut != 3 || stats.Duration < 0 {
		t.Errorf("tool: got %+v, %+v, %v", out, stats, err)
	}
	h := hook("h", pluginapi.HookDecl{Point: pluginapi.BeforeTool}, answers(pluginapi.Decision{Action: pluginapi.Deny, Reason: "no"}))
	d, stats, err := h.Run(t.Context(), plugin.Session{}, &pluginapi.HookInput{Document: json.RawMessage(`{"a":1}`)})
	if err != nil || d.Action != pluginapi.Deny || stats.BytesIn != 7 || stats.BytesOut != 2 {
		t.Errorf("hook: got %+v, %+v, %v", d, stats, err)
	}
}

func TestFuncProviderEndsWithEmitsError(t *testing.T) {
	full := errors.New("listener gone")
	p := plugin.FuncProvider{Name: "p", Fn: func(_ context.Context, _ plugin.Session, _ *plugin.Request, emit func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
		for range 3 {
			_ = emit(pluginapi.Chunk{Type: pluginapi.ChunkText, Text: "a"})
		}
		return &pluginapi.ProviderResult{Finish: pluginapi.FinishStop}, nil
	}}
	emitted := 0
	result, err := p.Complete(t.Context(), plugin.Session{}, &plugin.Request{}, func(pluginapi.Chunk) error {
		emitted++
		return full
	})
	if err != full || result != nil || emitted != 1 {
		t.Errorf("got %+v, %v after %d chunks, want %v after one", result, err, emitted, full)
	}
	result, err = p.Complete(t.Context(), plugin.Session{}, &plugin.Request{}, func(pluginapi.Chunk) error { return nil })
	if err != nil || result == nil || result.Finish != pluginapi.FinishStop {
		t.Errorf("got %+v, %v, want the answer", result, err)
	}
}

func TestFuncProviderWithoutAnAnswerIsEmpty(t *testing.T) {
	wantError(t, "provider", runProvider(t.Context(), func() error { return nil }), pluginapi.FailEmpty)
}

func runHook(ctx context.Context, end func() error) error {
	h := plugin.FuncHook{Name: "n", Fn: func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
		return pluginapi.Decision{}, end()
	}}
	_, _, err := h.Run(ctx, plugin.Session{}, &pluginapi.HookInput{})
	return err
}

func runProvider(ctx context.Context, end func() error) error {
	p := plugin.FuncProvider{Name: "n", Fn: func(context.Context, plugin.Session, *plugin.Request, func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
		return nil, end()
	}}
	_, err := p.Complete(ctx, plugin.Session{}, &plugin.Request{}, func(pluginapi.Chunk) error { return nil })
	return err
}

func runTool(ctx context.Context, end func() error) error {
	tool := plugin.FuncTool{Name: "n", Fn: func(context.Context, plugin.Session, pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
		return pluginapi.ToolOutput{}, end()
	}}
	_, _, err := tool.Call(ctx, plugin.Session{}, pluginapi.ToolCall{})
	return err
}

func wantError(t *testing.T, what string, err error, want any) {
	t.Helper()
	switch want := want.(type) {
	case plugin.FaultKind:
		if fault, ok := errors.AsType[*plugin.Fault](err); !ok || fault.Kind != want || fault.Plugin != "n" {
			t.Errorf("%s: got %v, want a fault of kind %s", what, err, want)
		}
	case pluginapi.FailureKind:
		if failure, ok := errors.AsType[*pluginapi.Failure](err); !ok || failure.Kind != want {
			t.Errorf("%s: got %v, want a failure of kind %s", what, err, want)
		}
	default:
		if err != want {
			t.Errorf("%s: got %v, want %v itself", what, err, want)
		}
	}
}
