package ticket

import (
	"bytes"
	"errors"
	"fmt"

	"pgregory.net/rapid"
)

// play carries out commands on a scope and follows its log with Apply; after each
// command both must be the same.
type play struct {
	t   rapid.TB
	s   *State
	log *State
	n   int // operations that play named

	of   *State // whose canonical bytes are as they were when it was new
	were []byte
}

// before is the scope's canonical bytes as they were when the state was new.
func (p *play) before() []byte {
	p.t.Helper()
	if p.of != p.s {
		p.of, p.were = p.s, canonical(p.t, p.s)
	}
	return p.were
}

var (
	boss  = Supervisor("boss")
	ann   = User("ann")
	host1 = Runtime("host-1")
)

func newPlay(t rapid.TB) *play {
	t.Helper()
	s, err := New(Binding{ScopeID: "scope", SupervisorSessionID: "boss", BindingRevision: 1})
	if err != nil {
		t.Fatal(err)
	}
	log, err := New(s.Binding())
	if err != nil {
		t.Fatal(err)
	}
	return &play{t: t, s: s, log: log}
}

// operation is the id that a request prescribes, or one of play's own.
func (p *play) operation(r Request) string {
	if named, ok := r.(interface{ Operation() string }); ok {
		return named.Operation()
	}
	p.n++
	return fmt.Sprintf("op-%d", p.n)
}

// do carries out requests one after the other.
func (p *play) do(by Principal, requests ...Request) {
	p.t.Helper()
	for _, r := range requests {
		p.command(Command{OperationID: p.operation(r), Principal: by, Request: r})
	}
}

func (p *play) command(c Command) Decision {
	p.t.Helper()
	before := p.before()
	d, err := p.s.Decide(c)
	if err != nil {
		p.t.Fatalf("%s: %v", c.Request.Type(), err)
	}
	if !bytes.Equal(before, canonical(p.t, p.s)) {
		p.t.Fatalf("%s changed the state that it was decided on", c.Request.Type())
	}
	if d.Replayed {
		if d.Next != p.s || d.Entry.Seq != 0 {
			p.t.Fatalf("%s replayed, but gives another state or an entry", c.Request.Type())
		}
		return d
	}
	data, err := d.Entry.Canonical()
	if err != nil {
		p.t.Fatal(err)
	}
	e, err := DecodeEntry(data)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.log, err = p.log.Apply(&e); err != nil {
		p.t.Fatalf("%s: its entry: %v", c.Request.Type(), err)
	}
	p.s = d.Next
	if got, want := canonical(p.t, p.log), p.before(); !bytes.Equal(got, want) {
		p.t.Fatalf("after %s the log gives\n%s\nwant\n%s", c.Request.Type(), got, want)
	}
	return d
}

// refuse expects a kind of refusal that leaves the scope's bytes as they were.
func (p *play) refuse(by Principal, r Request, want Kind) error {
	p.t.Helper()
	return p.refuseCommand(Command{OperationID: p.operation(r), Principal: by, Request: r}, want)
}

func (p *play) refuseCommand(c Command, want Kind) error {
	p.t.Helper()
	before := p.before()
	d, err := p.s.Decide(c)
	var refusal *Error
	if !errors.As(err, &refusal) || !errors.Is(err, want) {
		p.t.Fatalf("%s: got %v, want %v", c.Request.Type(), err, want)
	}
	if d.Next != nil || d.Entry.Seq != 0 {
		p.t.Errorf("%s was refused, and gives a decision: %+v", c.Request.Type(), d)
	}
	if after := canonical(p.t, p.s); !bytes.Equal(before, after) {
		p.t.Fatalf("the refused %s changed the scope to\n%s\nfrom\n%s", c.Request.Type(), after, before)
	}
	return err
}

func canonical(t rapid.TB, s *State) []byte {
	t.Helper()
	data, err := s.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func newTicket(id string, attempts uint64, dependsOn ...string) NewTicket {
	return NewTicket{ID: id, DependsOn: dependsOn, Contract: Contract{
		Title: "Title of " + id, Objective: "Do " + id, Acceptance: []string{"it is done"}, Retry: Retry{attempts},
	}}
}

func of(id string) Of { return Of{Ticket: id} }

// start makes a ticket and starts it.
func (p *play) start(id string, attempts uint64) {
	p.t.Helper()
	p.do(boss, Create{Tickets: []NewTicket{newTicket(id, attempts)}}, MarkReady{of(id)}, Start{Of: of(id)})
}

// ticket and assignment must be there.
func (p *play) ticket(id string) Ticket {
	p.t.Helper()
	t, ok := p.s.Ticket(id)
	if !ok {
		p.t.Fatalf("there is no ticket %q", id)
	}
	return t
}

func (p *play) assignment(id string) Assignment {
	p.t.Helper()
	a, ok := p.s.Assignment(id)
	if !ok {
		p.t.Fatalf("there is no assignment %q", id)
	}
	return a
}

// dispatch is an assignment's document with a run prepared.
func (p *play) dispatch(assignment, run string) ChildDispatch {
	p.t.Helper()
	d, err := p.s.ChildDispatch(assignment, "root")
	if err != nil {
		p.t.Fatal(err)
	}
	if d, err = d.Prepared(run, ChildSessionID(d.DispatchKey), "born"); err != nil {
		p.t.Fatal(err)
	}
	return d
}

// admit lets a run of an assignment begin on host-1, and gives its document.
func (p *play) admit(assignment, run string) ChildDispatch {
	p.t.Helper()
	d := p.dispatch(assignment, run)
	r, err := d.Admit(p.s.Authority().Epoch)
	if err != nil {
		p.t.Fatal(err)
	}
	p.do(host1, r)
	return d
}

// processStop is the stop of a run that was reaped under pid 7.
func processStop(d ChildDispatch, completed bool) Stop {
	pid := uint64(7)
	return Stop{d.Assignment, StopReceipt{Receipt: *d.Receipt, ChildBirth: d.ChildBirth, Completed: completed, PID: &pid}}
}

func submit(d ChildDispatch) Submit {
	return Submit{Assignment: d.Assignment, Receipt: *d.Receipt, Artifacts: []Artifact{NameArtifact([]byte("result of " + d.Assignment))}, Evidence: []string{}}
}

// finish takes a started ticket from admission to its submission.
func (p *play) finish(assignment string) {
	p.t.Helper()
	d := p.admit(assignment, "run-"+assignment)
	p.do(host1, processStop(d, true), submit(d))
}
