package ticket

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// What is over a limit, or no command at all, is refused and never cut.
func TestEveryLimitRefuses(t *testing.T) {
	p := newPlay(t)
	p.do(host1, TakeOver{})
	p.do(boss, Create{Tickets: []NewTicket{newTicket("old", 1), newTicket("a", 1)}})
	batch := func(n int) Create {
		var r Create
		for i := range n {
			r.Tickets = append(r.Tickets, newTicket("t"+strconv.Itoa(i), 1))
		}
		return r
	}
	p.refuse(boss, batch(0), InvalidTransition)
	p.refuse(boss, batch(MaxBatch+1), InvalidTransition)
	p.do(boss, batch(MaxDependencies+1))
	newPlay(t).do(boss, batch(MaxBatch))
	for _, id := range []string{"", "-a", ".a", "a/b", "a@1", "a b", "ä", strings.Repeat("x", MaxTicketIDBytes+1)} {
		p.refuse(boss, Create{Tickets: []NewTicket{newTicket(id, 1)}}, InvalidTransition)
	}
	p.do(boss, Create{Tickets: []NewTicket{newTicket("A.z_9-"+strings.Repeat("x", MaxTicketIDBytes-6), 1)}})
	p.refuse(boss, Create{Tickets: []NewTicket{newTicket("old", 1)}}, InvalidTransition)
	var many []string
	for i := range MaxDependencies + 1 {
		many = append(many, "t"+strconv.Itoa(i))
	}
	p.refuse(boss, Revise{Ticket: "a", DependsOn: &many}, InvalidTransition)
	most := many[1:]
	p.do(boss, Revise{Ticket: "a", DependsOn: &most})
	p.refuse(boss, Revise{Ticket: "none"}, ScopeDenied)
	p.refuse(boss, Revise{Ticket: "a"}, InvalidTransition)

	long := strings.Repeat("x", MaxTextBytes+1)
	for _, reason := range []string{"", " \n", long} {
		p.refuse(boss, Block{of("old"), reason}, InvalidTransition)
		p.refuse(boss, Reject{of("old"), "old@1", reason}, InvalidTransition)
		p.refuse(boss, CancelAttempt{"old@1", reason}, InvalidTransition)
		p.refuse(boss, Fail{"old@1", reason}, InvalidTransition)
		p.refuse(ann, ConfirmStopped{"old@1", reason}, InvalidTransition)
	}
	p.do(boss, Block{of("old"), long[1:]}, Unblock{of("old")})
	for _, r := range []Request{
		MarkReady{of("none")}, Start{Of: of("none")}, Pause{of("none")}, Block{of("none"), "wait"}, Unblock{of("none")}, Cancel{of("none")},
	} {
		p.refuse(boss, r, ScopeDenied)
	}
	for _, r := range []Request{LoseLease{"none@1"}, CancelAttempt{"none@1", "r"}, Fail{"none@1", "r"}, TakeOver{Expired: []string{"none@1"}}} {
		by := host1
		if _, ok := r.(TakeOver); ok {
			by = Runtime("host-2")
		}
		p.refuse(by, r, ScopeDenied)
	}
	p.refuse(ann, ConfirmStopped{"none@1", "r"}, ScopeDenied)
	p.refuse(Runtime("host-2"), LoseLease{"old@1"}, ScopeDenied)
	p.refuse(boss, LoseLease{"old@1"}, ScopeDenied)

	p.do(boss, MarkReady{of("old")})
	p.refuse(boss, Start{Of: of("old"), Host: "host-2"}, ScopeDenied)
	p.refuse(Runtime("host-2"), Start{Of: of("old")}, ScopeDenied)
	p.refuse(boss, Resume{of("old")}, InvalidTransition)
	p.do(boss, Pause{of("old")})
	p.refuse(boss, Pause{of("old")}, InvalidTransition)

	big := batch(100)
	for i := range big.Tickets {
		big.Tickets[i].ID, big.Tickets[i].Contract.Objective = "big"+strconv.Itoa(i), strings.Repeat("x", 60_000)
	}
	p.refuse(boss, big, ContextBudgetExceeded)
	bad := newTicket("utf8", 1)
	bad.Parent = "\xff"
	p.refuse(boss, Create{Tickets: []NewTicket{bad}}, InvalidTransition)
	if _, err := p.s.Decide(Command{OperationID: "x", Principal: boss}); !errors.Is(err, InvalidTransition) {
		t.Errorf("a command that asks for nothing: got %v, want %v", err, InvalidTransition)
	}
}

func TestAWorkersEffectsAreBounded(t *testing.T) {
	p := newPlay(t)
	p.start("a", 1)
	d := p.admit("a@1", "run")
	worker := Worker("a@1", 1, "run", d.Receipt.SessionID)
	p.refuse(worker, RecordEffect{"a@1", ""}, InvalidTransition)
	p.refuse(worker, RecordEffect{"b@1", "sent a mail"}, ScopeDenied)
	p.put(func(_ *Ticket, a *Assignment) {
		for i := range MaxEffects - 1 {
			a.Effects = append(a.Effects, "effect "+strconv.Itoa(i))
		}
	})
	p.do(worker, RecordEffect{"a@1", "the last"})
	p.refuse(worker, RecordEffect{"a@1", "one too many"}, ContextBudgetExceeded)
}

// A child is told no more than fits: a ticket whose inputs are too large for its
// dispatch is not started.
func TestADispatchIsBounded(t *testing.T) {
	p := newPlay(t)
	var deps []string
	for i := range 20 {
		id := "dep" + strconv.Itoa(i)
		deps = append(deps, id)
		p.start(id, 1)
		d := p.admit(id+"@1", "run")
		r := submit(d)
		r.Artifacts = nil
		for range MaxArtifacts {
			r.Artifacts = append(r.Artifacts, Artifact{strings.Repeat("u", MaxIDBytes), d.SpecHash})
		}
		p.do(host1, processStop(d, true), r)
		p.do(boss, Accept{of(id), id + "@1"})
	}
	p.do(boss, Create{Tickets: []NewTicket{newTicket("a", 1, deps...)}}, MarkReady{of("a")})
	p.refuse(boss, Start{Of: of("a")}, ContextBudgetExceeded)
	few := deps[:3]
	p.do(boss, Revise{Ticket: "a", DependsOn: &few}, Start{Of: of("a")})
}

// A dispatch is read as it was started; after a revision its result would be stale.
func TestADispatchIsThatOfTheStart(t *testing.T) {
	p := newPlay(t)
	p.start("a", 1)
	if _, err := p.s.Dispatch("a@2"); !errors.Is(err, ScopeDenied) {
		t.Errorf("got %v, want %v", err, ScopeDenied)
	}
	p.do(host1, TakeOver{}) // the epoch moves on, the spec does not
	spec, err := p.s.Dispatch("a@1")
	if err != nil {
		t.Fatal(err)
	}
	if hash, err := spec.Hash(); err != nil || hash != p.assignment("a@1").SpecHash {
		t.Errorf("got %s, %v; want %s", hash, err, p.assignment("a@1").SpecHash)
	}
	c := newTicket("a", 1).Contract
	p.do(boss, Revise{Ticket: "a", Contract: &c})
	if _, err := p.s.Dispatch("a@1"); !errors.Is(err, RevisionConflict) {
		t.Errorf("got %v, want %v", err, RevisionConflict)
	}
}

func TestARefusalSaysAllOfIt(t *testing.T) {
	cause := errors.New("the disk is full")
	err := error(&Error{Op: "start", Key: "a", Kind: ResourceBlocked, Detail: "it is paused", Err: cause})
	if got, want := err.Error(), "start a: resource_blocked: it is paused: the disk is full"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, ResourceBlocked) || !errors.Is(err, cause) || errors.Is(err, ScopeDenied) {
		t.Error("the kind and the cause are not found in it")
	}
	if ResourceBlocked.Error() != "resource_blocked" || len(Kinds()) != 7 {
		t.Errorf("got %q of %v", ResourceBlocked.Error(), Kinds())
	}
}

func TestTheTablesAreTheCallersOwn(t *testing.T) {
	before := Diagram()
	TicketMoves()[2].From[0] = "spoilt"
	AssignmentMoves()[1].To[0] = "spoilt"
	ActivationMoves()[1].On = "spoilt"
	if Diagram() != before {
		t.Error("a change of a list changed the table")
	}
}
