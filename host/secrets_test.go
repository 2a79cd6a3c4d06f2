package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// secret is what no store, event or reason may hold once a hook rewrites it.
const secret = "hunter2-the-password"

// redactor rewrites a point's document, replacing the secret.
func redactor(name string, order int, points ...pluginapi.HookPoint) plugin.FuncHook {
	h := plugin.FuncHook{Name: name, Fn: func(_ context.Context, _ plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error) {
		doc := bytes.ReplaceAll(in.Document, []byte(secret), []byte("[redacted]"))
		return pluginapi.Decision{Action: pluginapi.Mutate, Document: doc}, nil
	}}
	for _, p := range points {
		h.Decls = append(h.Decls, pluginapi.HookDecl{Point: p, Mutates: true, Order: order})
	}
	return h
}

// raw is everything that the store holds of a session, as bytes.
func (r *rig) raw(id string) string {
	r.t.Helper()
	ctx := context.Background()
	rec, err := r.store.Load(ctx, store.SessionKey(id))
	if err != nil {
		r.t.Fatal(err)
	}
	var b bytes.Buffer
	b.Write(rec.Head)
	for from := uint64(1); from <= rec.LogLength; {
		page, err := r.store.ReadLog(ctx, rec.Key, from, 0)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range page.Entries {
			b.WriteByte('\n')
			b.Write(e.Data)
			from = e.Seq + 1
		}
	}
	return b.String()
}

func (r *rig) wantNoSecret(id string) {
	r.t.Helper()
	for _, line := range strings.Split(r.raw(id), "\n") {
		if strings.Contains(line, secret) {
			r.t.Errorf("the store holds the original: %s", line)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		data, err := json.Marshal(e)
		if err != nil {
			r.t.Fatal(err)
		}
		if bytes.Contains(data, []byte(secret)) {
			r.t.Errorf("an event holds the original: %s", data)
		}
	}
}

func TestOriginalsThatAHookRewritesAreNeverStored(t *testing.T) {
	tellTool := plugin.FuncTool{
		Name: "tell", Tools: []pluginapi.ToolSpec{{Name: "tell", InputSchema: json.RawMessage(`{"type":"object"}`)}},
		Fn: func(context.Context, plugin.Session, pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			return pluginapi.ToolOutput{Text: "it is " + secret}, nil
		},
	}
	asks := useTool("tell", `{"with":"`+secret+`"}`)
	twice := pluginapi.Message{ToolCalls: []pluginapi.ToolCall{
		{ID: "a", Name: "tell", Arguments: json.RawMessage(`{"n":1,"with":"` + secret + `"}`)},
		{ID: "b", Name: "tell", Arguments: json.RawMessage(`{"n":2,"with":"` + secret + `"}`)},
	}}
	decide := func(point pluginapi.HookPoint, d pluginapi.Decision) plugin.Hook {
		return hook("decider", point, func(*pluginapi.HookInput) pluginapi.Decision { return d })
	}
	abort := pluginapi.Decision{Action: pluginapi.Abort, Reason: "no"}
	deny := pluginapi.Decision{Action: pluginapi.Deny, Reason: "no"}
	tests := []struct {
		name      string
		objective string
		answers   []any
		hooks     []plugin.Hook
		fails     bool
	}{
		{"the prompt", "do it with " + secret, []any{say("done")}, []plugin.Hook{redactor("r", 0, pluginapi.BeforePrompt)}, false},
		{"a prompt that a hook then denies", "do it with " + secret, []any{say("done")}, []plugin.Hook{redactor("r", 1, pluginapi.BeforePrompt), decide(pluginapi.BeforePrompt, deny)}, true},
		{"an answer", "do it", []any{say("it is " + secret)}, []plugin.Hook{redactor("r", 0, pluginapi.AfterProvider)}, false},
		{"an answer whose hooks abort", "do it", []any{say("it is " + secret)}, []plugin.Hook{redactor("r", 1, pluginapi.AfterProvider), decide(pluginapi.AfterProvider, abort)}, true},
		{"a tool's arguments and result", "do it", []any{asks, say("done")}, []plugin.Hook{redactor("r", 0, pluginapi.BeforeTool, pluginapi.AfterTool)}, false},
		{"arguments of a call that is denied before its rewriting hook ran", "do it", []any{asks, say("done")}, []plugin.Hook{redactor("r", 1, pluginapi.BeforeTool), decide(pluginapi.BeforeTool, deny)}, false},
		{"arguments of calls that an abort keeps from their rewriting hook", "do it", []any{twice, say("done")}, []plugin.Hook{redactor("r", 1, pluginapi.BeforeTool), decide(pluginapi.BeforeTool, abort)}, true},
		{"arguments of the calls after the one that aborts", "do it", []any{twice, say("done")}, []plugin.Hook{redactor("r", 0, pluginapi.BeforeTool), hook("decider", pluginapi.BeforeTool, func(in *pluginapi.HookInput) pluginapi.Decision { return abort })}, true},
		{"a tool's result whose hooks abort", "do it", []any{asks, say("done")}, []plugin.Hook{redactor("r", 1, pluginapi.BeforeTool, pluginapi.AfterTool), decide(pluginapi.AfterTool, abort)}, true},
		{"a request, beside a prompt without it", "do it", []any{say("done")}, []plugin.Hook{redactor("r", 0, pluginapi.BeforeProvider)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			spec := r.spec(&script{answers: tt.answers}, 1, 2)
			spec.Objective, spec.Hooks, spec.Tools = tt.objective, tt.hooks, []plugin.Tool{tellTool}
			_, err := r.open("s").Run(context.Background(), spec)
			if (err != nil) != tt.fails {
				t.Fatalf("the run ended with %v, want a failure: %v", err, tt.fails)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error holds the original: %v", err)
			}
			r.wantNoSecret("s")
		})
	}
}

func TestADeniedCallThatItsRewritingHookSawKeepsItsArguments(t *testing.T) {
	r := newRig(t, nil)
	var calls atomic.Int64
	guard := hook("guard", pluginapi.BeforeTool, func(*pluginapi.HookInput) pluginapi.Decision {
		return pluginapi.Decision{Action: pluginapi.Deny, Reason: "not this one"}
	})
	guard.Decls[0].Mutates = true
	spec := r.spec(&script{answers: []any{useTool("echo", `{"path":"/etc"}`), say("done")}}, 1, 2)
	spec.Hooks, spec.Tools = []plugin.Hook{guard}, []plugin.Tool{echoTool(&calls)}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	m := r.messages("s")
	if got := string(m[1].ToolCalls[0].Arguments); got != `{"path":"/etc"}` {
		t.Errorf("stored arguments %s, want what the model asked for: an operator looks into denied calls", got)
	}
	if res := m[2].Result; res.Status != pluginapi.ResultError || !strings.Contains(res.Text, "not this one") || calls.Load() != 0 {
		t.Errorf("got result %+v after %d runs, want an error with the reason and none", res, calls.Load())
	}
}

func TestTokensOfAnAnswerThatAHookMayRewriteAreWithheld(t *testing.T) {
	r := newRig(t, nil)
	spec := r.spec(&script{answers: []any{say("it is " + secret)}}, 1, 1)
	spec.Hooks = []plugin.Hook{redactor("r", 0, pluginapi.AfterProvider)}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for _, e := range r.events {
		if e.Type == host.EventToken {
			tokens = append(tokens, e.Token.Text)
		}
	}
	if len(tokens) != 1 || tokens[0] != "it is [redacted]" {
		t.Errorf("got tokens %q, want the rewritten answer as one", tokens)
	}
}

func TestTokensStreamAsTheyComeWhereNoHookRewrites(t *testing.T) {
	r := newRig(t, nil)
	p := plugin.FuncProvider{Name: "p", Fn: func(_ context.Context, _ plugin.Session, _ *plugin.Request, emit func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
		for _, c := range []pluginapi.Chunk{{Type: pluginapi.ChunkReasoning, Text: "hm"}, {Type: pluginapi.ChunkText, Text: "a"}, {Type: pluginapi.ChunkUsage}, {Type: pluginapi.ChunkText, Text: "b"}} {
			if err := emit(c); err != nil {
				return nil, err
			}
		}
		return &pluginapi.ProviderResult{Message: say("ab"), Finish: pluginapi.FinishStop}, nil
	}}
	if _, err := r.open("s").Run(context.Background(), r.spec(p, 1, 1)); err != nil {
		t.Fatal(err)
	}
	var got []host.Token
	for _, e := range r.events {
		if e.Type == host.EventToken {
			if e.Seq != nil {
				t.Errorf("token %+v has sequence number %d; it is stored nowhere", e.Token, *e.Seq)
			}
			got = append(got, *e.Token)
		}
	}
	want := []host.Token{{Text: "hm", Reasoning: true}, {Text: "a"}, {Text: "b"}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("token %d is %v, want %v", i, got[i], want[i])
		}
	}
}
