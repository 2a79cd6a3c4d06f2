package host_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func TestALoopEndsAsItsBoundsSay(t *testing.T) {
	tests := []struct {
		name    string
		answers []any
		k, r    int64
		status  loop.Status
		code    loop.ReasonCode
		want    counters
		calls   int64
	}{
		{"one direct answer fits exactly (L-8)", []any{say("done")}, 1, 1, loop.Completed, "", counters{1, 1, 1}, 1},
		{"a provider that always asks for tools runs out of rounds (L-8)", []any{useTool("echo", `{}`)}, 1, 1, loop.BudgetExhausted, loop.ReasonRounds, counters{1, 0, 1}, 1},
		{"three iterations of two rounds", []any{useTool("echo", `{}`), say("a"), useTool("echo", `{}`), say("b"), useTool("echo", `{}`), say("c")}, 3, 6, loop.Completed, "", counters{3, 3, 6}, 6},
		{"fewer rounds than iterations is legal (L-1)", []any{say("a")}, 3, 2, loop.BudgetExhausted, loop.ReasonRounds, counters{2, 2, 2}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var toolCalls atomic.Int64
			r := newRig(t, nil)
			p := &script{answers: tt.answers}
			spec := r.spec(p, tt.k, tt.r)
			spec.Tools = []plugin.Tool{echoTool(&toolCalls)}
			s := r.open("s")
			res, err := s.Run(context.Background(), spec)
			if err != nil {
				t.Fatal(err)
			}
			head := r.stored("s")
			if head.Loop.Status != tt.status || head.Loop.ReasonCode != tt.code || of(head.Loop) != tt.want || p.calls.Load() != tt.calls {
				t.Errorf("got %s %q %v after %d calls, want %s %q %v after %d", head.Loop.Status, head.Loop.ReasonCode, of(head.Loop), p.calls.Load(), tt.status, tt.code, tt.want, tt.calls)
			}
			if head.Runtime.Status != loop.RuntimeCompleted {
				t.Errorf("runtime is %s, want completed", head.Runtime.Status)
			}
			if n := r.count(host.EventComplete); n != 1 {
				t.Errorf("got %d Complete events, want 1 (L-15)", n)
			}
			if snap := s.Snapshot(); cmp.Diff(snap.Head.Loop, head.Loop) != "" {
				t.Errorf("memory and store differ: %s", cmp.Diff(snap.Head.Loop, head.Loop))
			}
			if res.Status != tt.status || res.Revision == 0 {
				t.Errorf("result is %+v", res)
			}
		})
	}
}

func TestEveryCallOfADurableMessageHasOneResult(t *testing.T) {
	var toolCalls atomic.Int64
	r := newRig(t, nil)
	three := pluginapi.Message{ToolCalls: []pluginapi.ToolCall{
		{ID: "x", Name: "echo", Arguments: []byte(`{"n":1}`)},
		{ID: "x", Name: "nothing", Arguments: []byte(`{}`)},
		{ID: "", Name: "echo", Arguments: []byte(`[1`)},
	}}
	spec := r.spec(&script{answers: []any{three, say("done")}}, 1, 2)
	spec.Tools = []plugin.Tool{echoTool(&toolCalls)}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.messages("s") {
		if m.Result != nil {
			got = append(got, m.Result.CallID+" "+string(m.Result.Status))
		}
	}
	want := []string{"x ok", "x.2 error", "call error"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("results differ (-want +got):\n%s", d)
	}
	if toolCalls.Load() != 1 {
		t.Errorf("the tool ran %d times, want 1", toolCalls.Load())
	}
}

func TestBoundsAreCheckedBeforeAnythingIsWritten(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("s")
	before := r.stored("s")
	for _, spec := range []host.RunSpec{
		{Objective: "", Iterations: 1, Rounds: 1},
		{Objective: strings.Repeat("x", loop.MaxObjectiveBytes+1), Iterations: 1, Rounds: 1},
		{Objective: "\xff", Iterations: 1, Rounds: 1},
		{Objective: "x", Iterations: 0, Rounds: 1},
		{Objective: "x", Iterations: 101, Rounds: 1},
		{Objective: "x", Iterations: 1, Rounds: 0},
		{Objective: "x", Iterations: 1, Rounds: 1001},
	} {
		p := &script{answers: []any{say("no")}}
		spec.Provider = p
		_, err := s.Run(context.Background(), spec)
		if _, ok := errors.AsType[*loop.BoundsError](err); !ok {
			t.Errorf("got %v, want a *loop.BoundsError (L-1)", err)
		}
		if p.calls.Load() != 0 {
			t.Error("the provider was called")
		}
	}
	if d := cmp.Diff(before, r.stored("s")); d != "" {
		t.Errorf("the store changed: %s", d)
	}
}

func TestAStopRaisedAfterARoundEndsBeforeTheNextAdmission(t *testing.T) {
	r := newRig(t, nil)
	p := &script{answers: []any{say("a")}}
	spec := r.spec(p, 2, 4)
	spec.Hooks = []plugin.Hook{hook("stopper", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
		return pluginapi.Decision{Action: pluginapi.Stop, Reason: "enough"}
	})}
	res, err := r.open("s").Run(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != loop.Stopped || res.ReasonCode != loop.ReasonHookStop || res.IterationsStarted != 1 {
		t.Errorf("got %+v, want stopped by the hook after one iteration (L-11)", res)
	}
	if p.calls.Load() != 1 {
		t.Errorf("got %d provider calls, want 1", p.calls.Load())
	}
}

func TestTheSixthDenyInARowFailsTheRun(t *testing.T) {
	r := newRig(t, nil)
	p := &script{answers: []any{say("a")}}
	spec := r.spec(p, 1, 50)
	spec.Hooks = []plugin.Hook{hook("judge", pluginapi.BeforeFinalize, func(*pluginapi.HookInput) pluginapi.Decision {
		return pluginapi.Decision{Action: pluginapi.Deny, Reason: "not yet"}
	})}
	_, err := r.open("s").Run(context.Background(), spec)
	failed, ok := errors.AsType[*host.FailedError](err)
	if !ok || failed.Code != loop.ReasonFinalizeDenied {
		t.Fatalf("got %v, want a failure with finalize_denied (L-13)", err)
	}
	if got := of(r.stored("s").Loop); got != (counters{1, 1, 6}) {
		t.Errorf("got counters %v, want (1, 1, 6)", got)
	}
	if n := r.count(host.EventComplete); n != 0 {
		t.Errorf("got %d Complete events over a deny, want 0", n)
	}
	injected := 0
	for _, m := range r.messages("s") {
		if m.Origin == "finalize" && m.Text == "not yet" {
			injected++
		}
	}
	if injected != 5 {
		t.Errorf("the reason was injected %d times, want 5", injected)
	}
}

func TestCancelInterruptsTheProvider(t *testing.T) {
	r := newRig(t, nil)
	entered := make(chan struct{})
	p := &script{answers: []any{func(ctx context.Context) (pluginapi.Message, error) {
		close(entered)
		<-ctx.Done()
		return pluginapi.Message{}, ctx.Err()
	}}}
	s := r.open("s")
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(context.Background(), r.spec(p, 1, 1))
		done <- err
	}()
	within(t, "the provider call", entered)
	if err := s.Cancel("enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, host.ErrCancelled) {
		t.Fatalf("got %v, want ErrCancelled (L-17)", err)
	}
	head := r.stored("s")
	if head.Loop.Status != loop.Cancelled || head.Runtime.Status != loop.RuntimeCancelled || head.Loop.Reason != "enough" {
		t.Errorf("stored %+v %+v", head.Loop, head.Runtime)
	}
	if r.count(host.EventCancelled) != 1 || r.count(host.EventComplete) != 0 {
		t.Errorf("got %d Cancelled and %d Complete events, want 1 and 0", r.count(host.EventCancelled), r.count(host.EventComplete))
	}
	if err := s.Stop("late"); !errors.Is(err, host.ErrNotRunning) {
		t.Errorf("a late stop got %v, want ErrNotRunning", err)
	}
}
