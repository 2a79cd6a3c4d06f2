package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// kvHook puts and reads entries at after_round.
func kvHook(name string, fn func(kv plugin.KV) (pluginapi.Decision, error)) plugin.Hook {
	return plugin.FuncHook{
		Name: name, Decls: []pluginapi.HookDecl{{Point: pluginapi.AfterRound, OnError: pluginapi.OnErrorAllow}},
		Fn: func(_ context.Context, s plugin.Session, _ *pluginapi.HookInput) (pluginapi.Decision, error) {
			return fn(s.KV)
		},
	}
}

// kvEntries are the log's key-value entries as "plugin key=value".
func (r *rig) kvEntries(id string) []string {
	r.t.Helper()
	page, err := r.host.Log(context.Background(), id, 1, 10_000)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, item := range page.Items {
		if kv := item.Entry.KV; kv != nil {
			out = append(out, fmt.Sprintf("%s %s=%s", kv.Plugin, kv.Key, kv.Value))
		}
	}
	return out
}

var goOn = pluginapi.Decision{Action: pluginapi.Continue}

func TestEntriesAreDurableWithTheirDecisionOrNotAtAll(t *testing.T) {
	r := newRig(t, nil)
	n := 0
	put := func(kv plugin.KV) (pluginapi.Decision, error) {
		n++
		value := fmt.Sprint(n)
		if n == 2 {
			value = "" // deletes
		}
		if err := kv.Put("count", []byte(value)); err != nil {
			return goOn, err
		}
		if got, ok := kv.Get("count"); ok != (value != "") || string(got) != value {
			t.Errorf("a put of %q reads %q, %v in its own call", value, got, ok)
		}
		if n == 3 {
			return goOn, errors.New("broken")
		}
		return goOn, nil
	}
	other := func(kv plugin.KV) (pluginapi.Decision, error) {
		if got, ok := kv.Get("count"); ok {
			t.Errorf("another plugin reads %q", got)
		}
		return goOn, nil
	}
	spec := r.spec(&script{answers: []any{say("a")}}, 4, 4)
	spec.Hooks = []plugin.Hook{kvHook("counter", put), kvHook("other", other)}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"counter count=1", "counter count=", "counter count=4"}, r.kvEntries("s")); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
}

func TestEntriesOutliveTheirLoopAndAFork(t *testing.T) {
	r := newRig(t, nil)
	var seen []string
	run := func(id string) {
		t.Helper()
		s, err := r.host.Open(context.Background(), host.OpenRequest{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		spec := r.spec(&script{answers: []any{say("a")}}, 1, 1)
		spec.Hooks = []plugin.Hook{kvHook("counter", func(kv plugin.KV) (pluginapi.Decision, error) {
			got, _ := kv.Get("log")
			seen = append(seen, string(got))
			return goOn, kv.Put("log", append(append([]byte(nil), got...), 'x'))
		})}
		_, err = s.Run(context.Background(), spec)
		if err := errors.Join(err, s.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
	run("a")
	run("a")
	if err := r.host.Fork(context.Background(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	run("b")
	run("a")
	if d := cmp.Diff([]string{"", "x", "xx", "xx"}, seen); d != "" {
		t.Errorf("what the hook read (-want +got):\n%s", d)
	}
}

func TestEntriesHaveLimits(t *testing.T) {
	r := newRig(t, nil)
	spec := r.spec(&script{answers: []any{say("a")}}, 2, 2)
	round := 0
	spec.Hooks = []plugin.Hook{kvHook("greedy", func(kv plugin.KV) (pluginapi.Decision, error) {
		round++
		if round == 2 {
			if err := kv.Put("one more", []byte("v")); !errors.Is(err, plugin.ErrKVLimit) {
				t.Errorf("an entry over the durable ones' limit: got %v, want ErrKVLimit", err)
			}
			return goOn, nil
		}
		for _, c := range []struct {
			key   string
			value int
		}{{"", 1}, {strings.Repeat("k", pluginapi.MaxKVKeyBytes+1), 1}, {"k", pluginapi.MaxKVValueBytes + 1}} {
			if err := kv.Put(c.key, make([]byte, c.value)); !errors.Is(err, plugin.ErrKVLimit) {
				t.Errorf("key of %d and value of %d bytes: got %v, want ErrKVLimit", len(c.key), c.value, err)
			}
		}
		for i := range pluginapi.MaxKVEntries {
			if err := kv.Put(fmt.Sprint(i), []byte("v")); err != nil {
				t.Fatalf("entry %d: %v", i, err)
			}
		}
		if err := kv.Put("one more", []byte("v")); !errors.Is(err, plugin.ErrKVLimit) {
			t.Errorf("one entry too many: got %v, want ErrKVLimit", err)
		}
		if err := errors.Join(kv.Put("0", nil), kv.Put("instead", []byte("v")), kv.Put("1", []byte("w"))); err != nil {
			t.Errorf("replacing and deleting at the limit: %v", err)
		}
		return goOn, nil
	})}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	if round != 2 {
		t.Errorf("the hook ran %d times, want 2", round)
	}
}

func TestEntriesOfAToolAreKeptWithItsResult(t *testing.T) {
	r := newRig(t, nil)
	tool := plugin.FuncTool{
		Name: "memo", Tools: []pluginapi.ToolSpec{{Name: "memo", InputSchema: []byte(`{"type":"object"}`)}},
		Fn: func(_ context.Context, s plugin.Session, call pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			err := s.KV.Put(call.ID, call.Arguments)
			return pluginapi.ToolOutput{Text: "noted", IsError: string(call.Arguments) == `{"bad":1}`}, err
		},
	}
	spec := r.spec(&script{answers: []any{pluginapi.Message{ToolCalls: []pluginapi.ToolCall{
		{ID: "good", Name: "memo", Arguments: []byte(`{}`)}, {ID: "bad", Name: "memo", Arguments: []byte(`{"bad":1}`)},
	}}, say("done")}}, 1, 2)
	spec.Tools = []plugin.Tool{tool}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"memo good={}"}, r.kvEntries("s")); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
}
