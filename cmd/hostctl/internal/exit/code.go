// Package exit says how the command ends: the exit codes, the one word for an
// ending, and the error that scripts match. It is the only place that names exit
// codes; everything else asks Of.
package exit

// Code is a process's exit code. The numbers are a contract; they never change.
type Code int

// The exit codes.
const (
	OK                  Code = 0   // completed, or stopped because the verifier passed
	Error               Code = 1   // any other error: not found, not running, …
	Usage               Code = 2   // flags, arguments, bounds, an invalid id
	Stopped             Code = 10  // stopped before all work was done
	BudgetExhausted     Code = 11  // rounds, tokens or time are used up
	Cancelled           Code = 12  // cancelled
	Failed              Code = 13  // failed, and that is durable; or a plugin can't be loaded or is not approved
	Fenced              Code = 14  // another owner took over
	Busy                Code = 15  // another owner is live
	RecoveryUnsupported Code = 16  // an earlier run died in the middle
	StoreError          Code = 17  // the ending is not known to be durable, or the record can't be read
	GoalUnmet           Code = 18  // all iterations done, the verifier never passed
	Submitted           Code = 20  // tickets: a result waits for acceptance
	NeedsPerson         Code = 21  // tickets: a draft, a block or a stop that nothing proves waits for a person
	UnderWay            Code = 22  // tickets: work goes on; what was waited for has not happened yet
	Interrupted         Code = 130 // left at once on a signal; the next start says what happened
)

// Outcome is the one word for an ending in JSON.
type Outcome string

// The outcomes.
const (
	OutcomeCompleted           Outcome = "completed"
	OutcomeGoalMet             Outcome = "goal_met"
	OutcomeGoalUnmet           Outcome = "goal_unmet"
	OutcomeStopped             Outcome = "stopped"
	OutcomeBudgetExhausted     Outcome = "budget_exhausted"
	OutcomeCancelled           Outcome = "cancelled"
	OutcomeFailed              Outcome = "failed"
	OutcomeFenced              Outcome = "fenced"
	OutcomeBusy                Outcome = "busy"
	OutcomeRecoveryUnsupported Outcome = "recovery_unsupported"
	OutcomeStoreError          Outcome = "store_error"
	OutcomeUsageError          Outcome = "usage_error"
	OutcomeError               Outcome = "error"

	// Of tickets; failed and cancelled are theirs too.
	OutcomeAccepted    Outcome = "accepted"
	OutcomeSubmitted   Outcome = "submitted"
	OutcomeNeedsPerson Outcome = "needs_person"
	OutcomeUnderWay    Outcome = "under_way"
)

// CodeOf is the exit code of an outcome.
func CodeOf(o Outcome) Code {
	switch o {
	case OutcomeCompleted, OutcomeGoalMet, OutcomeAccepted:
		return OK
	case OutcomeUsageError:
		return Usage
	case OutcomeStopped:
		return Stopped
	case OutcomeBudgetExhausted:
		return BudgetExhausted
	case OutcomeCancelled:
		return Cancelled
	case OutcomeFailed:
		return Failed
	case OutcomeFenced:
		return Fenced
	case OutcomeBusy:
		return Busy
	case OutcomeRecoveryUnsupported:
		return RecoveryUnsupported
	case OutcomeStoreError:
		return StoreError
	case OutcomeGoalUnmet:
		return GoalUnmet
	case OutcomeSubmitted:
		return Submitted
	case OutcomeNeedsPerson:
		return NeedsPerson
	case OutcomeUnderWay:
		return UnderWay
	}
	return Error
}
