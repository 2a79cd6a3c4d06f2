package ticket

import "slices"

// Move is one row of a table: from any of From, on On, if the guard holds, to To.
// The first row that matches is taken.
type Move[S ~string] struct {
	From []S // empty: it begins there
	On   string
	If   string // in words; "" always holds
	To   []S    // one state, or those of which the record says one
	Rule string
}

// What moves a ticket or an assignment.
const (
	onCreate      = "create"
	onRevise      = "revise"
	onReady       = "ready"
	onStart       = "start"
	onPause       = "pause"
	onResume      = "resume"
	onBlock       = "block"
	onUnblock     = "unblock"
	onCancel      = "cancel"
	onAccept      = "accept"
	onReject      = "reject"
	onReopen      = "reopen"
	onAttemptOver = "attempt over"
	onSubmit      = "submit"
	onAdmit       = "admit"
	onRun         = "run"
	onFail        = "fail"
	onStopFailed  = "stop, not completed"
	onStopDone    = "stop, completed"
	onConfirm     = "confirm stopped"
	onLost        = "lost"
	onClaim       = "claim"
	onSucceed     = "succeed"
)

const (
	ifAttemptsLeft  = "attempts are left"
	ifAttemptsSpent = "all attempts are spent"
	ifIdentical     = "the same claim"
	ifExpired       = "the lease ran out"
)

var (
	unfinished = []TicketState{Draft, Ready, Active, Submitted, Blocked}
	workable   = []TicketState{Draft, Ready, Active}
)

// ticketMoves is a ticket's table. It is filled once and never changes.
var ticketMoves = []Move[TicketState]{
	{On: onCreate, To: []TicketState{Draft}, Rule: "T-1"},
	{From: []TicketState{Draft, Ready, Active, Blocked}, On: onRevise, Rule: "T-8"},
	{From: []TicketState{Draft}, On: onReady, To: []TicketState{Ready}, Rule: "T-2"},
	{From: []TicketState{Ready}, On: onStart, If: "not paused, dependencies accepted, the stop before proved", To: []TicketState{Active}, Rule: "T-15"},
	{From: unfinished, On: onPause, Rule: "T-2"},
	{From: unfinished, On: onResume, Rule: "T-2"},
	{From: workable, On: onBlock, To: []TicketState{Blocked}, Rule: "T-5"},
	{From: []TicketState{Blocked}, On: onUnblock, To: []TicketState{Draft, Ready, Active, Submitted}, Rule: "T-2"},
	{From: unfinished, On: onCancel, To: []TicketState{Cancelled}, Rule: "T-8"},
	{From: []TicketState{Active}, On: onSubmit, If: "not stale", To: []TicketState{Submitted}, Rule: "T-7 T-8"},
	{From: []TicketState{Active}, On: onAttemptOver, If: ifAttemptsLeft, To: []TicketState{Ready}, Rule: "T-9 T-15"},
	{From: []TicketState{Active}, On: onAttemptOver, If: ifAttemptsSpent, To: []TicketState{Blocked}, Rule: "T-9 T-15"},
	{From: []TicketState{Submitted}, On: onAccept, To: []TicketState{Accepted}, Rule: "T-4"},
	{From: []TicketState{Submitted}, On: onReject, To: []TicketState{Ready}, Rule: "T-4"},
	{From: []TicketState{Accepted, Cancelled}, On: onReopen, To: []TicketState{Ready}, Rule: "T-8"},
}

var atWork = []AssignmentState{Admitted, Running, AssignmentBlocked}

// assignmentMoves is an assignment's table. It is filled once and never changes.
var assignmentMoves = []Move[AssignmentState]{
	{On: onStart, To: []AssignmentState{DispatchPending}, Rule: "T-15"},
	{From: []AssignmentState{DispatchPending}, On: onAdmit, If: "its ticket is active", To: []AssignmentState{Admitted}, Rule: "T-5"},
	{From: []AssignmentState{Admitted}, On: onRun, To: []AssignmentState{Running}, Rule: "T-5"},
	{From: []AssignmentState{Admitted, Running}, On: onBlock, To: []AssignmentState{AssignmentBlocked}, Rule: "T-5"},
	{From: []AssignmentState{AssignmentBlocked}, On: onUnblock, To: []AssignmentState{Running}, Rule: "T-5"},
	{From: []AssignmentState{DispatchPending}, On: onCancel, To: []AssignmentState{AssignmentCancelled}, Rule: "T-15"},
	{From: atWork, On: onCancel, If: "stopped already", To: []AssignmentState{AssignmentCancelled}, Rule: "T-8"},
	{From: atWork, On: onCancel, If: "not stopped", To: []AssignmentState{Cancelling}, Rule: "T-11"},
	{From: []AssignmentState{DispatchPending, Admitted, Running, AssignmentBlocked, Cancelling}, On: onLost, To: []AssignmentState{OutcomeUnknown}, Rule: "T-2"},
	{From: []AssignmentState{Running, AssignmentBlocked, OutcomeUnknown}, On: onStopDone, Rule: "T-9"},
	{From: []AssignmentState{Running, AssignmentBlocked, OutcomeUnknown}, On: onStopFailed, To: []AssignmentState{Failed}, Rule: "T-9"},
	{From: []AssignmentState{Cancelling}, On: onStopDone, To: []AssignmentState{AssignmentCancelled}, Rule: "T-8"},
	{From: []AssignmentState{Cancelling}, On: onStopFailed, To: []AssignmentState{AssignmentCancelled}, Rule: "T-9"},
	{From: []AssignmentState{Failed, AssignmentCancelled}, On: onStopDone, Rule: "T-8"},
	{From: []AssignmentState{Failed, AssignmentCancelled}, On: onStopFailed, Rule: "T-8"},
	{From: []AssignmentState{Running, AssignmentBlocked, OutcomeUnknown}, On: onSubmit, If: "stopped, not stale", To: []AssignmentState{AssignmentSubmitted}, Rule: "T-7"},
	{From: []AssignmentState{DispatchPending}, On: onFail, To: []AssignmentState{Failed}, Rule: "T-15"},
	{From: []AssignmentState{Running, AssignmentBlocked, OutcomeUnknown}, On: onFail, If: "stopped, or never admitted", To: []AssignmentState{Failed}, Rule: "T-13 T-15"},
	{From: []AssignmentState{Running, AssignmentBlocked, OutcomeUnknown}, On: onConfirm, If: "not stopped", To: []AssignmentState{Failed}, Rule: "T-15"},
	{From: []AssignmentState{Cancelling}, On: onConfirm, To: []AssignmentState{AssignmentCancelled}, Rule: "T-15"},
}

var activationStatuses = []ActivationStatus{ActorReserved, ActorRunning, ActorSucceeded, ActorFailed, ActorCancelled}

var claimed = []ActivationStatus{ActorReserved, ActorRunning}

// activationMoves is an actor's table. It is filled once and never changes.
var activationMoves = []Move[ActivationStatus]{
	{On: onClaim, To: []ActivationStatus{ActorReserved}, Rule: "T-10"},
	{From: activationStatuses, On: onClaim, If: ifIdentical, Rule: "T-1"},
	{From: claimed, On: onClaim, If: ifExpired, To: []ActivationStatus{ActorReserved}, Rule: "T-2"},
	{From: []ActivationStatus{ActorReserved}, On: onRun, To: []ActivationStatus{ActorRunning}, Rule: "T-10"},
	{From: []ActivationStatus{ActorRunning}, On: onSucceed, If: "the result is published", To: []ActivationStatus{ActorSucceeded}, Rule: "T-10"},
	{From: claimed, On: onFail, To: []ActivationStatus{ActorFailed}, Rule: "T-9"},
	{From: claimed, On: onCancel, To: []ActivationStatus{ActorCancelled}, Rule: "T-11"},
}

// ActivationMoves lists an actor's table; the list is the caller's own.
func ActivationMoves() []Move[ActivationStatus] { return cloneMoves(activationMoves) }

// TicketMoves lists a ticket's table; the list is the caller's own.
func TicketMoves() []Move[TicketState] { return cloneMoves(ticketMoves) }

// AssignmentMoves lists an assignment's table; the list is the caller's own.
func AssignmentMoves() []Move[AssignmentState] { return cloneMoves(assignmentMoves) }

func cloneMoves[S ~string](table []Move[S]) []Move[S] {
	out := slices.Clone(table)
	for i := range out {
		out[i].From, out[i].To = slices.Clone(out[i].From), slices.Clone(out[i].To)
	}
	return out
}

// next is the state after on in state from. guard, if not "", picks among rows that
// differ by their condition. A row without destination keeps the state; one with
// several leaves the choice to the caller, who is given from.
func next[S ~string](table []Move[S], from S, on, guard string) (S, bool) {
	for _, m := range table {
		if m.On != on || guard != "" && m.If != guard || !slices.Contains(m.From, from) {
			continue
		}
		if len(m.To) == 1 {
			return m.To[0], true
		}
		return from, true
	}
	return from, false
}

// sources are the states from which on leads somewhere, for messages.
func sources[S ~string](table []Move[S], on string) []S {
	var out []S
	for _, m := range table {
		if m.On != on {
			continue
		}
		for _, s := range m.From {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}
