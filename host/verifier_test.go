package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// checker is a verifier that passes at a given call.
type checker struct {
	passes int // 0: never
	fails  error
	calls  int
	before func()
}

func (c *checker) Name() string   { return "check" }
func (c *checker) Digest() string { return "sha256:00" }

func (c *checker) Verify(context.Context) (bool, string, error) {
	c.calls++
	if c.before != nil {
		c.before()
	}
	return c.calls == c.passes, "looked", c.fails
}

func TestAVerifierDecidesWhetherTheGoalIsMet(t *testing.T) {
	broken := errors.New("no such program")
	tests := []struct {
		name    string
		v       *checker
		status  loop.Status
		code    loop.ReasonCode
		outcome loop.Result
		want    counters
		checks  int
	}{
		{"at once", &checker{passes: 1}, loop.Stopped, loop.ReasonGoalMet, loop.ResultGoalMet, counters{1, 1, 1}, 1},
		{"later", &checker{passes: 2}, loop.Stopped, loop.ReasonGoalMet, loop.ResultGoalMet, counters{2, 2, 2}, 2},
		{"at the last iteration", &checker{passes: 3}, loop.Completed, loop.ReasonGoalMet, loop.ResultGoalMet, counters{3, 3, 3}, 3},
		{"never", &checker{}, loop.Completed, loop.ReasonGoalUnmet, loop.ResultGoalUnmet, counters{3, 3, 3}, 3},
		{"it can't be run", &checker{fails: broken}, loop.Failed, loop.ReasonVerifier, loop.ResultFailed, counters{1, 1, 1}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			s := r.open("s")
			var order []string
			tt.v.before = func() {
				order = append(order, "verify")
				if d := cmp.Diff(s.Snapshot().Head.Loop, r.stored("s").Loop); d != "" {
					t.Errorf("the iteration's end is not durable when the verifier runs (L-27): %s", d)
				}
			}
			spec := r.spec(&script{answers: []any{say("a")}}, 3, 5)
			spec.Verifier = tt.v
			spec.Hooks = []plugin.Hook{hook("watch", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
				order = append(order, "review")
				return pluginapi.Decision{Action: pluginapi.Continue}
			})}
			res, err := s.Run(context.Background(), spec)
			if res.Status != tt.status || res.ReasonCode != tt.code || res.Outcome() != tt.outcome || of(r.stored("s").Loop) != tt.want || tt.v.calls != tt.checks {
				t.Errorf("got %s %q (%s) %v after %d checks, want %s %q (%s) %v after %d", res.Status, res.ReasonCode, res.Outcome(), of(r.stored("s").Loop), tt.v.calls, tt.status, tt.code, tt.outcome, tt.want, tt.checks)
			}
			if (err != nil) != (tt.v.fails != nil) || (err != nil && !errors.Is(err, broken)) {
				t.Errorf("got error %v, want %v", err, tt.v.fails)
			}
			for i, what := range order {
				if tt.v.fails == nil && what != []string{"verify", "review"}[i%2] {
					t.Errorf("order is %v, want the verifier before the after-round hooks (L-27)", order)
					break
				}
			}
			if n := verdicts(t, r); n != tt.checks {
				t.Errorf("the journal has %d verdicts, want %d", n, tt.checks)
			}
		})
	}
}

func verdicts(t *testing.T, r *rig) int {
	t.Helper()
	page, err := r.host.Log(context.Background(), "s", 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, item := range page.Items {
		if h := item.Entry.Hook; h != nil && h.Plugin == "check" && h.Digest == "sha256:00" {
			n++
		}
	}
	return n
}

func TestADenyAfterAPassedVerifierIsNoSuccess(t *testing.T) {
	r := newRig(t, nil)
	spec := r.spec(&script{answers: []any{say("a")}}, 1, 9)
	spec.Verifier = &checker{passes: 1}
	spec.Hooks = []plugin.Hook{hook("judge", pluginapi.BeforeFinalize, func(*pluginapi.HookInput) pluginapi.Decision {
		return pluginapi.Decision{Action: pluginapi.Deny, Reason: "no"}
	})}
	_, err := r.open("s").Run(context.Background(), spec)
	if failed, ok := errors.AsType[*host.FailedError](err); !ok || failed.Code != loop.ReasonFinalizeDenied {
		t.Errorf("got %v, want finalize_denied (L-13)", err)
	}
}

func TestARunUnderAOnceKeyIsReportedAndNotRepeated(t *testing.T) {
	r := newRig(t, nil)
	p := &script{answers: []any{say("a"), say("b")}}
	run := func(id, key string) host.Result {
		t.Helper()
		s, err := r.host.Open(context.Background(), host.OpenRequest{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		spec := r.spec(p, 1, 1)
		spec.OnceKey = key
		res, err := s.Run(context.Background(), spec)
		if err := errors.Join(err, s.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := run("s", "monday")
	again := run("s", "monday")
	if !again.Replayed || first.Replayed || p.calls.Load() != 1 {
		t.Fatalf("got %+v after %d calls, want the first result again after 1", again, p.calls.Load())
	}
	again.Replayed = false
	if d := cmp.Diff(first, again); d != "" {
		t.Errorf("the replayed result differs (-first +again):\n%s", d)
	}
	if second := run("s", "tuesday"); second.Replayed || second.FinalText != "b" {
		t.Errorf("another key got %+v, want a run of its own", second)
	}
	if old := run("s", "monday"); !old.Replayed || old.FinalText != "a" {
		t.Errorf("an older key got %+v, want its own result", old)
	}
	if other := run("another", "monday"); other.Replayed {
		t.Error("the key of another session counts")
	}
	got, ok, err := r.host.Once(context.Background(), "s", "tuesday")
	if err != nil || !ok || got.FinalText != "b" {
		t.Errorf("Once got %+v, %v, %v", got, ok, err)
	}
	if _, ok, err := r.host.Once(context.Background(), "none", "monday"); ok || err != nil {
		t.Errorf("Once of no session got %v, %v; want nothing", ok, err)
	}
}

func TestOnlyTheLatestOnceKeysAreRemembered(t *testing.T) {
	r := newRig(t, nil)
	p := &script{answers: []any{say("a")}}
	key := func(i int) string { return string(rune('a' + i)) }
	for i := range host.MaxOnceKeys + 1 {
		s, err := r.host.Open(context.Background(), host.OpenRequest{ID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		spec := r.spec(p, 1, 1)
		spec.OnceKey = key(i)
		_, err = s.Run(context.Background(), spec)
		if err := errors.Join(err, s.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range map[int]bool{0: false, 1: true, host.MaxOnceKeys: true} {
		if _, ok, err := r.host.Once(context.Background(), "s", key(i)); ok != want || err != nil {
			t.Errorf("key %d is remembered: %v (%v), want %v", i, ok, err, want)
		}
	}
}
