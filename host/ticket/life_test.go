package ticket

import (
	"bytes"
	"errors"
	"testing"
)

func TestATicketLivesAndItsResultReplays(t *testing.T) {
	s, err := New(Binding{ScopeID: "s", SupervisorSessionID: "boss"})
	if err != nil {
		t.Fatal(err)
	}
	log, _ := New(s.Binding())
	do := func(op string, p Principal, r Request) {
		t.Helper()
		d, err := s.Decide(Command{OperationID: op, Principal: p, Request: r})
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		data, err := d.Entry.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		e, err := DecodeEntry(data)
		if err != nil {
			t.Fatal(err)
		}
		if log, err = log.Apply(&e); err != nil {
			t.Fatal(err)
		}
		s = d.Next
	}
	boss, host := Supervisor("boss"), Runtime("host")
	do("1", boss, Create{Tickets: []NewTicket{{ID: "a", Contract: Contract{Title: "t", Objective: "o", Acceptance: []string{"x"}}}}})
	do("2", boss, MarkReady{Of{Ticket: "a"}})
	do("3", boss, Start{Of: Of{Ticket: "a"}})
	a, _ := s.Assignment("a@1")
	run := RuntimeReceipt{a.DispatchKey, a.SpecHash, "run", "child"}
	admit := Admit{Assignment: "a@1", Receipt: run, ChildBirth: "b"}
	do(admit.Operation(), host, admit)
	if err := s.Permit(Worker("a@1", 1, "run", "child")); err != nil {
		t.Errorf("a running worker's permit: got %v, want none", err)
	}
	pid := uint64(7)
	stop := Stop{"a@1", StopReceipt{Receipt: run, ChildBirth: "b", Completed: true, PID: &pid}}
	submit := Submit{Assignment: "a@1", Receipt: run, Artifacts: []Artifact{{"artifact", a.SpecHash}}}
	if _, err := s.Decide(Command{OperationID: submit.Operation(), Principal: host, Request: submit}); !errors.Is(err, AuthorityUnavailable) {
		t.Errorf("a result before the stop: got %v, want %v", err, AuthorityUnavailable)
	}
	do(stop.Operation(), host, stop)
	if err := s.Permit(Worker("a@1", 1, "run", "child")); !errors.Is(err, ScopeDenied) {
		t.Errorf("a stopped worker's permit: got %v, want %v", err, ScopeDenied)
	}
	do(submit.Operation(), host, submit)
	before, _ := s.Canonical()
	d, err := s.Decide(Command{OperationID: submit.Operation(), Principal: host, Request: submit})
	if err != nil || !d.Replayed || d.Next != s {
		t.Errorf("the same result again: got %+v, %v; want it replayed", d, err)
	}
	if after, _ := log.Canonical(); !bytes.Equal(before, after) {
		t.Errorf("the log gives other bytes:\n%s\nwant\n%s", after, before)
	}
	do("9", boss, Accept{Of: Of{Ticket: "a"}, Submission: "a@1"})
}
