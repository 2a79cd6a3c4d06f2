package loop

// Outcome is how an execution went, for settling (L-22).
type Outcome string

// The outcomes.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeFailed    Outcome = "failed"
	OutcomeCancelled Outcome = "cancelled"
)

// settled is the settling table (L-22): per status, the status after ok, ok
// while suspended, failed, cancelled.
var settled = map[Status][4]Status{
	Running:             {Failed, RecoveryUnsupported, Failed, Cancelled},
	Finalizing:          {Completed, RecoveryUnsupported, Failed, Cancelled},
	Completed:           {Completed, Completed, Failed, Cancelled},
	Stopped:             {Stopped, Stopped, Failed, Cancelled},
	BudgetExhausted:     {BudgetExhausted, BudgetExhausted, Failed, Cancelled},
	Cancelled:           {Cancelled, Cancelled, Cancelled, Cancelled},
	Failed:              {Failed, Failed, Failed, Cancelled},
	RecoveryUnsupported: {RecoveryUnsupported, RecoveryUnsupported, RecoveryUnsupported, Cancelled},
}

// SettledStatus is the status that L-22 gives a loop of status s whose
// execution ended with o; suspended is whether the runtime is suspended.
func SettledStatus(s Status, o Outcome, suspended bool) Status {
	column := 2
	switch {
	case o == OutcomeOK && !suspended:
		column = 0
	case o == OutcomeOK:
		column = 1
	case o == OutcomeCancelled:
		column = 3
	}
	return settled[s][column]
}

// Settle is the state after an execution ended with o. Counters and generation
// stay; the loop's revision grows, also where the status stays (L-22). The
// reason is replaced only where the status changes.
func Settle(s State, o Outcome, suspended bool, code ReasonCode, reason string) State {
	next := SettledStatus(s.Status, o, suspended)
	if next != s.Status {
		s.ReasonCode, s.Reason = code, clip(reason)
	}
	s.Status = next
	s.Revision++
	return s
}
