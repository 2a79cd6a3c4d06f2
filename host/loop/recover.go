package loop

// Recovery is what a new owner does with the loop it finds in a session (L-3).
type Recovery string

// The recoveries.
const (
	RecoverNothing Recovery = "nothing" // no loop, or one that ended whole: a new one may start (L-4)
	RecoverMirror  Recovery = "mirror"  // write the final mirror that is missing, without an event
	RecoverMark    Recovery = "mark"    // checkpoint recovery_unsupported, then refuse
	RecoverRefuse  Recovery = "refuse"  // it is recovery_unsupported already: refuse
)

// PlanRecovery says what to do with the loop s (nil: none) and runtime rt of a
// session whose owner is gone.
func PlanRecovery(s *State, rt Runtime) Recovery {
	switch {
	case s == nil:
		return RecoverNothing
	case !s.Status.Terminal():
		return RecoverMark
	case s.Status == RecoveryUnsupported:
		return RecoverRefuse
	case s.Status.Bounded() && rt.Status != RuntimeCompleted:
		return RecoverMirror
	}
	return RecoverNothing
}

// Recovered is the state and runtime that recovery r checkpoints. Counters and
// generation stay; the recoveries nothing and refuse change nothing.
func Recovered(s State, rt Runtime, r Recovery) (State, Runtime) {
	switch r {
	case RecoverMark:
		s.Revision++
		s.Status, s.ReasonCode = RecoveryUnsupported, ReasonOwnerLost
		s.Reason = "the execution that ran this loop ended without an ending"
		rt.Status = RuntimeFailed
	case RecoverMirror:
		s.Revision++
		rt.Status = RuntimeCompleted
	}
	return s, rt
}
