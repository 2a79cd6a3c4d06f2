package host_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func fails(kind pluginapi.FailureKind, retryAfter time.Duration) error {
	return &pluginapi.Failure{Kind: kind, Message: "not now", RetryAfterMS: retryAfter.Milliseconds()}
}

func TestFailedProviderCallsAreTriedAgain(t *testing.T) {
	tests := []struct {
		name    string
		answers []any
		maxWait time.Duration
		calls   int64
		fails   bool
		least   time.Duration // that the run took, by the fake clock
		most    time.Duration
	}{
		{"overloaded once, with a backoff", []any{fails(pluginapi.FailOverloaded, 0), say("a")}, 0, 2, false, 250 * time.Millisecond, 750 * time.Millisecond},
		{"overloaded twice, with a doubled backoff", []any{fails(pluginapi.FailOverloaded, 0), fails(pluginapi.FailNetwork, 0), say("a")}, 0, 3, false, 750 * time.Millisecond, 2250 * time.Millisecond},
		{"three times is the end", []any{fails(pluginapi.FailOverloaded, 0)}, 0, 3, true, 750 * time.Millisecond, 2250 * time.Millisecond},
		{"rate limited, for as long as the provider says", []any{fails(pluginapi.FailRateLimited, 7*time.Minute), say("a")}, 0, 2, false, 7 * time.Minute, 7 * time.Minute},
		{"rate limited for longer than a run waits", []any{fails(pluginapi.FailRateLimited, 11*time.Minute), say("a")}, 0, 1, true, 0, 0},
		{"rate limited for longer than this run waits", []any{fails(pluginapi.FailRateLimited, 2*time.Second), say("a")}, time.Second, 1, true, 0, 0},
		{"a backoff is no longer than this run waits", []any{fails(pluginapi.FailOverloaded, 0), say("a")}, time.Millisecond, 2, false, time.Millisecond, time.Millisecond},
		{"a wrong key is not tried again", []any{fails(pluginapi.FailAuth, 0), say("a")}, 0, 1, true, 0, 0},
		{"a fault is not tried again", []any{&plugin.Fault{Plugin: "script", Kind: plugin.FaultTrap}, say("a")}, 0, 1, true, 0, 0},
		{"an empty answer is", []any{say(" \n"), say("a")}, 0, 2, false, 250 * time.Millisecond, 750 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				p := &script{answers: tt.answers}
				spec := r.spec(p, 1, 1)
				spec.MaxWait = tt.maxWait
				began := time.Now()
				_, err := r.open("s").Run(context.Background(), spec)
				took := time.Since(began)
				if p.calls.Load() != tt.calls || (err != nil) != tt.fails {
					t.Errorf("got %v after %d calls, want a failure: %v, after %d (L-18)", err, p.calls.Load(), tt.fails, tt.calls)
				}
				if took < tt.least || took > tt.most {
					t.Errorf("it took %v, want %v to %v", took, tt.least, tt.most)
				}
				if n, want := r.count(host.EventRetryScheduled), int(tt.calls-1); n != want {
					t.Errorf("got %d retry_scheduled events, want %d", n, want)
				}
				l := r.stored("s").Loop
				if l.RoundsStarted != 1 {
					t.Errorf("got %d rounds, want 1: a retry belongs to its round", l.RoundsStarted)
				}
				if failed, ok := errors.AsType[*host.FailedError](err); tt.fails && (!ok || failed.Code != loop.ReasonProvider || failed.Err == nil || l.Reason == "") {
					t.Errorf("got %v with the reason %q, want a failure of the provider that wraps its cause (L-18)", err, l.Reason)
				}
			})
		})
	}
}

func TestAnAnswerThatWasCutIsNeverACompletedIteration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		calls := 0
		one := uint64(1)
		p := plugin.FuncProvider{Name: "p", Fn: func(context.Context, plugin.Session, *plugin.Request, func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
			calls++
			finish := pluginapi.FinishLength
			if calls == 3 {
				finish = pluginapi.FinishStop
			}
			return &pluginapi.ProviderResult{Message: say("half"), Finish: finish, Usage: &pluginapi.Usage{InputTokens: &one, OutputTokens: &one}}, nil
		}}
		res, err := r.open("s").Run(context.Background(), r.spec(p, 1, 1))
		if err != nil || calls != 3 {
			t.Fatalf("got %v after %d calls, want success after 3", err, calls)
		}
		if n := len(r.messages("s")); n != 2 {
			t.Errorf("got %d messages, want the objective and one answer", n)
		}
		if res.Usage == nil || *res.Usage.InputTokens != 3 || *res.Usage.OutputTokens != 3 {
			t.Errorf("got usage %+v, want 3 and 3: tokens of a refused answer are spent, too", res.Usage)
		}
	})
}

func TestAProviderThatAnswersNothingAtAllFailsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		_, err := r.open("s").Run(context.Background(), r.spec(silent{}, 1, 1))
		if failed, ok := errors.AsType[*host.FailedError](err); !ok || failed.Code != loop.ReasonProvider {
			t.Errorf("got %v, want a failure of the provider", err)
		}
	})
}

// silent breaks its contract: neither an answer nor an error.
type silent struct{}

func (silent) Info() plugin.Info { return plugin.Info{Name: "silent", Isolation: "none"} }

func (silent) Complete(context.Context, plugin.Session, *plugin.Request, func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
	return nil, nil
}

func TestASignalEndsTheWaitForTheNextAttemptAtOnce(t *testing.T) {
	tests := []struct {
		name   string
		signal func(*host.Session) error
		status loop.Status
	}{
		{"a stop", func(s *host.Session) error { return s.Stop("enough") }, loop.Stopped},
		{"a cancel", func(s *host.Session) error { return s.Cancel("enough") }, loop.Cancelled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				s := r.open("s")
				p := &script{answers: []any{fails(pluginapi.FailRateLimited, 9*time.Minute)}}
				spec := r.spec(p, 2, 2)
				spec.MaxWait = time.Hour
				began := time.Now()
				spec.Observer = func(e host.Event) {
					r.observe(e)
					if e.Type == host.EventRetryScheduled {
						time.AfterFunc(time.Minute, func() {
							if err := tt.signal(s); err != nil {
								t.Error(err)
							}
						})
					}
				}
				res, _ := s.Run(context.Background(), spec)
				if took := time.Since(began); res.Status != tt.status || took != time.Minute || p.calls.Load() != 1 {
					t.Errorf("got %s after %v and %d calls, want %s after 1m0s and 1 (S-13)", res.Status, took, p.calls.Load(), tt.status)
				}
			})
		})
	}
}

func TestTokenBudget(t *testing.T) {
	tests := []struct {
		name   string
		budget uint64
		usage  func(n int64) *pluginapi.Usage
		status loop.Status
		rounds uint32
	}{
		{"no budget", 0, twoTokens, loop.Completed, 4},
		{"spent after the second round", 4, twoTokens, loop.BudgetExhausted, 2},
		{"just spent by the last answer", 8, twoTokens, loop.Completed, 4},
		{"spent in the middle of a round", 3, twoTokens, loop.BudgetExhausted, 2},
		{"a budget that can't be kept is spent", 1000, func(int64) *pluginapi.Usage { return nil }, loop.BudgetExhausted, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			var n int64
			p := plugin.FuncProvider{Name: "p", Fn: func(context.Context, plugin.Session, *plugin.Request, func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
				n++
				return &pluginapi.ProviderResult{Message: say("a"), Finish: pluginapi.FinishStop, Usage: tt.usage(n)}, nil
			}}
			spec := r.spec(p, 4, 10)
			spec.MaxTokensTotal = tt.budget
			res, err := r.open("s").Run(context.Background(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != tt.status || res.RoundsStarted != tt.rounds {
				t.Errorf("got %s after %d rounds, want %s after %d", res.Status, res.RoundsStarted, tt.status, tt.rounds)
			}
			if tt.status == loop.BudgetExhausted && res.ReasonCode != loop.ReasonTokens {
				t.Errorf("got reason %q, want tokens", res.ReasonCode)
			}
		})
	}
}

func twoTokens(int64) *pluginapi.Usage {
	one := uint64(1)
	return &pluginapi.Usage{InputTokens: &one, OutputTokens: &one}
}
