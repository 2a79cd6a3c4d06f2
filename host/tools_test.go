package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// toolCalls asks for the named tools, one call each.
func toolCalls(names ...string) pluginapi.Message {
	var m pluginapi.Message
	for i, n := range names {
		m.ToolCalls = append(m.ToolCalls, pluginapi.ToolCall{ID: fmt.Sprint("c", i+1), Name: n, Arguments: json.RawMessage(`{}`)})
	}
	return m
}

// bench is a tool plugin that reads and writes, and notes what runs beside what.
type bench struct {
	mu      sync.Mutex
	now     int // calls under way
	writing bool
	most    int // calls side by side
	clash   bool
	order   []string
	do      func(ctx context.Context, call pluginapi.ToolCall) (pluginapi.ToolOutput, error)
}

func (b *bench) tool() plugin.Tool {
	object := json.RawMessage(`{"type":"object"}`)
	return plugin.FuncTool{
		Name:  "bench",
		Tools: []pluginapi.ToolSpec{{Name: "read", InputSchema: object, ReadOnly: true}, {Name: "write", InputSchema: object}},
		Fn: func(ctx context.Context, _ plugin.Session, call pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			b.mu.Lock()
			b.now++
			b.most = max(b.most, b.now)
			b.clash = b.clash || b.writing || (call.Name == "write" && b.now > 1)
			b.writing = call.Name == "write"
			b.order = append(b.order, call.ID)
			b.mu.Unlock()
			defer func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.now--
				b.writing = false
			}()
			if b.do != nil {
				return b.do(ctx, call)
			}
			return pluginapi.ToolOutput{Text: call.ID}, nil
		},
	}
}

// results are the session's tool results as "id status".
func (r *rig) results(id string) []string {
	var out []string
	for _, m := range r.messages(id) {
		if m.Result != nil {
			out = append(out, m.Result.CallID+" "+string(m.Result.Status))
		}
	}
	return out
}

func TestCallsThatOnlyReadRunSideBySideAndWritesAlone(t *testing.T) {
	r := newRig(t, nil)
	var together sync.WaitGroup
	together.Add(3)
	b := &bench{do: func(_ context.Context, call pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
		if call.ID <= "c3" { // none of the three ends before all have begun
			together.Done()
			together.Wait()
		}
		return pluginapi.ToolOutput{Text: call.ID}, nil
	}}
	spec := r.spec(&script{answers: []any{toolCalls("read", "read", "read", "write", "write", "read"), say("done")}}, 1, 2)
	spec.Tools = []plugin.Tool{b.tool()}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	if b.most != 3 || b.clash {
		t.Errorf("got %d calls side by side, a write beside another: %v; want 3 and no", b.most, b.clash)
	}
	if d := cmp.Diff([]string{"c4", "c5", "c6"}, b.order[3:]); d != "" {
		t.Errorf("the order behind the reads (-want +got):\n%s", d)
	}
	want := []string{"c1 ok", "c2 ok", "c3 ok", "c4 ok", "c5 ok", "c6 ok"}
	if d := cmp.Diff(want, r.results("s")); d != "" {
		t.Errorf("results are not in call order (L-9) (-want +got):\n%s", d)
	}
}

func TestWhatBecomesOfAToolCall(t *testing.T) {
	tests := []struct {
		name string
		tool string
		args string
		do   func(context.Context, pluginapi.ToolCall) (pluginapi.ToolOutput, error)
		want pluginapi.ResultStatus
		text string
	}{
		{"it answers", "write", `{}`, nil, pluginapi.ResultOK, "c"},
		{"it answers with an error", "write", `{}`, func(context.Context, pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			return pluginapi.ToolOutput{Text: "no such file", IsError: true}, nil
		}, pluginapi.ResultError, "no such file"},
		{"it fails with a typed error", "write", `{}`, func(context.Context, pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			return pluginapi.ToolOutput{}, &pluginapi.Failure{Kind: pluginapi.FailInternal, Message: "disk"}
		}, pluginapi.ResultError, "disk"},
		{"it breaks in the middle", "write", `{}`, func(context.Context, pluginapi.ToolCall) (pluginapi.ToolOutput, error) { panic("boom") }, pluginapi.ResultUnknown, "boom"},
		{"it breaks in the middle and only reads", "read", `{}`, func(context.Context, pluginapi.ToolCall) (pluginapi.ToolOutput, error) { panic("boom") }, pluginapi.ResultError, "boom"},
		{"it does not start", "write", `{}`, func(context.Context, pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			return pluginapi.ToolOutput{}, &plugin.Fault{Plugin: "bench", Kind: plugin.FaultStart}
		}, pluginapi.ResultError, "start"},
		{"there is none of that name", "fly", `{}`, nil, pluginapi.ResultError, `"fly"`},
		{"its arguments are no object", "write", `[]`, nil, pluginapi.ResultError, "object"},
		{"its text is not valid UTF-8", "write", `{}`, func(context.Context, pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			return pluginapi.ToolOutput{Text: "a\xffb"}, nil
		}, pluginapi.ResultOK, "a\uFFFDb"},
		{"its text is too large to be stored", "write", `{}`, func(context.Context, pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			return pluginapi.ToolOutput{Text: strings.Repeat("\x01", store.MaxEntryBytes/6+1)}, nil
		}, pluginapi.ResultError, "too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			b := &bench{do: tt.do}
			spec := r.spec(&script{answers: []any{useTool(tt.tool, tt.args), say("done")}}, 1, 2)
			spec.Tools = []plugin.Tool{b.tool()}
			res, err := r.open("s").Run(context.Background(), spec)
			if err != nil || res.Status != loop.Completed {
				t.Fatalf("got %s and %v, want completed: a result is for the model", res.Status, err)
			}
			got := r.messages("s")[2].Result
			if got.Status != tt.want || !strings.Contains(got.Text, tt.text) {
				t.Errorf("got %s %.200q, want %s with %q", got.Status, got.Text, tt.want, tt.text)
			}
		})
	}
}

func TestACancelDuringABatchGivesEveryCallOneResult(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("s")
	b := &bench{do: func(ctx context.Context, call pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
		if call.ID == "c1" {
			return pluginapi.ToolOutput{Text: "done"}, nil
		}
		if err := s.Cancel("enough"); err != nil {
			return pluginapi.ToolOutput{}, err
		}
		<-ctx.Done()
		return pluginapi.ToolOutput{}, ctx.Err()
	}}
	spec := r.spec(&script{answers: []any{toolCalls("write", "write", "write")}}, 1, 2)
	spec.Tools = []plugin.Tool{b.tool()}
	if _, err := s.Run(context.Background(), spec); !errors.Is(err, host.ErrCancelled) {
		t.Fatalf("got %v, want ErrCancelled", err)
	}
	want := []string{"c1 ok", "c2 unknown", "c3 not_started"}
	if d := cmp.Diff(want, r.results("s")); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	if r.stored("s").Loop.Status != loop.Cancelled {
		t.Error("the loop is not cancelled")
	}
}

func TestAnAbortBeforeAToolLeavesEveryCallNotStarted(t *testing.T) {
	r := newRig(t, nil)
	b := &bench{}
	spec := r.spec(&script{answers: []any{toolCalls("write", "write")}}, 1, 2)
	spec.Tools = []plugin.Tool{b.tool()}
	n := 0
	spec.Hooks = []plugin.Hook{hook("guard", pluginapi.BeforeTool, func(*pluginapi.HookInput) pluginapi.Decision {
		if n++; n == 2 {
			return pluginapi.Decision{Action: pluginapi.Abort, Reason: "no"}
		}
		return pluginapi.Decision{Action: pluginapi.Allow}
	})}
	if _, err := r.open("s").Run(context.Background(), spec); err == nil {
		t.Fatal("got success, want the hook's abort")
	}
	if d := cmp.Diff([]string{"c1 not_started", "c2 not_started"}, r.results("s")); d != "" || len(b.order) != 0 {
		t.Errorf("%d tools ran; results (-want +got):\n%s", len(b.order), d)
	}
}

func TestAnAnswerTooLargeToBeStoredFailsTheRunDurably(t *testing.T) {
	huge := strings.Repeat("\x01", store.MaxEntryBytes/6+1) // six bytes each in JSON
	for _, tt := range []struct {
		name   string
		answer pluginapi.Message
	}{
		{"without tool calls", say(huge)},
		{"with tool calls", func() pluginapi.Message {
			m := toolCalls("write")
			m.Text = huge
			return m
		}()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			spec := r.spec(&script{answers: []any{tt.answer}}, 1, 2)
			spec.Tools = []plugin.Tool{(&bench{}).tool()}
			_, err := r.open("s").Run(context.Background(), spec)
			if failed, ok := errors.AsType[*host.FailedError](err); !ok || failed.Code != loop.ReasonHost || !errors.Is(err, store.ErrTooLarge) {
				t.Fatalf("got %.300v, want a durable failure that wraps ErrTooLarge", err)
			}
			if head := r.stored("s"); head.Loop.Status != loop.Failed || head.Runtime.Status != loop.RuntimeFailed {
				t.Errorf("stored %s/%s, want failed/failed", head.Loop.Status, head.Runtime.Status)
			}
		})
	}
}

func TestTheModelSeesTheToolsAndTheWholeConversation(t *testing.T) {
	r := newRig(t, nil)
	var calls atomic.Int64
	p := twoRounds()
	spec := r.spec(p, 2, 4)
	spec.Tools = []plugin.Tool{echoTool(&calls)}
	spec.Model, spec.System, spec.MaxTokens = "m", "s", 7
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		call     pluginapi.CallInfo
		messages int
	}{
		{pluginapi.CallInfo{Ordinal: 1, Iteration: 1, Round: 1, Attempt: 1}, 1},
		{pluginapi.CallInfo{Ordinal: 2, Iteration: 1, Round: 2, Attempt: 1}, 3},
		{pluginapi.CallInfo{Ordinal: 3, Iteration: 2, Round: 3, Attempt: 1}, 5},
	} {
		got := p.seen[i]
		if got.Call != want.call || len(got.Messages) != want.messages || len(got.Tools) != 1 || got.Model != "m" || got.System != "s" || got.MaxTokens != 7 {
			t.Errorf("request %d is %+v with %d messages, want %+v with %d", i+1, got.Call, len(got.Messages), want.call, want.messages)
		}
	}
}
