package progress_test

import (
	"fmt"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/progress"
	"github.com/loophost/loophost/host/ticket"
)

// world is a scope in memory that commands change by the rules.
type world struct {
	t     *testing.T
	state *ticket.State
	n     int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := ticket.New(ticket.Binding{ScopeID: "s", SupervisorSessionID: "boss", BindingRevision: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, state: s}
	w.do(ticket.Runtime("host"), ticket.TakeOver{})
	return w
}

func (w *world) do(by ticket.Principal, r ticket.Request) {
	w.t.Helper()
	w.n++
	operation := fmt.Sprint("op", w.n)
	if o, ok := r.(interface{ Operation() string }); ok {
		operation = o.Operation()
	}
	d, err := w.state.Decide(ticket.Command{OperationID: operation, Principal: by, Request: r})
	if err != nil {
		w.t.Fatal(err)
	}
	w.state = d.Next
}

// user gives a person's command.
func (w *world) user(r ticket.Request) { w.t.Helper(); w.do(ticket.User("ada"), r) }

// ready makes a ticket that may be started.
func (w *world) ready(id string, attempts uint64, deps ...string) {
	w.t.Helper()
	c := ticket.Contract{Title: "T", Objective: "o", Acceptance: []string{"x"}, Retry: ticket.Retry{MaxAttempts: attempts}}
	w.user(ticket.Create{Tickets: []ticket.NewTicket{{ID: id, DependsOn: deps, Contract: c}}})
	w.user(ticket.MarkReady{Of: ticket.Of{Ticket: id}})
}

// run starts a ticket and lets its attempt begin.
func (w *world) run(id string) ticket.Assignment {
	w.t.Helper()
	w.user(ticket.Start{Of: ticket.Of{Ticket: id}})
	t, _ := w.state.Ticket(id)
	a, _ := w.state.Assignment(t.ActiveAssignment)
	w.do(ticket.Runtime("host"), ticket.Admit{Assignment: a.ID, Epoch: a.AuthorityEpoch, ChildBirth: "b", Receipt: ticket.RuntimeReceipt{
		DispatchKey: a.DispatchKey, SpecHash: a.SpecHash, RunID: "run " + a.ID, SessionID: "child " + a.ID,
	}})
	a, _ = w.state.Assignment(a.ID)
	return a
}

func (w *world) stop(a ticket.Assignment, completed bool) {
	w.t.Helper()
	pid := uint64(7)
	w.do(ticket.Runtime("host"), ticket.Stop{Assignment: a.ID, Stop: ticket.StopReceipt{Receipt: *a.Runtime, ChildBirth: a.ChildBirth, Completed: completed, PID: &pid}})
}

func (w *world) submit(a ticket.Assignment) {
	w.t.Helper()
	w.stop(a, true)
	w.do(ticket.Runtime("host"), ticket.Submit{Assignment: a.ID, Receipt: *a.Runtime, Artifacts: []ticket.Artifact{ticket.NameArtifact([]byte("x"))}})
}

func (w *world) lose(a ticket.Assignment) {
	w.t.Helper()
	w.do(ticket.Runtime("host"), ticket.LoseLease{Assignment: a.ID})
}

func of(id string) ticket.Of { return ticket.Of{Ticket: id} }

func TestHowATicketStands(t *testing.T) {
	cases := []struct {
		name     string
		play     func(w *world)
		outcome  exit.Outcome
		waitsFor string
		next     string // verb and id
	}{
		{"a ready one", func(w *world) { w.ready("a", 1) }, exit.OutcomeUnderWay, "a worker to start it", "watch a"},
		{"a draft", func(w *world) {
			c := ticket.Contract{Title: "T", Objective: "o", Acceptance: []string{"x"}}
			w.user(ticket.Create{Tickets: []ticket.NewTicket{{ID: "a", Contract: c}}})
		}, exit.OutcomeNeedsPerson, "somebody to mark it ready", "ready a"},
		{"a paused one", func(w *world) { w.ready("a", 1); w.user(ticket.Pause{Of: of("a")}) }, exit.OutcomeNeedsPerson, "somebody to resume it", "resume a"},
		{"a started one", func(w *world) { w.ready("a", 1); w.user(ticket.Start{Of: of("a")}) }, exit.OutcomeUnderWay, "a worker to run a@1", "watch a"},
		{"a running one", func(w *world) { w.ready("a", 1); w.run("a") }, exit.OutcomeUnderWay, "a@1 to finish", "watch a"},
		{"a running one that is paused goes on", func(w *world) { w.ready("a", 1); w.run("a"); w.user(ticket.Pause{Of: of("a")}) }, exit.OutcomeUnderWay, "a@1 to finish", "watch a"},
		{"stopped is not submitted", func(w *world) { w.ready("a", 1); w.stop(w.run("a"), true) }, exit.OutcomeUnderWay, "the result of a@1", "watch a"},
		{"submitted is not accepted", func(w *world) { w.ready("a", 1); w.submit(w.run("a")) }, exit.OutcomeSubmitted, "somebody to accept or reject a@1", "accept a"},
		{"accepted", func(w *world) {
			w.ready("a", 1)
			w.submit(w.run("a"))
			w.user(ticket.Accept{Of: of("a"), Submission: "a@1"})
		}, exit.OutcomeAccepted, "", ""},
		{"failed with attempts left", func(w *world) { w.ready("a", 2); w.stop(w.run("a"), false) }, exit.OutcomeUnderWay, "a worker to start it", "watch a"},
		{"all attempts spent (T-15)", func(w *world) { w.ready("a", 1); w.stop(w.run("a"), false) }, exit.OutcomeFailed, "somebody to unblock it: all attempts are spent", "unblock a"},
		{"blocked by a person", func(w *world) { w.ready("a", 1); w.user(ticket.Block{Of: of("a"), Reason: "why"}) }, exit.OutcomeNeedsPerson, "somebody to unblock it: why", "unblock a"},
		{"nothing proves the stop (T-15)", func(w *world) { w.ready("a", 2); w.lose(w.run("a")) }, exit.OutcomeNeedsPerson, "proof that a@1 stopped, from a worker or from you", "confirm-stopped a@1"},
		{"lost, and proved to have stopped", func(w *world) {
			w.ready("a", 2)
			a := w.run("a")
			w.lose(a)
			w.stop(a, true)
		}, exit.OutcomeUnderWay, "the result of a@1", "watch a"},
		{"a person vouched for the last attempt's stop", func(w *world) {
			w.ready("a", 1)
			w.lose(w.run("a"))
			w.user(ticket.ConfirmStopped{Assignment: "a@1", Reason: "off"})
		}, exit.OutcomeFailed, "somebody to unblock it: all attempts are spent", "unblock a"},
		{"cancelled before it began", func(w *world) { w.ready("a", 1); w.user(ticket.Cancel{Of: of("a")}) }, exit.OutcomeCancelled, "", "reopen a"},
		{"cancelled is not stopped", func(w *world) { w.ready("a", 1); w.run("a"); w.user(ticket.Cancel{Of: of("a")}) }, exit.OutcomeUnderWay, "the stop of a@1", "watch a"},
		{"cancelled and stopped", func(w *world) {
			w.ready("a", 1)
			a := w.run("a")
			w.user(ticket.Cancel{Of: of("a")})
			w.stop(a, false)
		}, exit.OutcomeCancelled, "", "reopen a"},
		{"cancelled, and nothing proves the stop", func(w *world) { w.ready("a", 1); w.lose(w.run("a")); w.user(ticket.Cancel{Of: of("a")}) }, exit.OutcomeNeedsPerson, "proof that a@1 stopped, from a worker or from you", "confirm-stopped a@1"},
		{"reopened while the old attempt is asked to stop", func(w *world) {
			w.ready("a", 1)
			w.run("a")
			w.user(ticket.Cancel{Of: of("a")})
			w.user(ticket.Reopen{Of: of("a")})
		}, exit.OutcomeUnderWay, "the stop of a@1", "watch a"},
		{"its dependency is under way", func(w *world) { w.ready("b", 1); w.ready("a", 1, "b") }, exit.OutcomeUnderWay, "b (ready) to be accepted", "watch a"},
		{"its dependency is submitted", func(w *world) { w.ready("b", 1); w.ready("a", 1, "b"); w.submit(w.run("b")) }, exit.OutcomeSubmitted, "b (submitted) to be accepted", "accept b"},
		{"a dependency of its dependency is submitted", func(w *world) {
			w.ready("c", 1)
			w.ready("b", 1, "c")
			w.ready("a", 1, "b")
			w.submit(w.run("c"))
		}, exit.OutcomeSubmitted, "b (ready) to be accepted", "accept c"},
		{"its dependency failed", func(w *world) { w.ready("b", 1); w.ready("a", 1, "b"); w.stop(w.run("b"), false) }, exit.OutcomeNeedsPerson, "b (failed) to be accepted", "unblock b"},
		{"its dependency was cancelled", func(w *world) { w.ready("b", 1); w.ready("a", 1, "b"); w.user(ticket.Cancel{Of: of("b")}) }, exit.OutcomeNeedsPerson, "b (cancelled) to be accepted", "reopen b"},
		{"of two dependencies the worse one counts", func(w *world) {
			w.ready("b", 1)
			w.ready("c", 1)
			w.ready("a", 1, "b", "c")
			w.user(ticket.Block{Of: of("c"), Reason: "why"})
		}, exit.OutcomeNeedsPerson, "b (ready), c (blocked) to be accepted", "unblock c"},
		{"there is none", func(*world) {}, "", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.play(w)
			got := progress.New(w.state).Ticket("a")
			next := got.Next.Verb
			if got.Next.ID != "" {
				next += " " + got.Next.ID
			}
			if got.Outcome != c.outcome || got.WaitsFor != c.waitsFor || next != c.next {
				t.Errorf("got %q, waits for %q, next %q\nwant %q, %q, %q", got.Outcome, got.WaitsFor, next, c.outcome, c.waitsFor, c.next)
			}
			if got.Outcome == exit.OutcomeUnderWay && len(c.waitsFor) > 0 && c.waitsFor == "a worker to start it" {
				w.user(ticket.Start{Of: of("a")}) // the rules agree that it may start
			}
		})
	}
}

func TestStoredDependenciesThatLeadBackEndTheWalk(t *testing.T) {
	part := `{"schema":1,"binding":{"scope_id":"s","supervisor_session_id":"b","binding_revision":1},"seq":1,"authority_epoch":0,"coordinator":"","tickets":{`
	for i, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
		if i > 0 {
			part += ","
		}
		part += fmt.Sprintf(`%q:{"id":%q,"parent":"","depends_on":[%q],"contract":{"title":"T","objective":"o","constraints":[],"acceptance":["x"],"user_acceptance_required":false,"allowed_tools":[]},"state":"ready","paused":false,"record_revision":1,"contract_revision":1,"generation":0,"attempts":0,"active_assignment":"","current_submission":"","accepted_submission":""}`, pair[0], pair[0], pair[1])
	}
	part += `},"assignments":{},"submissions":{},"intents":{},"receipts":{}}`
	var b ticket.Builder
	if err := b.Add([]byte(part)); err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if got := progress.New(s).Ticket(id); got.Outcome != exit.OutcomeNeedsPerson {
			t.Errorf("%s: got %+v, want that it needs a person", id, got)
		}
	}
}
