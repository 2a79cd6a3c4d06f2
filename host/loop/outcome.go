package loop

// Result is the one word for how a loop ended, which exit codes and reports use.
type Result string

// The results.
const (
	ResultCompleted           Result = "completed"
	ResultGoalMet             Result = "goal_met"
	ResultGoalUnmet           Result = "goal_unmet"
	ResultStopped             Result = "stopped"
	ResultBudgetExhausted     Result = "budget_exhausted"
	ResultCancelled           Result = "cancelled"
	ResultFailed              Result = "failed"
	ResultRecoveryUnsupported Result = "recovery_unsupported"
	ResultRunning             Result = "running" // no ending yet
)

// ResultOf follows from status and reason code alone.
func ResultOf(s Status, code ReasonCode) Result {
	switch s {
	case Completed:
		switch code {
		case ReasonGoalMet:
			return ResultGoalMet
		case ReasonGoalUnmet:
			return ResultGoalUnmet
		}
		return ResultCompleted
	case Stopped:
		if code == ReasonGoalMet {
			return ResultGoalMet
		}
		return ResultStopped
	case BudgetExhausted:
		return ResultBudgetExhausted
	case Cancelled:
		return ResultCancelled
	case Failed:
		return ResultFailed
	case RecoveryUnsupported:
		return ResultRecoveryUnsupported
	}
	return ResultRunning
}
