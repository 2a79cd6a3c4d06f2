package ticket

import (
	"bytes"
	"testing"
)

// restarted is the play as a host finds it that was started anew, under another id.
func (p *play) restarted(id string) Principal {
	p.t.Helper()
	p.s, p.log = reopened(p.t, p.s), reopened(p.t, p.log)
	host := Runtime(id)
	p.do(host, TakeOver{})
	return host
}

// The life cycle, rows 1 to 12, as far as it is in the scope. After each row every
// command so far is given again, to the scope as it is and as it was reopened: nothing
// happens twice, and no byte changes (T-1, M-4).
func TestATicketLivesOnceHoweverOftenItIsTold(t *testing.T) {
	p := newPlay(t)
	var told []Command
	tell := func(by Principal, r Request) {
		t.Helper()
		c := Command{OperationID: p.operation(r), Principal: by, Request: r}
		p.command(c)
		told = append(told, c)
		before := canonical(t, p.s)
		for _, s := range []*State{p.s, reopened(t, p.s)} {
			for _, c := range told {
				if d, err := s.Decide(c); err != nil || !d.Replayed || d.Next != s {
					t.Fatalf("%s again: got %+v, %v; want it replayed", c.Request.Type(), d, err)
				}
			}
			if !bytes.Equal(before, canonical(t, s)) {
				t.Fatalf("the commands told again changed the scope")
			}
		}
	}
	actor, err := Activation{}.Claim(claim("run", "host-1"), 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	tell(host1, TakeOver{})
	tell(boss, Create{Tickets: []NewTicket{newTicket("a", 1)}})
	tell(boss, MarkReady{of("a")})
	tell(boss, Start{Of: of("a")})
	d := p.dispatch("a@1", "run")
	document, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	admit, err := d.Admit(1)
	if err != nil {
		t.Fatal(err)
	}
	tell(host1, admit)
	worker := Worker("a@1", 1, "run", d.Receipt.SessionID)
	if err := p.s.Permit(worker); err != nil {
		t.Errorf("a running worker's permit: got %v, want none", err)
	}
	if actor, err = actor.Run(actor.Lease(), 2); err != nil {
		t.Fatal(err)
	}
	receipt, err := d.TaskStop(instance, true)
	if err != nil {
		t.Fatal(err)
	}
	child := Child{
		SessionID: d.Receipt.SessionID, Birth: "born", Parent: "boss", Root: "root", Status: ChildRunning,
		Metadata: map[string]string{MetaDispatch: document, MetaTaskState: TaskStopped, MetaTaskInstance: instance},
	}
	keepStop(t, &child, receipt)
	stop, err := p.s.JudgeStop("a@1", "run", child)
	if err != nil {
		t.Fatal(err)
	}
	tell(host1, stop)
	denied(t, p.s.Permit(worker), ScopeDenied, "stop is proved")
	if _, err := p.s.ActorOutcome("a@1"); err == nil {
		t.Error("the actor may end before the result is published (T-10)")
	}
	child.Status, child.Last = ChildCompleted, &LastMessage{Role: "assistant", Text: output}
	result, ok, err := p.s.JudgeResult("a@1", "run", child)
	if err != nil || !ok {
		t.Fatalf("got %t, %v; want a result", ok, err)
	}
	tell(host1, result.Submit)
	end, err := p.s.ActorOutcome("a@1")
	if err != nil {
		t.Fatal(err)
	}
	if actor, err = actor.Finish(actor.Lease(), end); err != nil || actor.Status != ActorSucceeded {
		t.Errorf("got %+v, %v; want the actor succeeded", actor, err)
	}
	tell(ann, Accept{Of: of("a"), Submission: "a@1"})
	if got := p.ticket("a"); got.State != Accepted || got.AcceptedSubmission != "a@1" {
		t.Errorf("got %+v, want it accepted", got)
	}
}

// M-4: a stop receipt that was saved and never published is found by the host that
// comes after, and gives one submission that is not stale; no tool may run meanwhile.
func TestAStopThatWasSavedOnlyIsReconciled(t *testing.T) {
	p, child := admitted(t)
	p.do(host1, TakeOver{})
	worker := Worker("a@1", 1, "run", child.SessionID)
	next := p.restarted("host-1, started anew")
	denied(t, p.s.Permit(worker), ScopeDenied, "outcome_unknown")
	found := 0
	for a := range p.s.Unsettled() {
		found++
		stop, err := p.s.JudgeStop(a.ID, a.Runtime.RunID, child)
		if err != nil {
			t.Fatal(err)
		}
		p.do(next, stop)
		result, ok, err := p.s.JudgeResult(a.ID, a.Runtime.RunID, child)
		if err != nil || !ok {
			t.Fatalf("got %t, %v; want a result", ok, err)
		}
		p.do(next, result.Submit)
	}
	sub, ok := p.s.Submission("a@1")
	if found != 1 || !ok || sub.Stale || p.s.Counts().Submissions != 1 || p.ticket("a").State != Submitted {
		t.Errorf("got %d unsettled and %+v; want one, and its submission not stale", found, sub)
	}
	denied(t, p.s.Permit(worker), ScopeDenied, "permit")
}

// M-4: closed, reopened, the result asked for again: the same receipt, no byte changed
// since the reopening, one submission. Also the host has another id by then.
func TestAResultReplaysAfterARestart(t *testing.T) {
	p, child := admitted(t)
	p.do(host1, TakeOver{})
	report := func(by Principal) Decision {
		t.Helper()
		stop, err := p.s.JudgeStop("a@1", "run", child)
		if err != nil {
			t.Fatal(err)
		}
		p.do(by, stop)
		result, ok, err := p.s.JudgeResult("a@1", "run", child)
		if err != nil || !ok {
			t.Fatalf("got %t, %v; want a result", ok, err)
		}
		return p.command(Command{OperationID: result.Submit.Operation(), Principal: by, Request: result.Submit})
	}
	first := report(host1)
	next := p.restarted("host-1, started anew")
	before := canonical(t, p.s)
	again := report(next)
	one, err := first.Receipt.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	two, err := again.Receipt.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if !again.Replayed || !bytes.Equal(one, two) {
		t.Errorf("got the receipt\n%s\nwant\n%s", two, one)
	}
	if !bytes.Equal(before, canonical(t, p.s)) || p.s.Counts().Submissions != 1 {
		t.Error("the result asked for again changed the scope")
	}
}
