package exit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
)

// TestCodesAreAContract fails when somebody renumbers: scripts depend on these.
func TestCodesAreAContract(t *testing.T) {
	for outcome, want := range map[exit.Outcome]exit.Code{
		"completed": 0, "goal_met": 0, "error": 1, "usage_error": 2, "stopped": 10, "budget_exhausted": 11, "cancelled": 12,
		"failed": 13, "fenced": 14, "busy": 15, "recovery_unsupported": 16, "store_error": 17, "goal_unmet": 18,
	} {
		if got := exit.CodeOf(outcome); got != want {
			t.Errorf("%s: got %d, want %d", outcome, got, want)
		}
	}
}

func TestAnEndingWithoutError(t *testing.T) {
	cases := []struct {
		status  loop.Status
		reason  loop.ReasonCode
		outcome exit.Outcome
		kind    string // of the error; "": none
	}{
		{loop.Completed, "", exit.OutcomeCompleted, ""},
		{loop.Completed, loop.ReasonGoalMet, exit.OutcomeGoalMet, ""},
		{loop.Completed, loop.ReasonGoalUnmet, exit.OutcomeGoalUnmet, ""},
		{loop.Stopped, loop.ReasonGoalMet, exit.OutcomeGoalMet, ""},
		{loop.Stopped, loop.ReasonOperatorStop, exit.OutcomeStopped, ""},
		{loop.Stopped, loop.ReasonHookStop, exit.OutcomeStopped, ""},
		{loop.BudgetExhausted, loop.ReasonRounds, exit.OutcomeBudgetExhausted, ""},
		{loop.BudgetExhausted, loop.ReasonWallTime, exit.OutcomeBudgetExhausted, ""},
		{loop.Cancelled, loop.ReasonOperatorCancel, exit.OutcomeCancelled, "cancelled"},
		{loop.Failed, loop.ReasonProvider, exit.OutcomeFailed, "provider"},
		{loop.Failed, "", exit.OutcomeFailed, "failed"},
		{loop.RecoveryUnsupported, loop.ReasonOwnerLost, exit.OutcomeRecoveryUnsupported, "recovery_unsupported"},
		{loop.Running, "", exit.OutcomeStoreError, "unknown_outcome"},
		{"", "", exit.OutcomeStoreError, "unknown_outcome"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s because of %q", c.status, c.reason), func(t *testing.T) {
			v := exit.Of(host.Result{SessionID: "s", Status: c.status, ReasonCode: c.reason}, nil, exit.Hints{})
			check(t, v, c.outcome, c.kind)
		})
	}
}

func TestAnEndingWithAnError(t *testing.T) {
	stored := func(kind error) error { return &store.Error{Op: "load", Key: store.SessionKey("s"), Kind: kind} }
	state := loop.State{Status: loop.RecoveryUnsupported, MaxIterations: 3, MaxTotalRounds: 9, IterationsStarted: 2}
	bounds := &loop.BoundsError{Field: "rounds", Value: "0", Want: "1 to 1000"}
	cases := []struct {
		name    string
		err     error
		outcome exit.Outcome
		kind    string
	}{
		{"a call that makes no sense", exit.Usagef("what"), exit.OutcomeUsageError, "usage"},
		{"a bound", bounds, exit.OutcomeUsageError, "bounds"},
		{"an invalid id", stored(store.ErrInvalidID), exit.OutcomeUsageError, "invalid_id"},
		{"a stored state that breaks a bound is unreadable, not a wrong call", fmt.Errorf("%w: %w", loop.ErrState, bounds), exit.OutcomeStoreError, "unusable_state"},
		{"a plugin that can't be loaded", &exit.PluginError{Plugin: "x", Err: errors.New("why")}, exit.OutcomeFailed, "plugin"},
		{"what is not approved", &exit.NotApprovedError{File: "f", Wants: []string{"--until x"}}, exit.OutcomeFailed, "not_approved"},
		{"another owner is live", stored(store.ErrBusy), exit.OutcomeBusy, "busy"},
		{"an owner that died", &host.RecoveryError{Session: "s", State: state}, exit.OutcomeRecoveryUnsupported, "recovery_unsupported"},
		{"a failed checkpoint that is known to be recorded", &host.CheckpointError{Session: "s", Err: stored(store.ErrUnavailable)}, exit.OutcomeFailed, "checkpoint"},
		{"a failed checkpoint that is not", &host.CheckpointError{Session: "s", Unknown: true, Err: stored(store.ErrUnavailable)}, exit.OutcomeStoreError, "checkpoint"},
		{"fenced", fmt.Errorf("run: %w", stored(store.ErrFenced)), exit.OutcomeFenced, "fenced"},
		{"fenced wins over a failed checkpoint", &host.CheckpointError{Session: "s", Err: stored(store.ErrFenced)}, exit.OutcomeFenced, "fenced"},
		{"cancelled", fmt.Errorf("run: %w", host.ErrCancelled), exit.OutcomeCancelled, "cancelled"},
		{"failed", &host.FailedError{Session: "s", Code: loop.ReasonHookAbort, Reason: "no"}, exit.OutcomeFailed, "hook_abort"},
		{"failed because of a store error inside a tool's cause", &host.FailedError{Session: "s", Code: loop.ReasonHost, Err: stored(store.ErrCorrupt)}, exit.OutcomeFailed, "host"},
		{"a child session", host.ErrChild, exit.OutcomeError, "child_session"},
		{"not running", host.ErrNotRunning, exit.OutcomeError, "not_running"},
		{"not found", stored(store.ErrNotFound), exit.OutcomeError, "not_found"},
		{"exists", stored(store.ErrExists), exit.OutcomeError, "exists"},
		{"too large", stored(store.ErrTooLarge), exit.OutcomeError, "too_large"},
		{"corrupt because of an invalid id", &store.Error{Op: "list", Kind: store.ErrCorrupt, Err: stored(store.ErrInvalidID)}, exit.OutcomeStoreError, "corrupt"},
		{"unsupported", stored(store.ErrUnsupported), exit.OutcomeStoreError, "unsupported"},
		{"corrupt", stored(store.ErrCorrupt), exit.OutcomeStoreError, "corrupt"},
		{"regressed", stored(store.ErrRegressed), exit.OutcomeStoreError, "regressed"},
		{"not durable enough", stored(store.ErrNotDurable), exit.OutcomeStoreError, "not_durable"},
		{"unavailable", stored(store.ErrUnavailable), exit.OutcomeStoreError, "unavailable"},
		{"unknown outcome", stored(store.ErrUnknownOutcome), exit.OutcomeStoreError, "unknown_outcome"},
		{"conflict", stored(store.ErrConflict), exit.OutcomeStoreError, "conflict"},
		{"commit id reused", stored(store.ErrCommitIDReused), exit.OutcomeStoreError, "commit_id_reused"},
		{"a damaged export", fmt.Errorf("%w: %w", host.ErrExport, loop.ErrState), exit.OutcomeError, "bad_export"},
		{"a check that found damage", &exit.CheckError{Text: "x", Damaged: true}, exit.OutcomeStoreError, "corrupt"},
		{"a suite that failed", &exit.CheckError{Text: "x"}, exit.OutcomeError, "conformance"},
		{"another session than expected", &host.MismatchError{Session: "s", Field: "birth"}, exit.OutcomeError, "mismatch"},
		{"anything else", errors.New("oops"), exit.OutcomeError, "error"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := exit.Of(host.Result{SessionID: "s", Status: loop.Completed}, c.err, exit.Hints{})
			check(t, v, c.outcome, c.kind)
		})
	}
}

func check(t *testing.T, v exit.Verdict, outcome exit.Outcome, kind string) {
	t.Helper()
	got := ""
	if v.Error != nil {
		got = v.Error.Kind
		if v.Error.Message == "" || strings.Contains(v.Error.Message, "\n") {
			t.Errorf("message is %q; want one line", v.Error.Message)
		}
	}
	if v.Outcome != outcome || v.Code != exit.CodeOf(outcome) || got != kind {
		t.Errorf("got %s, code %d, kind %q; want %s, code %d, kind %q", v.Outcome, v.Code, got, outcome, exit.CodeOf(outcome), kind)
	}
}

func TestASignalBeforeTheRunIsExit130(t *testing.T) {
	for _, err := range []error{exit.ErrInterrupted, context.Canceled} {
		v := exit.Of(host.Result{}, err, exit.Hints{})
		if v.Code != exit.Interrupted || v.Outcome != exit.OutcomeError || v.Error.Kind != "interrupted" {
			t.Errorf("%v: got %+v, want code %d", err, v, exit.Interrupted)
		}
	}
}

func TestEveryStoreErrorHasAKind(t *testing.T) {
	for _, kind := range []error{
		store.ErrInvalidID, store.ErrTooLarge, store.ErrNotFound, store.ErrCommitIDReused, store.ErrFenced, store.ErrConflict, store.ErrBusy,
		store.ErrExists, store.ErrCorrupt, store.ErrRegressed, store.ErrNotDurable, store.ErrUnknownOutcome, store.ErrUnavailable, store.ErrUnsupported,
	} {
		v := exit.Of(host.Result{}, &store.Error{Op: "x", Kind: kind}, exit.Hints{})
		if v.Error.Kind == "error" {
			t.Errorf("%v has no kind of its own", kind)
		}
	}
}

func TestMessagesSayWhatToDoNext(t *testing.T) {
	hints := exit.Hints{Store: "fs:/srv/my store"}
	holder := store.Holder{Fence: store.Fence{Owner: "box:1", Run: "r1"}, PID: 42}
	cases := []struct {
		name string
		err  error
		want []string
	}{
		{
			"busy names the holder", &store.Error{Op: "acquire", Key: store.SessionKey("it's"), Kind: store.ErrBusy, Holder: holder},
			[]string{"owner box:1, pid 42, execution r1", `hostctl session events --store 'fs:/srv/my store' --follow 'it'\''s'`},
		},
		{
			"recovery names both ways on", &host.RecoveryError{Session: "s"},
			[]string{`hostctl run --store 'fs:/srv/my store' --resume=s --new-loop PROMPT`, "session fork"},
		},
		{
			"fenced names the new owner", &store.Error{Op: "commit", Key: store.SessionKey("-s"), Kind: store.ErrFenced, Fence: holder.Fence},
			[]string{"taken over by box:1", "-- '-s'"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := exit.Of(host.Result{}, c.err, hints).Error
			for _, want := range c.want {
				if !strings.Contains(p.Message, want) {
					t.Errorf("got %q, want %q in it", p.Message, want)
				}
			}
			if p.Headline() == p.Message || strings.Contains(p.Headline(), p.Next) {
				t.Errorf("headline is %q; want it without the next step %q", p.Headline(), p.Next)
			}
		})
	}
}
