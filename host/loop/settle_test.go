package loop

import (
	"fmt"
	"strings"
	"testing"
)

// M-3, the part that is pure: eight statuses, four ways an execution may have gone.
func TestSettlingMatrix(t *testing.T) {
	columns := []struct {
		outcome   Outcome
		suspended bool
	}{{OutcomeOK, false}, {OutcomeOK, true}, {OutcomeFailed, false}, {OutcomeCancelled, false}}
	const (
		C, S, B, X, F, U = Completed, Stopped, BudgetExhausted, Cancelled, Failed, RecoveryUnsupported
	)
	matrix := map[Status][4]Status{
		Running:             {F, U, F, X},
		Finalizing:          {C, U, F, X},
		Completed:           {C, C, F, X},
		Stopped:             {S, S, F, X},
		BudgetExhausted:     {B, B, F, X},
		Cancelled:           {X, X, X, X},
		Failed:              {F, F, F, X},
		RecoveryUnsupported: {U, U, U, X},
	}
	if len(matrix) != len(Statuses()) {
		t.Fatalf("the matrix has %d rows for %d statuses", len(matrix), len(Statuses()))
	}
	for _, before := range Statuses() {
		for i, c := range columns {
			t.Run(fmt.Sprintf("%s, %s, suspended %t", before, c.outcome, c.suspended), func(t *testing.T) {
				was := stateWith(before)
				want := was
				want.Revision++
				want.Status = matrix[before][i]
				if want.Status != before {
					want.ReasonCode, want.Reason = ReasonHost, "because"
				}
				got := Settle(was, c.outcome, c.suspended, ReasonHost, "because")
				if got != want {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
				if err := got.Validate(); err != nil {
					t.Errorf("what was settled can't be stored: %v", err)
				}
				if got := SettledStatus(before, c.outcome, c.suspended); got != want.Status {
					t.Errorf("SettledStatus: got %s, want %s", got, want.Status)
				}
			})
		}
	}
}

// Suspension matters to an execution that went well and to no other (L-22).
func TestSuspensionMattersToOKAlone(t *testing.T) {
	for _, s := range Statuses() {
		for _, o := range []Outcome{OutcomeFailed, OutcomeCancelled} {
			if got, want := SettledStatus(s, o, true), SettledStatus(s, o, false); got != want {
				t.Errorf("%s, %s: got %s while suspended, %s otherwise", s, o, got, want)
			}
		}
	}
}

// A reason that a provider made too long does not make the ending unstorable.
func TestSettlingCutsLongReasons(t *testing.T) {
	got := Settle(stateWith(Running), OutcomeFailed, false, ReasonHost, strings.Repeat("x", 2*MaxReasonBytes))
	if err := got.Validate(); err != nil {
		t.Errorf("got %v", err)
	}
}

// An outcome or status from elsewhere never becomes a success.
func TestUnknownWordsNeverSettleAsSuccess(t *testing.T) {
	if got := SettledStatus(Running, "fine", false); got != Failed {
		t.Errorf("an unknown outcome: got %q, want %q", got, Failed)
	}
	odd := stateWith(Running)
	odd.Status = "paused"
	if err := Settle(odd, OutcomeOK, false, "", "").Validate(); err == nil {
		t.Error("an unknown status settled into a state that may be stored")
	}
}

// L-3 for every status that may be found with every runtime status.
func TestRecoveryPlans(t *testing.T) {
	runtimes := []RuntimeStatus{RuntimeIdle, RuntimeRunning, RuntimeSuspended, RuntimeFinalizing, RuntimeCompleted, RuntimeCancelled, RuntimeFailed}
	mirror := func(rt RuntimeStatus) Recovery {
		if rt == RuntimeCompleted {
			return RecoverNothing
		}
		return RecoverMirror
	}
	always := func(r Recovery) func(RuntimeStatus) Recovery {
		return func(RuntimeStatus) Recovery { return r }
	}
	want := map[Status]func(RuntimeStatus) Recovery{
		Running:             always(RecoverMark),
		Finalizing:          always(RecoverMark),
		Completed:           always(RecoverNothing),
		Stopped:             mirror,
		BudgetExhausted:     mirror,
		Cancelled:           always(RecoverNothing),
		Failed:              always(RecoverNothing),
		RecoveryUnsupported: always(RecoverRefuse),
	}
	for _, status := range Statuses() {
		for _, rts := range runtimes {
			st, rt := stateWith(status), Runtime{Status: rts, ExecutionID: testExecution}
			if got, want := PlanRecovery(&st, rt), want[status](rts); got != want {
				t.Errorf("%s/%s: got %s, want %s", status, rts, got, want)
			}
		}
	}
	for _, rts := range runtimes {
		if got := PlanRecovery(nil, Runtime{Status: rts}); got != RecoverNothing {
			t.Errorf("no loop, runtime %s: got %s", rts, got)
		}
	}
}

func TestRecoveredStates(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  Status
		r       Recovery
		want    func(*State)
		runtime RuntimeStatus
	}{
		{"a running loop is marked", Running, RecoverMark, func(s *State) {
			s.Revision, s.Status, s.ReasonCode = 8, RecoveryUnsupported, ReasonOwnerLost
		}, RuntimeFailed},
		{"a finalizing loop is marked", Finalizing, RecoverMark, func(s *State) {
			s.Revision, s.Status, s.ReasonCode = 8, RecoveryUnsupported, ReasonOwnerLost
		}, RuntimeFailed},
		{"a stopped loop gets its mirror", Stopped, RecoverMirror, func(s *State) { s.Revision = 8 }, RuntimeCompleted},
		{"an exhausted loop gets its mirror", BudgetExhausted, RecoverMirror, func(s *State) { s.Revision = 8 }, RuntimeCompleted},
		{"nothing changes nothing", Completed, RecoverNothing, func(*State) {}, RuntimeFinalizing},
		{"a refusal changes nothing", RecoveryUnsupported, RecoverRefuse, func(*State) {}, RuntimeFinalizing},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := stateWith(c.status)
			want := was
			c.want(&want)
			got, rt := Recovered(was, Runtime{Status: RuntimeFinalizing, ExecutionID: testExecution}, c.r)
			if c.r == RecoverMark {
				if got.Reason == "" || got.Reason == was.Reason {
					t.Errorf("got reason %q; want one that says what happened", got.Reason)
				}
				want.Reason = got.Reason
			}
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if rt.Status != c.runtime || rt.ExecutionID != testExecution {
				t.Errorf("got runtime %+v, want %s of the same execution", rt, c.runtime)
			}
			if err := got.Validate(); err != nil {
				t.Error(err)
			}
			if again := PlanRecovery(&got, rt); again == RecoverMark || again == RecoverMirror {
				t.Errorf("the next owner would do it again: %s", again)
			}
		})
	}
}

func TestResults(t *testing.T) {
	for _, c := range []struct {
		status Status
		code   ReasonCode
		want   Result
	}{
		{Completed, "", ResultCompleted},
		{Completed, ReasonGoalMet, ResultGoalMet},
		{Completed, ReasonGoalUnmet, ResultGoalUnmet},
		{Completed, ReasonRounds, ResultCompleted},
		{Stopped, ReasonOperatorStop, ResultStopped},
		{Stopped, ReasonHookStop, ResultStopped},
		{Stopped, ReasonNoProgress, ResultStopped},
		{Stopped, ReasonGoalMet, ResultGoalMet},
		{Stopped, ReasonGoalUnmet, ResultStopped},
		{BudgetExhausted, ReasonRounds, ResultBudgetExhausted},
		{BudgetExhausted, ReasonWallTime, ResultBudgetExhausted},
		{BudgetExhausted, ReasonGoalMet, ResultBudgetExhausted},
		{Cancelled, ReasonOperatorCancel, ResultCancelled},
		{Cancelled, ReasonGoalMet, ResultCancelled},
		{Failed, ReasonCheckpoint, ResultFailed},
		{Failed, ReasonGoalMet, ResultFailed},
		{RecoveryUnsupported, ReasonOwnerLost, ResultRecoveryUnsupported},
		{Running, "", ResultRunning},
		{Finalizing, ReasonGoalMet, ResultRunning},
		{"paused", ReasonGoalMet, ResultRunning},
	} {
		if got := ResultOf(c.status, c.code); got != c.want {
			t.Errorf("%s, %q: got %s, want %s", c.status, c.code, got, c.want)
		}
	}
}
