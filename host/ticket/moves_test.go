package ticket

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// The tables once more, written out: what each move makes of each state. A state
// that is not there refuses the move, or keeps it where the move's kind is to follow.

var wantTicket = map[string]map[TicketState]TicketState{
	onRevise:                        {Draft: Draft, Ready: Ready, Active: Active, Blocked: Blocked},
	onReady:                         {Draft: Ready},
	onStart:                         {Ready: Active},
	onPause:                         {Draft: Draft, Ready: Ready, Active: Active, Submitted: Submitted, Blocked: Blocked},
	onResume:                        {Draft: Draft, Ready: Ready, Active: Active, Submitted: Submitted, Blocked: Blocked},
	onBlock:                         {Draft: Blocked, Ready: Blocked, Active: Blocked},
	onUnblock:                       {Blocked: Active},
	onCancel:                        {Draft: Cancelled, Ready: Cancelled, Active: Cancelled, Submitted: Cancelled, Blocked: Cancelled},
	onAccept:                        {Submitted: Accepted},
	onReject:                        {Submitted: Ready},
	onReopen:                        {Accepted: Ready, Cancelled: Ready},
	onSubmit:                        {Active: Submitted},
	onAttemptOver + ifAttemptsLeft:  {Active: Ready},
	onAttemptOver + ifAttemptsSpent: {Active: Blocked},
}

const stoppedAlready, notStopped = "stopped already", "not stopped"

var wantAssignment = map[string]map[AssignmentState]AssignmentState{
	onAdmit:                   {DispatchPending: Running},
	onBlock:                   {Admitted: AssignmentBlocked, Running: AssignmentBlocked},
	onUnblock:                 {AssignmentBlocked: Running},
	onCancel + stoppedAlready: {Admitted: AssignmentCancelled, Running: AssignmentCancelled, AssignmentBlocked: AssignmentCancelled},
	onCancel + notStopped:     {DispatchPending: AssignmentCancelled, Admitted: Cancelling, Running: Cancelling, AssignmentBlocked: Cancelling},
	onLost:                    {DispatchPending: OutcomeUnknown, Admitted: OutcomeUnknown, Running: OutcomeUnknown, AssignmentBlocked: OutcomeUnknown, Cancelling: OutcomeUnknown},
	onStopDone: {
		Running: Running, AssignmentBlocked: AssignmentBlocked, OutcomeUnknown: OutcomeUnknown,
		Cancelling: AssignmentCancelled, Failed: Failed, AssignmentCancelled: AssignmentCancelled,
	},
	onStopFailed: {
		Running: Failed, AssignmentBlocked: Failed, OutcomeUnknown: Failed,
		Cancelling: AssignmentCancelled, Failed: Failed, AssignmentCancelled: AssignmentCancelled,
	},
	onSubmit:  {Running: AssignmentSubmitted, AssignmentBlocked: AssignmentSubmitted, OutcomeUnknown: AssignmentSubmitted},
	onFail:    {DispatchPending: Failed, Running: Failed, AssignmentBlocked: Failed, OutcomeUnknown: Failed},
	onConfirm: {Running: Failed, AssignmentBlocked: Failed, OutcomeUnknown: Failed, Cancelling: AssignmentCancelled},
}

// put makes a ticket or an assignment what no command made it.
func (p *play) put(change func(*Ticket, *Assignment)) {
	p.t.Helper()
	for _, s := range []**State{&p.s, &p.log} {
		n := **s
		t, a := p.ticket("a"), p.assignment("a@1")
		change(&t, &a)
		n.putTicket(&t)
		n.putAssignment(&a)
		*s = &n
	}
}

// try gives a command that may be refused as invalid_transition, and then must leave
// the bytes as they were.
func (p *play) try(by Principal, r Request) (done bool) {
	p.t.Helper()
	before := canonical(p.t, p.s)
	c := Command{OperationID: p.operation(r), Principal: by, Request: r}
	if _, err := p.s.Decide(c); err == nil {
		p.command(c)
		return true
	} else if !errors.Is(err, InvalidTransition) {
		p.t.Errorf("got %v, want it done or %v", err, InvalidTransition)
	}
	if !bytes.Equal(before, canonical(p.t, p.s)) {
		p.t.Error("the refusal changed the scope")
	}
	return false
}

func TestEveryMoveOfATicket(t *testing.T) {
	contract := newTicket("a", 9).Contract
	moves := map[string]struct {
		request Request
		follows bool // the ticket follows its attempt: no refusal
	}{
		onRevise: {Revise{Ticket: "a", Contract: &contract}, false}, onReady: {MarkReady{of("a")}, false}, onStart: {Start{Of: of("a")}, false},
		onPause: {Pause{of("a")}, false}, onResume: {Resume{of("a")}, false}, onBlock: {Block{of("a"), "wait"}, false}, onUnblock: {Unblock{of("a")}, false},
		onCancel: {Cancel{of("a")}, false}, onAccept: {Accept{of("a"), "a@1"}, false}, onReject: {Reject{of("a"), "a@1", "no"}, false}, onReopen: {Reopen{of("a")}, false},
		onSubmit: {Submit{}, true}, onAttemptOver + ifAttemptsLeft: {Stop{}, true}, onAttemptOver + ifAttemptsSpent: {Stop{}, true},
	}
	for name, move := range moves {
		for _, from := range ticketStates {
			t.Run(name+" from "+string(from), func(t *testing.T) {
				p := newPlay(t)
				p.start("a", 9)
				d := p.admit("a@1", "run")
				if name == onSubmit || !move.follows {
					p.do(host1, processStop(d, true))
				}
				p.put(func(tk *Ticket, _ *Assignment) {
					tk.State, tk.Paused, tk.CurrentSubmission = from, name == onResume, "a@1"
					if from == Blocked {
						tk.Blocked = &Blocking{"wait", Active}
					}
					if name == onAttemptOver+ifAttemptsSpent {
						tk.Attempts = 9
					}
				})
				want, listed := wantTicket[name][from]
				by, request := boss, move.request
				switch request.(type) {
				case Submit:
					by, request = host1, submit(d)
				case Stop:
					by, request = host1, processStop(d, false)
				}
				if !listed {
					want = from
				}
				done := p.try(by, request)
				if got := p.ticket("a").State; got != want || done != (listed || move.follows) {
					t.Errorf("got %s, done %t; want %s, %t", got, done, want, listed || move.follows)
				}
			})
		}
	}
	inTable(t, ticketMoves, wantTicket)
}

func TestEveryMoveOfAnAssignment(t *testing.T) {
	for name, listed := range wantAssignment {
		for _, from := range assignmentStates {
			t.Run(name+" from "+string(from), func(t *testing.T) {
				p := newPlay(t)
				p.do(host1, TakeOver{})
				p.start("a", 9)
				d := p.dispatch("a@1", "run")
				p.put(func(tk *Ticket, a *Assignment) {
					a.State = from
					if name != onAdmit {
						a.Runtime, a.ChildBirth = d.Receipt, d.ChildBirth
					}
					a.ProcessStopped = slices.Contains([]string{onSubmit, onFail, onCancel + stoppedAlready}, name)
					if name == onUnblock {
						tk.State, tk.Blocked = Blocked, &Blocking{"wait", Active}
					}
				})
				if from == DispatchPending && name != onAdmit {
					p.put(func(_ *Ticket, a *Assignment) { a.Runtime, a.ChildBirth = nil, "" })
				}
				want, ok := listed[from]
				if !ok {
					want = from
				}
				follows := false
				by, request := host1, Request(nil)
				switch name {
				case onAdmit:
					r, err := d.Admit(1)
					if err != nil {
						t.Fatal(err)
					}
					request = r
				case onBlock:
					by, request, follows = boss, Block{of("a"), "wait"}, true
				case onUnblock:
					by, request, follows = boss, Unblock{of("a")}, true
				case onCancel + stoppedAlready, onCancel + notStopped:
					request = CancelAttempt{"a@1", "slow"}
				case onLost:
					request = LoseLease{"a@1"}
				case onStopDone, onStopFailed:
					request = processStop(d, name == onStopDone)
				case onSubmit:
					request, follows = submit(d), true // kept as stale
				case onFail:
					request = Fail{"a@1", "nothing to submit"}
				case onConfirm:
					by, request = ann, ConfirmStopped{"a@1", "I looked"}
				}
				if from == DispatchPending && slices.Contains([]string{onStopDone, onStopFailed, onSubmit}, name) {
					p.refuse(by, request, ScopeDenied) // no run was admitted
					return
				}
				if from == DispatchPending && name == onCancel+stoppedAlready {
					return // what never ran has no stop
				}
				done := p.try(by, request)
				if got := p.assignment("a@1").State; got != want || done != (ok || follows) {
					t.Errorf("got %s, done %t; want %s, %t", got, done, want, ok || follows)
				}
			})
		}
	}
	inTable(t, assignmentMoves, wantAssignment)
}

// inTable checks that a table and what the test wants of it have the same moves.
func inTable[S ~string](t *testing.T, table []Move[S], want map[string]map[S]S) {
	t.Helper()
	listed := map[string][]S{}
	for _, m := range table {
		key := m.On
		if _, ok := want[m.On+m.If]; ok {
			key = m.On + m.If
		}
		if m.On == onRun || len(m.From) == 0 {
			continue // part of an admission, or the beginning
		}
		if key == onCancel && want[onCancel] == nil {
			key = onCancel + notStopped // of one that was not admitted
		}
		listed[key] = append(listed[key], m.From...)
	}
	for on, from := range listed {
		for _, s := range from {
			if _, ok := want[on][s]; !ok {
				t.Errorf("the table has %q from %s, which no test takes", on, s)
			}
		}
	}
	for on, from := range want {
		for s := range from {
			if !slices.Contains(listed[on], s) {
				t.Errorf("%q from %s is taken, but is in no row", on, s)
			}
		}
	}
}

// A block remembers where it came from.
func TestUnblockLeadsBack(t *testing.T) {
	for _, to := range []TicketState{Draft, Ready, Active, Submitted} {
		p := newPlay(t)
		p.start("a", 1)
		p.put(func(tk *Ticket, _ *Assignment) { tk.State, tk.Blocked = Blocked, &Blocking{"wait", to} })
		p.do(boss, Unblock{of("a")})
		if got := p.ticket("a"); got.State != to || got.Blocked != nil {
			t.Errorf("got %s, %v; want %s", got.State, got.Blocked, to)
		}
	}
}

// A result that comes while its ticket is blocked is taken when the block ends.
func TestABlockedTicketIsSubmittedAfterwards(t *testing.T) {
	p := newPlay(t)
	p.start("a", 1)
	d := p.admit("a@1", "run")
	p.do(boss, Block{of("a"), "wait"})
	p.do(host1, processStop(d, true), submit(d))
	if got := p.ticket("a"); got.State != Blocked || got.Blocked.ResumeState != Submitted || got.CurrentSubmission != "a@1" {
		t.Errorf("got %+v, want it blocked before submitted", got)
	}
	p.do(boss, Unblock{of("a")}, Accept{of("a"), "a@1"})
}
