package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// twoRounds asks for the echo tool, then answers.
func twoRounds() *script {
	return &script{answers: []any{useTool("echo", `{"n":1}`), say("done")}}
}

func TestWhatADecisionDoesAtEachPoint(t *testing.T) {
	gates := []pluginapi.HookPoint{
		pluginapi.SessionStart, pluginapi.BeforePrompt, pluginapi.BeforeRound, pluginapi.BeforeProvider,
		pluginapi.AfterProvider, pluginapi.BeforeTool, pluginapi.AfterTool, pluginapi.AfterRound, pluginapi.BeforeFinalize,
	}
	type end struct {
		status loop.Status
		code   loop.ReasonCode
		calls  int64
		tools  int64
	}
	whole := end{loop.Completed, "", 2, 1}
	// What a stop, abort and deny at the point's first call end in; where a stop
	// finds all work done, it changes nothing (L-16).
	stopped := map[pluginapi.HookPoint]end{
		pluginapi.SessionStart: {loop.Stopped, loop.ReasonHookStop, 0, 0}, pluginapi.BeforePrompt: {loop.Stopped, loop.ReasonHookStop, 0, 0},
		pluginapi.BeforeRound: {loop.Stopped, loop.ReasonHookStop, 0, 0}, pluginapi.BeforeProvider: {loop.Stopped, loop.ReasonHookStop, 0, 0},
		pluginapi.AfterProvider: {loop.Stopped, loop.ReasonHookStop, 1, 1}, pluginapi.BeforeTool: {loop.Stopped, loop.ReasonHookStop, 1, 1},
		pluginapi.AfterTool: {loop.Stopped, loop.ReasonHookStop, 1, 1}, pluginapi.AfterRound: {loop.Stopped, loop.ReasonHookStop, 1, 1},
		pluginapi.BeforeFinalize: whole,
	}
	aborted := map[pluginapi.HookPoint]end{
		pluginapi.SessionStart: {loop.Failed, loop.ReasonHookAbort, 0, 0}, pluginapi.BeforePrompt: {loop.Failed, loop.ReasonHookAbort, 0, 0},
		pluginapi.BeforeRound: {loop.Failed, loop.ReasonHookAbort, 0, 0}, pluginapi.BeforeProvider: {loop.Failed, loop.ReasonHookAbort, 0, 0},
		pluginapi.AfterProvider: {loop.Failed, loop.ReasonHookAbort, 1, 0}, pluginapi.BeforeTool: {loop.Failed, loop.ReasonHookAbort, 1, 0},
		pluginapi.AfterTool: {loop.Failed, loop.ReasonHookAbort, 1, 1}, pluginapi.AfterRound: {loop.Failed, loop.ReasonHookAbort, 1, 1},
		pluginapi.BeforeFinalize: {loop.Failed, loop.ReasonHookAbort, 2, 1},
	}
	denied := map[pluginapi.HookPoint]end{
		pluginapi.BeforePrompt: {loop.Failed, loop.ReasonHookDeny, 0, 0}, pluginapi.BeforeProvider: {loop.Failed, loop.ReasonHookDeny, 0, 0},
		pluginapi.BeforeTool: {loop.Completed, "", 2, 0}, pluginapi.BeforeFinalize: {loop.Completed, "", 3, 1},
	}
	broken := errors.New("broken hook")
	cases := []struct {
		name string
		do   func() (pluginapi.Decision, error)
		want func(pluginapi.HookPoint) (end, bool)
	}{
		{
			"continue", func() (pluginapi.Decision, error) { return pluginapi.Decision{Action: pluginapi.Continue}, nil },
			func(pluginapi.HookPoint) (end, bool) { return whole, true },
		},
		{
			"allow", func() (pluginapi.Decision, error) { return pluginapi.Decision{Action: pluginapi.Allow}, nil },
			func(p pluginapi.HookPoint) (end, bool) { return whole, p.Accepts(pluginapi.Allow) },
		},
		{"inject", func() (pluginapi.Decision, error) {
			return pluginapi.Decision{Action: pluginapi.Inject, Text: "mind the gap"}, nil
		}, func(p pluginapi.HookPoint) (end, bool) { return whole, p.Accepts(pluginapi.Inject) }},
		{"stop", func() (pluginapi.Decision, error) {
			return pluginapi.Decision{Action: pluginapi.Stop, Reason: "the reason"}, nil
		}, func(p pluginapi.HookPoint) (end, bool) { return stopped[p], true }},
		{"abort", func() (pluginapi.Decision, error) {
			return pluginapi.Decision{Action: pluginapi.Abort, Reason: "the reason"}, nil
		}, func(p pluginapi.HookPoint) (end, bool) { return aborted[p], true }},
		{"deny", func() (pluginapi.Decision, error) {
			return pluginapi.Decision{Action: pluginapi.Deny, Reason: "the reason"}, nil
		}, func(p pluginapi.HookPoint) (end, bool) { return denied[p], p.Accepts(pluginapi.Deny) }},
		{"ask", func() (pluginapi.Decision, error) {
			return pluginapi.Decision{Action: pluginapi.Ask, Reason: "the reason"}, nil
		}, func(p pluginapi.HookPoint) (end, bool) { return denied[p], p.Accepts(pluginapi.Ask) }},
		{
			"fault", func() (pluginapi.Decision, error) { return pluginapi.Decision{}, broken },
			func(p pluginapi.HookPoint) (end, bool) {
				switch pluginapi.DefaultOnError(p, false) {
				case pluginapi.OnErrorAbort:
					return aborted[p], true
				case pluginapi.OnErrorDeny:
					return denied[p], true
				}
				return whole, true
			},
		},
	}
	for _, c := range cases {
		for _, point := range gates {
			want, applies := c.want(point)
			if !applies {
				continue
			}
			t.Run(c.name+" at "+string(point), func(t *testing.T) {
				r := newRig(t, nil)
				p := twoRounds()
				var tools, asked atomic.Int64
				spec := r.spec(p, 1, 5)
				spec.Tools = []plugin.Tool{echoTool(&tools)}
				spec.Hooks = []plugin.Hook{plugin.FuncHook{
					Name: "decider", Decls: []pluginapi.HookDecl{{Point: point}},
					Fn: func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
						if asked.Add(1) > 1 {
							return pluginapi.Decision{Action: pluginapi.Continue}, nil
						}
						return c.do()
					},
				}}
				_, err := r.open("s").Run(context.Background(), spec)
				l := r.stored("s").Loop
				if got := (end{l.Status, l.ReasonCode, p.calls.Load(), tools.Load()}); got != want {
					t.Errorf("got %+v (%v), want %+v", got, err, want)
				}
				if c.name == "stop" && want.status == loop.Stopped || want.status == loop.Failed && c.name != "fault" {
					if !strings.Contains(l.Reason, "the reason") || !strings.Contains(l.Reason, "decider") {
						t.Errorf("the loop's reason is %q, want it to name the hook and its reason", l.Reason)
					}
				}
				if want.status == loop.Failed {
					failed, ok := errors.AsType[*host.FailedError](err)
					if !ok || failed.Code != want.code || (c.name == "fault") != errors.Is(err, broken) {
						t.Errorf("got %v, want a failure with %s that wraps a fault's cause", err, want.code)
					}
				}
				if got, want := r.count(host.EventComplete), map[bool]int{true: 0, false: 1}[want.status == loop.Failed]; got != want {
					t.Errorf("got %d Complete events, want %d", got, want)
				}
				wantJournal(t, r, point, c.name)
				if c.name == "inject" {
					wantInjected(t, r, point)
				}
			})
		}
	}
}

// wantJournal checks that the first decision at point is in the durable log.
func wantJournal(t *testing.T, r *rig, point pluginapi.HookPoint, decision string) {
	t.Helper()
	page, err := r.host.Log(context.Background(), "s", 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Items {
		h := item.Entry.Hook
		if h == nil || h.Point != point {
			continue
		}
		if decision == "fault" {
			if h.Fault == "" {
				t.Errorf("the journal says %+v, want the fault", h)
			}
		} else if string(h.Action) != decision || h.Plugin != "decider" || len(h.InputSHA256) != 64 {
			t.Errorf("the journal says %+v, want %s of decider", h, decision)
		}
		return
	}
	t.Errorf("the journal has no decision at %s", point)
}

// wantInjected checks that the text is there once, from the next admission on.
func wantInjected(t *testing.T, r *rig, point pluginapi.HookPoint) {
	t.Helper()
	n := 0
	for _, m := range r.messages("s") {
		if m.Text == "mind the gap" {
			n++
			if m.Role != pluginapi.RoleUser || m.Origin != "hook:decider" {
				t.Errorf("the injected message is %+v, want a user's with its origin", m)
			}
		}
	}
	if n != 1 {
		t.Errorf("the text is in the log %d times, want once (injected at %s)", n, point)
	}
}

func TestHooksRunInTheOrderOfARun(t *testing.T) {
	r := newRig(t, nil)
	var order []string
	h := plugin.FuncHook{Name: "watch", Fn: func(_ context.Context, _ plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error) {
		order = append(order, string(in.Point))
		return pluginapi.Decision{Action: pluginapi.Continue}, nil
	}}
	for _, p := range pluginapi.HookPoints() {
		h.Decls = append(h.Decls, pluginapi.HookDecl{Point: p})
	}
	var tools atomic.Int64
	spec := r.spec(twoRounds(), 1, 2)
	spec.Hooks, spec.Tools = []plugin.Hook{h}, []plugin.Tool{echoTool(&tools)}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"session_start", "before_prompt", "before_round", "before_provider", "after_provider", "before_tool", "after_tool", "after_round",
		"before_round", "before_provider", "after_provider", "after_round", "before_finalize", "session_end",
	}
	if d := cmp.Diff(want, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

func TestARewriteReachesTheProviderTheToolAndTheLog(t *testing.T) {
	r := newRig(t, nil)
	rewrite := func(point pluginapi.HookPoint, old, new string) plugin.Hook {
		return plugin.FuncHook{
			Name: "rewrite-" + strings.ReplaceAll(string(point), "_", "-"), Decls: []pluginapi.HookDecl{{Point: point, Mutates: true}},
			Fn: func(_ context.Context, _ plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error) {
				return pluginapi.Decision{Action: pluginapi.Mutate, Document: []byte(strings.ReplaceAll(string(in.Document), old, new))}, nil
			},
		}
	}
	p := twoRounds()
	var tools atomic.Int64
	spec := r.spec(p, 1, 2)
	spec.Tools = []plugin.Tool{echoTool(&tools)}
	spec.System = "be plain"
	spec.Hooks = []plugin.Hook{
		rewrite(pluginapi.BeforePrompt, "do it", "do it well"),
		rewrite(pluginapi.BeforeProvider, "be plain", "be brief"),
		rewrite(pluginapi.AfterProvider, `"done"`, `"all done"`),
		rewrite(pluginapi.BeforeTool, `{"n":1}`, `{"n":2}`),
		rewrite(pluginapi.AfterTool, `{\"n\":2}`, "two"),
	}
	res, err := r.open("s").Run(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if p.seen[0].System != "be brief" || p.seen[0].Messages[0].Text != "do it well" {
		t.Errorf("the provider saw %q and %q, want the rewritten request", p.seen[0].System, p.seen[0].Messages[0].Text)
	}
	var texts []string
	for _, m := range r.messages("s") {
		switch {
		case m.Result != nil:
			texts = append(texts, m.Result.Text)
		case len(m.ToolCalls) > 0:
			texts = append(texts, string(m.ToolCalls[0].Arguments))
		default:
			texts = append(texts, m.Text)
		}
	}
	if d := cmp.Diff([]string{"do it well", `{"n":2}`, "two", "all done"}, texts); d != "" {
		t.Errorf("the log (-want +got):\n%s", d)
	}
	if res.FinalText != "all done" || r.stored("s").Loop.Objective != "do it well" {
		t.Errorf("the final text is %q and the objective %q, want the rewritten ones", res.FinalText, r.stored("s").Loop.Objective)
	}
}

func TestARewrittenAnswerKeepsItsCallIDsUniqueInTheSession(t *testing.T) {
	r := newRig(t, nil)
	same := plugin.FuncHook{
		Name: "same", Decls: []pluginapi.HookDecl{{Point: pluginapi.AfterProvider, Mutates: true}},
		Fn: func(_ context.Context, _ plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error) {
			var doc pluginapi.AnswerDoc
			if err := json.Unmarshal(in.Document, &doc); err != nil {
				return pluginapi.Decision{}, err
			}
			for i := range doc.Message.ToolCalls {
				doc.Message.ToolCalls[i].ID = "always-this"
			}
			out, err := json.Marshal(doc)
			return pluginapi.Decision{Action: pluginapi.Mutate, Document: out}, err
		},
	}
	var tools atomic.Int64
	spec := r.spec(&script{answers: []any{useTool("echo", `{}`), useTool("echo", `{}`), say("done")}}, 1, 3)
	spec.Hooks, spec.Tools = []plugin.Hook{same}, []plugin.Tool{echoTool(&tools)}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range r.messages("s") {
		if m.Result != nil {
			ids = append(ids, m.Result.CallID)
		}
	}
	if d := cmp.Diff([]string{"always-this", "always-this.2"}, ids); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
}

func TestOnErrorSaysWhatAFaultDoes(t *testing.T) {
	for _, tt := range []struct {
		onError pluginapi.OnError
		status  loop.Status
		tools   int64
	}{
		{pluginapi.OnErrorAllow, loop.Completed, 1},
		{pluginapi.OnErrorDeny, loop.Completed, 0},
		{pluginapi.OnErrorAbort, loop.Failed, 0},
		{pluginapi.OnErrorDefault, loop.Completed, 0},
	} {
		t.Run(fmt.Sprintf("on_error %q of a before_tool hook", tt.onError), func(t *testing.T) {
			r := newRig(t, nil)
			var tools atomic.Int64
			spec := r.spec(twoRounds(), 1, 2)
			spec.Tools = []plugin.Tool{echoTool(&tools)}
			spec.Hooks = []plugin.Hook{plugin.FuncHook{
				Name: "broken", Decls: []pluginapi.HookDecl{{Point: pluginapi.BeforeTool, OnError: tt.onError}},
				Fn: func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
					panic("broken")
				},
			}}
			res, _ := r.open("s").Run(context.Background(), spec)
			if res.Status != tt.status || tools.Load() != tt.tools {
				t.Errorf("got %s after %d tool runs, want %s after %d", res.Status, tools.Load(), tt.status, tt.tools)
			}
		})
	}
}

func TestADenyFollowedByAPassCompletesAndCountsItsRounds(t *testing.T) {
	r := newRig(t, nil)
	p := &script{answers: []any{say("a"), say("b"), say("c")}}
	spec := r.spec(p, 1, 5)
	var denies []uint32
	spec.Hooks = []plugin.Hook{hook("judge", pluginapi.BeforeFinalize, func(in *pluginapi.HookInput) pluginapi.Decision {
		var doc pluginapi.FinalizeDoc
		if err := json.Unmarshal(in.Document, &doc); err != nil {
			t.Error(err)
		}
		denies = append(denies, doc.Denies)
		if doc.FinalText == "c" {
			return pluginapi.Decision{Action: pluginapi.Allow}
		}
		return pluginapi.Decision{Action: pluginapi.Deny, Reason: "more than " + doc.FinalText}
	})}
	res, err := r.open("s").Run(context.Background(), spec)
	if err != nil || res.Status != loop.Completed || res.FinalText != "c" {
		t.Fatalf("got %+v and %v, want completed with c", res, err)
	}
	if got := of(r.stored("s").Loop); got != (counters{1, 1, 3}) || !slices.Equal(denies, []uint32{0, 1, 2}) {
		t.Errorf("got %v and denies %v, want (1, 1, 3) and 0, 1, 2 (L-13)", got, denies)
	}
}

func TestAPendingDenyIsWorkThatAStopOrTheBoundCutsOff(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rounds int64
		stop   bool
		status loop.Status
		code   loop.ReasonCode
	}{
		{"stop", 5, true, loop.Stopped, loop.ReasonOperatorStop},
		{"the round bound", 1, false, loop.BudgetExhausted, loop.ReasonRounds},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			s := r.open("s")
			spec := r.spec(&script{answers: []any{say("a")}}, 1, tt.rounds)
			spec.Hooks = []plugin.Hook{hook("judge", pluginapi.BeforeFinalize, func(*pluginapi.HookInput) pluginapi.Decision {
				if tt.stop {
					if err := s.Stop("enough"); err != nil {
						t.Error(err)
					}
				}
				return pluginapi.Decision{Action: pluginapi.Deny, Reason: "not yet"}
			})}
			res, err := s.Run(context.Background(), spec)
			if err != nil || res.Status != tt.status || res.ReasonCode != tt.code {
				t.Fatalf("got %+v and %v, want %s %s (L-13)", res, err, tt.status, tt.code)
			}
			if got := of(r.stored("s").Loop); got != (counters{1, 1, 1}) {
				t.Errorf("got %v, want (1, 1, 1)", got)
			}
		})
	}
}
