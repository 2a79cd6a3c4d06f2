package ticket

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is a scope in which much has happened, as the seeds of fuzzing.
func sample(t testing.TB) (*play, []Entry) {
	p := newPlay(t)
	var log []Entry
	do := func(by Principal, requests ...Request) {
		for _, r := range requests {
			log = append(log, p.command(Command{OperationID: p.operation(r), Principal: by, Request: r}).Entry)
		}
	}
	do(host1, TakeOver{})
	do(boss, Create{Tickets: []NewTicket{newTicket("a", 2), newTicket("b", 1, "a")}}, MarkReady{of("a")}, MarkReady{of("b")}, Start{Of: of("a")})
	d := p.dispatch("a@1", "run")
	admit, err := d.Admit(1)
	if err != nil {
		t.Fatal(err)
	}
	do(host1, admit, processStop(d, true), submit(d))
	do(boss, Accept{of("a"), "a@1"}, Start{Of: of("b")}, Block{of("b"), "wait"})
	return p, log
}

func FuzzDecodeContract(f *testing.F) {
	c := newTicket("a", 2).Contract
	data, err := c.Canonical()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"title":"t","objective":"o","acceptance":["x"],"retry":{"max_attempts":18446744073709551615}}`))
	f.Add([]byte(`{"title":"t","Objective":"o","acceptance":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeContract(data)
		if err != nil {
			if !errors.Is(err, InvalidTransition) && !errors.Is(err, ContextBudgetExceeded) {
				t.Fatalf("got %v, want a refusal of its kind", err)
			}
			return
		}
		again, err := c.Canonical()
		if err != nil || len(again) > MaxContractBytes {
			t.Fatalf("a valid contract has %d bytes (%v)", len(again), err)
		}
		twice, err := DecodeContract(again)
		if err != nil {
			t.Fatalf("its canonical form %s: %v", again, err)
		}
		if bytes, _ := twice.Canonical(); string(bytes) != string(again) {
			t.Fatalf("its canonical form changed from %s to %s", again, bytes)
		}
	})
}

// document checks what holds for every document of a child's metadata: an error is
// ScopeDenied, and what is taken is written in one form that is taken as the same.
func document[D any](t *testing.T, data []byte, decode func([]byte) (D, error), encode func(D) (string, error)) {
	d, err := decode(data)
	if err != nil {
		if !errors.Is(err, ScopeDenied) {
			t.Fatalf("got %v, want %v", err, ScopeDenied)
		}
		return
	}
	value, err := encode(d)
	if err != nil {
		t.Fatalf("what was taken can't be written: %v", err)
	}
	again, err := decode([]byte(value))
	if err != nil {
		t.Fatalf("its canonical form %s: %v", value, err)
	}
	if diff := cmp.Diff(d, again); diff != "" {
		t.Fatalf("its canonical form %s is another document:\n%s", value, diff)
	}
}

func FuzzDecodeStop(f *testing.F) {
	_, child := admitted(f)
	f.Add([]byte(child.Metadata[MetaOwnedStop]))
	aProcess(f, &child)
	f.Add([]byte(child.Metadata[MetaOwnedStop]))
	f.Add([]byte(strings.Replace(child.Metadata[MetaOwnedStop], "1234", "1e3", 1)))
	f.Add([]byte(strings.Replace(child.Metadata[MetaOwnedStop], "1234", "null", 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		document(t, data, DecodeStop, func(r StopReceipt) (string, error) {
			value, _, err := r.Store(nil)
			return value, err
		})
	})
}

func FuzzDecodeChildDispatch(f *testing.F) {
	p, child := admitted(f)
	f.Add([]byte(child.Metadata[MetaDispatch]))
	fresh, err := p.s.ChildDispatch("a@1", "root")
	if err != nil {
		f.Fatal(err)
	}
	value, err := fresh.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(value))
	f.Fuzz(func(t *testing.T, data []byte) { document(t, data, DecodeChildDispatch, ChildDispatch.Encode) })
}

func FuzzDecodeProcessIdentity(f *testing.F) {
	f.Add([]byte(identity(f, 7)))
	f.Add([]byte(`{"pid":1,"start_time":18446744073709551615,"boot_id":" ","process_group":1,"host_name":"h"}`))
	f.Fuzz(func(t *testing.T, data []byte) { document(t, data, DecodeProcessIdentity, ProcessIdentity.Encode) })
}

// everyCommand tries every request on every ticket and assignment of a state that came
// from outside: each is carried out or refused, and none may break.
func everyCommand(t *testing.T, s *State) {
	p := &play{t: t}
	try := func(by Principal, r Request) {
		d, err := s.Decide(Command{OperationID: p.operation(r), Principal: by, Request: r})
		var refusal *Error
		if err != nil && !errors.As(err, &refusal) {
			t.Fatalf("%s: got %v, want an *Error", r.Type(), err)
		}
		if err == nil && d.Next == nil {
			t.Fatalf("%s gives no state", r.Type())
		}
	}
	super := Supervisor(s.Binding().SupervisorSessionID)
	for tk := range s.Tickets() {
		o := of(tk.ID)
		for _, r := range []Request{
			MarkReady{o},
			Start{Of: o},
			Pause{o},
			Resume{o},
			Block{o, "wait"},
			Unblock{o},
			Cancel{o},
			Reopen{o},
			Accept{o, tk.CurrentSubmission},
			Reject{o, tk.CurrentSubmission, "no"},
			Revise{Ticket: tk.ID, Contract: tk.Contract, DependsOn: &tk.DependsOn},
		} {
			try(super, r)
		}
	}
	host := Runtime(s.Authority().Coordinator)
	for a := range s.Assignments() {
		try(host, LoseLease{a.ID})
		try(host, CancelAttempt{a.ID, "slow"})
		try(host, Fail{a.ID, "nothing"})
		try(ann, ConfirmStopped{a.ID, "I looked"})
		receipt := RuntimeReceipt{a.DispatchKey, a.SpecHash, "run", "child"}
		if a.Runtime != nil {
			receipt = *a.Runtime
		}
		try(host, Admit{a.ID, s.Authority().Epoch, receipt, "born"})
		pid := uint64(7)
		try(host, Stop{a.ID, StopReceipt{Receipt: receipt, ChildBirth: a.ChildBirth, PID: &pid}})
		try(host, Submit{a.ID, receipt, []Artifact{NameArtifact([]byte("x"))}, nil})
		worker := Worker(a.ID, a.Generation, receipt.RunID, receipt.SessionID)
		try(worker, RecordEffect{a.ID, "sent a mail"})
		if _, err := s.JudgeStop(a.ID, receipt.RunID, Child{SessionID: receipt.SessionID, Birth: a.ChildBirth}); err == nil {
			t.Fatal("a child without metadata has a stop")
		}
		_, _ = s.ActorOutcome(a.ID)
		_, _ = s.Dispatch(a.ID)
	}
	try(Runtime("another"), TakeOver{})
	for range s.Startable() {
	}
}

func FuzzApply(f *testing.F) {
	p, log := sample(f)
	s, err := New(p.s.Binding())
	if err != nil {
		f.Fatal(err)
	}
	states := []*State{s} // at seq 0, 1, 2 …
	for i := range log {
		if s, err = s.Apply(&log[i]); err != nil {
			f.Fatal(err)
		}
		states = append(states, s)
		data, err := log[i].Canonical()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add([]byte(strings.Replace(string(data), `"state":"`, `"state":"x`, 1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := DecodeEntry(data)
		if err != nil {
			if !errors.Is(err, AuthorityUnavailable) {
				t.Fatalf("got %v, want %v", err, AuthorityUnavailable)
			}
			return
		}
		if again, err := e.Canonical(); err != nil {
			t.Fatalf("what was taken can't be written: %v", err)
		} else if _, err := DecodeEntry(again); err != nil {
			t.Fatalf("its canonical form %s: %v", again, err)
		}
		if e.Seq == 0 || e.Seq > uint64(len(states)) {
			return
		}
		s := states[e.Seq-1]
		before := canonical(t, s)
		next, err := s.Apply(&e)
		if string(canonical(t, s)) != string(before) {
			t.Fatal("Apply changed the state before")
		}
		if err == nil {
			everyCommand(t, next)
		}
	})
}

func FuzzBuilder(f *testing.F) {
	p, _ := sample(f)
	for data, err := range p.s.Parts() {
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add([]byte(strings.Replace(string(data), `"blocked":{`, `"blocked":null,"x":{`, 1)))
		f.Add([]byte(strings.Replace(string(data), `"state":"running"`, `"state":"admitted"`, 1)))
	}
	f.Add([]byte(`{"schema":1,"binding":{"scope_id":"s","supervisor_session_id":"b"},"assignments":{"a@1":{"id":"a@1"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var b Builder
		if err := b.Add(data); err != nil {
			if !errors.Is(err, AuthorityUnavailable) {
				t.Fatalf("got %v, want %v", err, AuthorityUnavailable)
			}
			return
		}
		s, err := b.State()
		if err != nil {
			t.Fatal(err)
		}
		reopened(t, s)
		everyCommand(t, s)
	})
}
