package loop

import "slices"

// Stay, as a transition's destination, keeps the phase.
const Stay Phase = ""

// Transition is one row of the machine. The first row that matches is taken.
type Transition struct {
	From []Phase
	On   EventKind
	// If guards the row; the zero value always holds.
	If   Guard
	To   Phase
	Do   func(*Machine, Event) []Effect // may be nil
	Rule string                         // the rules this row implements
}

// Guard is a named condition.
type Guard struct {
	Name string
	Test func(*Machine, Event) bool
}

func (t *Transition) matches(m *Machine, ev Event) bool {
	if t.On != ev.Kind || (t.If.Test != nil && !t.If.Test(m, ev)) {
		return false
	}
	return slices.Contains(t.From, m.phase)
}

// Transitions lists the rows of the machine in the order they are tried; the list is the caller's own.
func Transitions() []Transition {
	out := slices.Clone(transitions)
	for i := range out {
		out[i].From = slices.Clone(out[i].From)
	}
	return out
}

// The conditions.
var (
	ifCancelled = Guard{"cancel raised", func(m *Machine, _ Event) bool { return m.cancel != nil }}
	ifAllDone   = Guard{"all iterations complete, no deny pending", func(m *Machine, _ Event) bool { return m.allDone() }}
	ifHalted    = Guard{"stop raised", func(m *Machine, _ Event) bool { return m.halt != nil }}
	ifSpent     = Guard{"a budget is spent", func(m *Machine, _ Event) bool { return m.roundsSpent() || m.spent != nil }}
	ifExpired   = Guard{"drain expired", func(m *Machine, _ Event) bool { return m.expired }}
	ifToolCalls = Guard{"with tool calls", func(_ *Machine, ev Event) bool { return ev.ToolCalls }}
	ifMustClose = Guard{"after-round hook or verifier subscribed", func(m *Machine, _ Event) bool { return m.subscribed() }}
	ifCutOff    = Guard{"stop raised, work remains, subscribed", func(m *Machine, _ Event) bool {
		return m.halt != nil && m.subscribed() && m.workRemainsAfterAnswer()
	}}
	ifExpiredCalls = Guard{"with tool calls, drain expired", func(m *Machine, ev Event) bool { return ev.ToolCalls && m.expired }}
	ifVerify       = Guard{"iteration complete, verifier subscribed, drain not expired", func(m *Machine, _ Event) bool {
		return m.complete && m.cfg.Verifier && !m.expired
	}}
	ifReview = Guard{"after-round hook subscribed, drain not expired", func(m *Machine, _ Event) bool {
		return m.cfg.AfterRound && !m.expired
	}}
	ifBounded      = Guard{"status is bounded", func(m *Machine, _ Event) bool { return m.state.Status.Bounded() }}
	ifBoundedClose = Guard{"cut off at the round's end, verifier subscribed, drain not expired", func(m *Machine, _ Event) bool {
		return m.cutOff && m.cfg.Verifier && !m.expired
	}}
	ifBoundedReview = Guard{"cut off at the round's end, after-round hook subscribed, drain not expired", func(m *Machine, _ Event) bool {
		return m.cutOff && m.cfg.AfterRound && !m.expired
	}}
	ifLateCancel = Guard{"cancel raised over a failure", func(m *Machine, _ Event) bool {
		return m.cancel != nil && m.state.Status != Cancelled
	}}
	ifSixthDeny = Guard{"the sixth in a row", func(m *Machine, _ Event) bool { return m.denies >= MaxFinalizeDenies }}
)

// working are the phases with an effect that EffectInterrupt cuts off.
var working = []Phase{Preparing, Calling, Guarding, Working, Verifying, Reviewing, Concluding}

// hooking are those in which hooks run.
var hooking = []Phase{Preparing, Calling, Guarding, Working, Reviewing, Concluding}

// committing are the phases with a checkpoint under way whose failure is L-19's.
var committing = []Phase{Starting, Admitting, Securing, Closing, Bounding, Mirroring, Ending}

// open are the phases in which a signal still counts.
var open = []Phase{Starting, Preparing, Admitting, Calling, Guarding, Securing, Working, Closing, Verifying, Reviewing, Concluding, Bounding, Mirroring}

// transitions is the machine. It is filled once and never changes.
var transitions = []Transition{
	{From: []Phase{Idle}, On: EvStart, To: Starting, Do: begin, Rule: "L-5"},
	{From: []Phase{Starting}, On: EvCheckpointDone, To: Gate, Do: acknowledged, Rule: "L-5"},

	{From: []Phase{Gate}, On: EvAuto, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-7 L-17"},
	{From: []Phase{Gate}, On: EvAuto, If: ifExpired, To: Bounding, Do: boundHalted, Rule: "L-7 L-14"},
	{From: []Phase{Gate}, On: EvAuto, If: ifAllDone, To: Concluding, Do: ask(EffectFinalize), Rule: "L-13 L-16"},
	{From: []Phase{Gate}, On: EvAuto, If: ifHalted, To: Bounding, Do: boundHalted, Rule: "L-7 L-14"},
	{From: []Phase{Gate}, On: EvAuto, If: ifSpent, To: Bounding, Do: boundSpent, Rule: "L-7 L-14"},
	{From: []Phase{Gate}, On: EvAuto, To: Preparing, Do: prepare, Rule: "L-7"},

	{From: []Phase{Preparing}, On: EvPrepared, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Preparing}, On: EvPrepared, If: ifHalted, To: Bounding, Do: boundHalted, Rule: "L-7"},
	{From: []Phase{Preparing}, On: EvPrepared, If: ifSpent, To: Bounding, Do: boundSpent, Rule: "L-7"},
	{From: []Phase{Preparing}, On: EvPrepared, To: Admitting, Do: admit, Rule: "L-6"},
	{From: []Phase{Admitting}, On: EvCheckpointDone, If: ifCancelled, To: Ending, Do: ackThen(endCancelled), Rule: "L-17"},
	{From: []Phase{Admitting}, On: EvCheckpointDone, If: ifExpired, To: Bounding, Do: ackThen(boundHalted), Rule: "L-14"},
	{From: []Phase{Admitting}, On: EvCheckpointDone, To: Calling, Do: ackThen(call), Rule: "L-6 S-13"},

	{From: []Phase{Calling}, On: EvAnswered, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Calling}, On: EvAnswered, If: ifExpiredCalls, To: Bounding, Do: boundHalted, Rule: "L-9 L-14"},
	{From: []Phase{Calling}, On: EvAnswered, If: ifToolCalls, To: Guarding, Do: ask(EffectGuardTools), Rule: "L-9"},
	{From: []Phase{Calling}, On: EvAnswered, If: ifCutOff, To: Bounding, Do: completeAndBound, Rule: "L-10"},
	{From: []Phase{Calling}, On: EvAnswered, If: ifMustClose, To: Closing, Do: completeAndClose, Rule: "L-10 L-11"},
	{From: []Phase{Calling}, On: EvAnswered, To: Gate, Do: completeOnly, Rule: "L-10 L-25"},
	{From: []Phase{Calling}, On: EvProviderFailed, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Calling}, On: EvProviderFailed, To: Ending, Do: endFailed(ReasonProvider), Rule: "L-18"},

	{From: []Phase{Guarding}, On: EvToolsGuarded, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Guarding}, On: EvToolsGuarded, If: ifExpired, To: Bounding, Do: boundHalted, Rule: "L-9 L-14"},
	{From: []Phase{Guarding}, On: EvToolsGuarded, To: Securing, Do: commit(CheckpointTools), Rule: "L-9"},
	{From: []Phase{Securing}, On: EvCheckpointDone, If: ifCancelled, To: Ending, Do: ackThen(endCancelled), Rule: "L-17"},
	{From: []Phase{Securing}, On: EvCheckpointDone, If: ifExpired, To: Bounding, Do: ackThen(boundHalted), Rule: "L-9 L-14"},
	{From: []Phase{Securing}, On: EvCheckpointDone, To: Working, Do: ackThen(ask(EffectRunTools)), Rule: "L-9"},
	{From: []Phase{Working}, On: EvToolsDone, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Working}, On: EvToolsDone, If: ifMustClose, To: Closing, Do: closeTools, Rule: "L-25"},
	{From: []Phase{Working}, On: EvToolsDone, To: Gate, Rule: "L-25"},

	{From: []Phase{Closing}, On: EvCheckpointDone, If: ifCancelled, To: Ending, Do: ackThen(endCancelled), Rule: "L-17"},
	{From: []Phase{Closing}, On: EvCheckpointDone, If: ifVerify, To: Verifying, Do: ackThen(ask(EffectVerify)), Rule: "L-27"},
	{From: []Phase{Closing}, On: EvCheckpointDone, If: ifReview, To: Reviewing, Do: ackThen(ask(EffectReview)), Rule: "L-11"},
	{From: []Phase{Closing}, On: EvCheckpointDone, To: Gate, Do: acknowledged, Rule: "L-25"},
	{From: []Phase{Verifying}, On: EvVerified, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Verifying}, On: EvVerified, If: ifReview, To: Reviewing, Do: verdictThen(ask(EffectReview)), Rule: "L-27"},
	{From: []Phase{Verifying}, On: EvVerified, If: ifBounded, To: Mirroring, Do: verdictThen(mirror), Rule: "L-14 L-27"},
	{From: []Phase{Verifying}, On: EvVerified, To: Gate, Do: verdict, Rule: "L-27"},
	{From: []Phase{Verifying}, On: EvVerifierFailed, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Verifying}, On: EvVerifierFailed, To: Ending, Do: endFailed(ReasonVerifier), Rule: "L-27"},
	{From: []Phase{Reviewing}, On: EvReviewed, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Reviewing}, On: EvReviewed, If: ifBounded, To: Mirroring, Do: mirror, Rule: "L-14"},
	{From: []Phase{Reviewing}, On: EvReviewed, To: Gate, Rule: "L-11"},

	{From: []Phase{Concluding}, On: EvFinalizePassed, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Concluding}, On: EvFinalizePassed, To: Bounding, Do: boundFinalizing, Rule: "L-13"},
	{From: []Phase{Concluding}, On: EvFinalizeDenied, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Concluding}, On: EvFinalizeDenied, If: ifSixthDeny, To: Ending, Do: endFailed(ReasonFinalizeDenied), Rule: "L-13"},
	{From: []Phase{Concluding}, On: EvFinalizeDenied, To: Gate, Do: denied, Rule: "L-13"},

	{From: []Phase{Bounding}, On: EvCheckpointDone, If: ifCancelled, To: Ending, Do: ackThen(endCancelled), Rule: "L-17"},
	{From: []Phase{Bounding}, On: EvCheckpointDone, If: ifBoundedClose, To: Verifying, Do: ackThen(ask(EffectVerify)), Rule: "L-10 L-27"},
	{From: []Phase{Bounding}, On: EvCheckpointDone, If: ifBoundedReview, To: Reviewing, Do: ackThen(ask(EffectReview)), Rule: "L-10 L-11"},
	{From: []Phase{Bounding}, On: EvCheckpointDone, To: Mirroring, Do: ackThen(mirror), Rule: "L-13 L-14"},
	{From: []Phase{Mirroring}, On: EvCheckpointDone, If: ifCancelled, To: Ending, Do: ackThen(endCancelled), Rule: "L-17"},
	{From: []Phase{Mirroring}, On: EvCheckpointDone, To: Done, Do: ackThen(end(PublishComplete)), Rule: "L-15"},
	{From: []Phase{Ending}, On: EvCheckpointDone, If: ifLateCancel, To: Ending, Do: ackThen(endCancelled), Rule: "L-17"},
	{From: []Phase{Ending}, On: EvCheckpointDone, To: Done, Do: ackThen(endAsIs), Rule: "L-12 L-17 L-18"},

	{From: committing, On: EvCheckpointFailed, To: Settling, Do: settle, Rule: "L-19 L-20"},
	{From: []Phase{Settling}, On: EvSettled, To: Done, Do: ackThen(endAsIs), Rule: "L-20"},
	{From: []Phase{Settling}, On: EvSettleFailed, To: Done, Do: end(""), Rule: "L-20"},

	{From: hooking, On: EvHookAborted, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: hooking, On: EvHookAborted, To: Ending, Do: endFailed(ReasonHookAbort), Rule: "L-12 L-13"},
	{From: []Phase{Preparing}, On: EvHookDenied, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Preparing}, On: EvHookDenied, To: Ending, Do: endFailed(ReasonHookDeny), Rule: "L-7"},
	{From: working, On: EvHostFailed, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: working, On: EvHostFailed, To: Ending, Do: endFailed(ReasonHost), Rule: "L-18"},
	{From: working, On: EvInterrupted, If: ifCancelled, To: Ending, Do: endCancelled, Rule: "L-17"},
	{From: []Phase{Verifying, Reviewing}, On: EvInterrupted, If: ifBounded, To: Mirroring, Do: mirror, Rule: "L-14"},
	{From: working, On: EvInterrupted, If: ifHalted, To: Bounding, Do: boundHalted, Rule: "L-14"},

	{From: open, On: EvStop, To: Stay, Do: raiseStop, Rule: "L-7 S-13"},
	{From: open, On: EvWallTime, To: Stay, Do: raiseWallTime, Rule: "L-7"},
	{From: open, On: EvBudgetSpent, To: Stay, Do: raiseSpent, Rule: "L-7"},
	{From: working, On: EvExpire, If: ifHalted, To: Stay, Do: expireNow, Rule: "L-7"},
	{From: working, On: EvCancel, To: Stay, Do: cancelNow, Rule: "L-17"},
	{From: committing, On: EvCancel, To: Stay, Do: raiseCancel, Rule: "L-17"},
	{From: working, On: EvFenced, To: Done, Do: fencedNow, Rule: "L-21"},
	{From: append([]Phase{Settling}, committing...), On: EvFenced, To: Done, Do: fencedAtCommit, Rule: "L-21"},
	{From: []Phase{Ending, Settling}, On: EvStop, To: Stay, Rule: "L-17"},
	{From: []Phase{Settling}, On: EvCancel, To: Stay, Rule: "L-17"},
	{From: []Phase{Ending, Settling}, On: EvWallTime, To: Stay, Rule: "L-17"},
	{From: []Phase{Ending, Settling}, On: EvBudgetSpent, To: Stay, Rule: "L-17"},
	{From: committing, On: EvExpire, To: Stay, Do: expire, Rule: "L-7"},
	{From: []Phase{Settling}, On: EvExpire, To: Stay, Rule: "L-17"},
}
