// Package progress says of a ticket what it counts as, what it waits for, and what
// an operator does next. List, show and watch tell the same, because all ask here.
//
//	accepted     somebody with the authority said yes
//	submitted    a result waits for that
//	under_way    goes on by itself: it runs, or a worker may start it, or what it
//	             depends on is under way
//	needs_person a draft, a pause, a block, a dependency that will not come, or a stop
//	             that nothing proves (T-15)
//	failed       all attempts are spent
//	cancelled    cancelled, and nothing of it may still run
package progress

import (
	"strings"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/ticket"
)

// Standing is how a ticket stands.
type Standing struct {
	Outcome  exit.Outcome
	WaitsFor string // for people; "": nothing
	Next     Step
}

// Step is what an operator may do next; the zero value: nothing.
type Step struct {
	Verb string // of hostctl ticket, or "worker"
	ID   string // of the ticket or assignment
	Rest string // more arguments, for people to fill in
}

// Of are the standings of a state's tickets. It looks at each ticket once, and only
// when it is asked for, so make a new one for a new state.
type Of struct {
	state *ticket.State
	known map[string]Standing
}

// New looks at a state.
func New(s *ticket.State) *Of { return &Of{state: s, known: map[string]Standing{}} }

// Ticket is how a ticket stands; the zero Standing where there is none of that id.
func (o *Of) Ticket(id string) Standing {
	if s, ok := o.known[id]; ok {
		return s
	}
	t, ok := o.state.Ticket(id)
	if !ok {
		return Standing{}
	}
	// Should stored dependencies lead back here, somebody must mend them.
	o.known[id] = person("its own result, by a cycle of dependencies", Step{Verb: "revise", ID: id, Rest: "--file FILE"})
	s := o.standing(&t)
	o.known[id] = s
	return s
}

func (o *Of) standing(t *ticket.Ticket) Standing {
	switch t.State {
	case ticket.Accepted:
		return Standing{Outcome: exit.OutcomeAccepted}
	case ticket.Draft:
		return person("somebody to mark it ready", Step{Verb: "ready", ID: t.ID})
	case ticket.Submitted:
		return Standing{exit.OutcomeSubmitted, "somebody to accept or reject " + t.CurrentSubmission, Step{Verb: "accept", ID: t.ID}}
	case ticket.Cancelled:
		return o.cancelled(t)
	case ticket.Blocked:
		return blocked(t)
	case ticket.Active:
		return o.active(t)
	default:
		return o.ready(t)
	}
}

func person(waitsFor string, next Step) Standing {
	return Standing{exit.OutcomeNeedsPerson, waitsFor, next}
}

func underWay(waitsFor string, id string) Standing {
	return Standing{exit.OutcomeUnderWay, waitsFor, Step{Verb: "watch", ID: id}}
}

// blocked: all attempts spent is a failure, whatever the reason says.
func blocked(t *ticket.Ticket) Standing {
	s := person("somebody to unblock it: "+t.Blocked.Reason, Step{Verb: "unblock", ID: t.ID})
	if t.Blocked.ResumeState == ticket.Ready && t.Attempts >= Attempts(t) {
		s.Outcome = exit.OutcomeFailed
	}
	return s
}

// Attempts is how many starts a ticket's contract allows.
func Attempts(t *ticket.Ticket) uint64 { return max(1, t.Contract.Retry.MaxAttempts) }

func (o *Of) active(t *ticket.Ticket) Standing {
	a, ok := o.state.Assignment(t.ActiveAssignment)
	switch {
	case !ok:
		return underWay("", t.ID)
	case UnprovedAttempt(&a):
		return o.unproved(&a)
	case a.State == ticket.DispatchPending:
		return underWay("a worker to run "+a.ID, t.ID)
	case a.State == ticket.Cancelling:
		return underWay("the stop of "+a.ID, t.ID)
	case a.ProcessStopped:
		return underWay("the result of "+a.ID, t.ID)
	default:
		return underWay(a.ID+" to finish", t.ID)
	}
}

// cancelled: the ticket is over, its attempt perhaps not.
func (o *Of) cancelled(t *ticket.Ticket) Standing {
	a, ok := o.last(t)
	switch {
	case ok && UnprovedAttempt(&a):
		return o.unproved(&a)
	case ok && !over(&a):
		return underWay("the stop of "+a.ID, t.ID)
	default:
		return Standing{exit.OutcomeCancelled, "", Step{Verb: "reopen", ID: t.ID}}
	}
}

func (o *Of) ready(t *ticket.Ticket) Standing {
	if t.Paused {
		return person("somebody to resume it", Step{Verb: "resume", ID: t.ID})
	}
	a, ok := o.last(t)
	switch {
	case ok && UnprovedAttempt(&a):
		return o.unproved(&a)
	case ok && !over(&a):
		return underWay("the stop of "+a.ID, t.ID)
	}
	if s, waits := o.dependencies(t); waits {
		return s
	}
	return Standing{exit.OutcomeUnderWay, "a worker to start it", Step{Verb: "watch", ID: t.ID}}
}

// dependencies is how a ready ticket stands that waits for others: as the one of them
// that is farthest from going on by itself. What failed or was cancelled will not come
// unless a person does something.
func (o *Of) dependencies(t *ticket.Ticket) (Standing, bool) {
	var missing []string
	var each []exit.Outcome
	next := map[exit.Outcome]Step{exit.OutcomeUnderWay: {Verb: "watch", ID: t.ID}}
	for _, id := range t.DependsOn {
		dep := o.Ticket(id)
		outcome := dep.Outcome
		switch outcome {
		case exit.OutcomeAccepted:
			continue
		case exit.OutcomeSubmitted, exit.OutcomeUnderWay:
		default:
			outcome = exit.OutcomeNeedsPerson
		}
		missing, each = append(missing, id+" ("+o.word(id, dep)+")"), append(each, outcome)
		if _, ok := next[outcome]; !ok {
			next[outcome] = dep.Next
		}
	}
	if len(missing) == 0 {
		return Standing{}, false
	}
	worst := exit.Worst(each)
	return Standing{worst, strings.Join(missing, ", ") + " to be accepted", next[worst]}, true
}

// word is a ticket's state, or that it failed.
func (o *Of) word(id string, s Standing) string {
	if t, ok := o.state.Ticket(id); ok && s.Outcome != exit.OutcomeFailed {
		return string(t.State)
	}
	return string(s.Outcome)
}

// last is the newest attempt.
func (o *Of) last(t *ticket.Ticket) (ticket.Assignment, bool) {
	return o.state.Assignment(ticket.AssignmentID(t.ID, t.Generation))
}

// over reports whether nothing of an attempt can run any more.
func over(a *ticket.Assignment) bool {
	return a.ProcessStopped || a.Runtime == nil && (a.State == ticket.Failed || a.State == ticket.AssignmentCancelled)
}

// UnprovedAttempt reports whether nobody who is at work can tell that an attempt stopped.
func UnprovedAttempt(a *ticket.Assignment) bool {
	return a.State == ticket.OutcomeUnknown && !a.ProcessStopped
}

func (o *Of) unproved(a *ticket.Assignment) Standing {
	return person("proof that "+a.ID+" stopped, from a worker or from you", Step{Verb: "confirm-stopped", ID: a.ID, Rest: "--reason HOW-YOU-KNOW"})
}

// Unproved reports whether a ticket waits for the proof of a stop. A worker that was
// just started may still bring it.
func (o *Of) Unproved(id string) bool {
	t, ok := o.state.Ticket(id)
	if !ok {
		return false
	}
	a, ok := o.last(&t)
	return ok && UnprovedAttempt(&a)
}
