package ticket

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// choices is where a walk takes its decisions from: a number from 0 to n-1.
type choices func(name string, n int) int

// walk gives random commands to a small scope. Beside the scope it keeps what must
// hold of any history, found by its own means.
type walk struct {
	*play
	pick     choices
	commands []Command       // that were carried out
	stopped  map[string]bool // assignments of which a stop was published, or confirmed
	taken    map[string]bool // moves that were seen, as "from > to"
	admitted map[string]*RuntimeReceipt
}

func newWalk(t rapid.TB, pick choices) *walk {
	return &walk{play: newPlay(t), pick: pick, stopped: map[string]bool{}, taken: map[string]bool{}, admitted: map[string]*RuntimeReceipt{}}
}

func one[T any](w *walk, name string, of ...T) T { return of[w.pick(name, len(of))] }

// next is a command that may or may not fit.
func (w *walk) next() Command {
	if len(w.commands) > 0 && w.pick("again", 12) == 0 {
		c := w.commands[w.pick("which", len(w.commands))]
		if w.pick("by another", 4) == 0 {
			c.Principal = one(w, "by", ann, Supervisor("boss"), Runtime("host-9"))
		}
		return c
	}
	id := one(w, "ticket", "a", "b", "c")
	attempt := AssignmentID(id, 1+uint64(w.pick("attempt", 4)))
	if t, ok := w.s.Ticket(id); ok && t.Generation > 0 && w.pick("newest", 4) > 0 {
		attempt = AssignmentID(id, t.Generation)
	}
	host := Runtime(one(w, "host", "host-1", "host-2"))
	if held := w.s.Authority().Coordinator; held != "" && w.pick("coordinator", 4) > 0 {
		host = Runtime(held)
	}
	by := one(w, "who", boss, boss, ann)
	if w.pick("stranger", 20) == 0 {
		by = one(w, "strange", Principal{}, Supervisor("other"), host, Worker(attempt, 1, "run", "child"))
	}
	o := of(id)
	if w.pick("revision", 10) == 0 {
		o.IfRevision = 1 + uint64(w.pick("at", 5))
	}
	receipt, birth := RuntimeReceipt{}, ""
	if a, ok := w.s.Assignment(attempt); ok {
		receipt, birth = RuntimeReceipt{a.DispatchKey, a.SpecHash, one(w, "run", "run", "run", "other"), "child"}, "born"
		if a.Runtime != nil && w.pick("same run", 8) > 0 {
			receipt, birth = *a.Runtime, a.ChildBirth
		}
	}
	verb := one(w, "verb", "create", "batch", "revise", "ready", "start", "pause", "resume", "block", "unblock", "cancel", "reopen", "accept", "reject",
		"admit", "stop", "submit", "lose lease", "take over", "cancel attempt", "fail", "confirm")
	if w.pick("fitting", 5) > 1 {
		verb = w.fitting(id)
	}
	pid := uint64(7)
	var r Request
	switch verb {
	case "create":
		r = Create{Tickets: []NewTicket{newTicket(id, uint64(w.pick("attempts", 3)))}}
	case "batch":
		r = Create{Tickets: []NewTicket{newTicket("a", 2), newTicket("b", 1, "a"), newTicket("c", 3)}}
	case "revise":
		change := Revise{Ticket: id}
		if w.pick("contract", 2) == 0 {
			change.Contract = &Contract{Title: "Other", Objective: "o", Acceptance: []string{"x"}, Retry: Retry{uint64(w.pick("attempts", 3))}}
		} else {
			deps := one(w, "deps", []string{}, []string{"a"}, []string{"b"}, []string{"c"})
			change.DependsOn = &deps
		}
		r = change
	case "ready":
		r = MarkReady{o}
	case "start":
		start := Start{Of: o}
		if w.pick("bound", 2) == 0 {
			start.Host = w.s.Authority().Coordinator
		}
		r, by = start, one(w, "starter", by, host)
	case "pause":
		r = Pause{o}
	case "resume":
		r = Resume{o}
	case "block":
		r = Block{o, "wait"}
	case "unblock":
		r = Unblock{o}
	case "cancel":
		r = Cancel{o}
	case "reopen":
		r = Reopen{o}
	case "accept":
		r = Accept{o, attempt}
	case "reject":
		r = Reject{o, attempt, "no"}
	case "admit":
		by, r = host, Admit{attempt, w.epoch(), receipt, birth}
	case "stop":
		by, r = host, Stop{attempt, StopReceipt{Receipt: receipt, ChildBirth: birth, Completed: w.pick("completed", 3) > 0, PID: &pid}}
	case "submit":
		by, r = host, Submit{attempt, receipt, []Artifact{NameArtifact([]byte(attempt))}, []string{}}
	case "lose lease":
		by, r = host, LoseLease{attempt}
	case "take over":
		by, r = Runtime(one(w, "new host", "host-1", "host-2", "host-3")), one(w, "expired", TakeOver{}, TakeOver{Expired: []string{attempt}})
	case "cancel attempt":
		r = CancelAttempt{attempt, "slow"}
	case "fail":
		r = Fail{attempt, "nothing"}
	case "confirm":
		by, r = ann, ConfirmStopped{attempt, "I looked"}
	}
	c := Command{OperationID: w.operation(r), Principal: by, Request: r}
	if w.pick("decided at", 15) == 0 {
		at := w.s.Seq() - min(w.s.Seq(), uint64(w.pick("behind", 2)))
		c.OnlyAt = &at
	}
	return c
}

// step gives one command and checks what must hold after it.
func (w *walk) step() {
	w.t.Helper()
	c, before := w.next(), w.s
	bytesBefore := w.before()
	if _, err := before.Decide(c); err != nil {
		var refusal *Error
		if !errors.As(err, &refusal) || !slices.Contains(Kinds(), refusal.Kind) {
			w.t.Fatalf("%s: got %v, want an *Error of a known kind", c.Request.Type(), err)
		}
		if !bytes.Equal(bytesBefore, canonical(w.t, before)) {
			w.t.Fatalf("the refused %s changed the scope", c.Request.Type())
		}
		if r, ok := c.Request.(Submit); ok && c.OnlyAt == nil && c.Principal.Role() == RoleRuntime && w.stopped[r.Assignment] {
			if a := w.assignment(r.Assignment); a.Runtime != nil && *a.Runtime == r.Receipt {
				w.t.Fatalf("a result of the stopped %+v is lost (T-8): %v", a, err)
			}
		}
		return
	}
	if d := w.command(c); d.Replayed { // it compares the log with the state
		return
	}
	w.commands = append(w.commands, c)
	switch r := c.Request.(type) {
	case Stop:
		w.stopped[r.Assignment] = true
	case ConfirmStopped:
		w.stopped[r.Assignment] = true
	case Admit:
		w.admitted[r.Assignment] = &r.Receipt
	case Start:
		w.started(r.Ticket)
	}
	w.compare(before)
	w.hold()
}

// started: T-15. Nothing of the ticket that was ever admitted runs any more, and
// nothing else of it can be admitted.
func (w *walk) started(ticket string) {
	w.t.Helper()
	now := w.ticket(ticket)
	for g := uint64(1); g < now.Generation; g++ {
		id := AssignmentID(ticket, g)
		if a := w.assignment(id); w.admitted[id] != nil && !w.stopped[id] || a.State == DispatchPending {
			w.t.Fatalf("%s was started while %s is %s, its stop proved: %t", ticket, id, a.State, w.stopped[id])
		}
	}
}

// compare: what never goes back.
func (w *walk) compare(before *State) {
	w.t.Helper()
	was, is := before.Authority(), w.s.Authority()
	if is.Epoch < was.Epoch || is.Epoch != was.Epoch && is.Coordinator == was.Coordinator || w.s.Seq() != before.Seq()+1 {
		w.t.Fatalf("the authority went from %+v to %+v at seq %d (T-2)", was, is, w.s.Seq())
	}
	for old := range before.Tickets() {
		t := w.ticket(old.ID)
		if t.Generation < old.Generation || t.Generation > old.Generation+1 || t.ContractRevision < old.ContractRevision || t.RecordRevision < old.RecordRevision {
			w.t.Fatalf("ticket %s went back from %+v to %+v", t.ID, old, t)
		}
		if t.State != old.State {
			w.taken[fmt.Sprint("ticket ", old.State, " > ", t.State)] = true
		}
	}
	for old := range before.Assignments() {
		a := w.assignment(old.ID)
		if old.ProcessStopped && !a.ProcessStopped || old.Runtime != nil && (a.Runtime == nil || *a.Runtime != *old.Runtime || a.ChildBirth != old.ChildBirth) ||
			a.AuthorityEpoch < old.AuthorityEpoch || a.SpecHash != old.SpecHash || a.Generation != old.Generation {
			w.t.Fatalf("assignment %s went back from %+v to %+v", a.ID, old, a)
		}
		if a.State != old.State {
			w.taken[fmt.Sprint("assignment ", old.State, " > ", a.State)] = true
		}
	}
	for old := range before.Submissions() {
		if sub, ok := w.s.Submission(old.ID); !ok || sub.Stale != old.Stale || sub.Artifacts[0] != old.Artifacts[0] {
			w.t.Fatalf("submission %s went from %+v to %+v", old.ID, old, sub)
		}
	}
}

// hold: what is true of every state.
func (w *walk) hold() {
	w.t.Helper()
	mayRun := map[string]int{}
	live := map[string]bool{}
	for a := range w.s.Live() {
		live[a.ID] = true
	}
	for a := range w.s.Assignments() {
		if a.ProcessStopped != w.stopped[a.ID] {
			w.t.Fatalf("%s: process_stopped is %t, but a stop was published or confirmed: %t", a.ID, a.ProcessStopped, w.stopped[a.ID])
		}
		if (a.Runtime != nil) != (w.admitted[a.ID] != nil) {
			w.t.Fatalf("%s has the run %v, but %v was admitted", a.ID, a.Runtime, w.admitted[a.ID])
		}
		if a.Runtime != nil && !a.ProcessStopped || a.State == DispatchPending {
			mayRun[a.Ticket]++
		}
		atWork := !slices.Contains([]AssignmentState{AssignmentSubmitted, Failed, AssignmentCancelled, OutcomeUnknown}, a.State)
		if live[a.ID] != atWork {
			w.t.Fatalf("%s is %s; among the live: %t", a.ID, a.State, live[a.ID])
		}
		if atWork && a.AuthorityEpoch != w.s.Authority().Epoch {
			w.t.Fatalf("%s is %s at epoch %d, the scope at %d (T-2)", a.ID, a.State, a.AuthorityEpoch, w.s.Authority().Epoch)
		}
		if over := slices.Contains([]AssignmentState{AssignmentSubmitted, Failed, AssignmentCancelled}, a.State); over && a.Runtime != nil && !w.stopped[a.ID] {
			w.t.Fatalf("%s ran and is %s without a stop (T-7, T-15)", a.ID, a.State)
		} else if over && w.ticket(a.Ticket).ActiveAssignment == a.ID {
			w.t.Fatalf("%s is %s, and still its ticket's active attempt", a.ID, a.State)
		}
		if _, wanted := w.s.Intent(a.ID); wanted != (a.State == DispatchPending) {
			w.t.Fatalf("%s is %s; its intent is there: %t", a.ID, a.State, wanted)
		}
		w.permit(a)
	}
	for t := range w.s.Tickets() {
		if mayRun[t.ID] > 1 {
			w.t.Fatalf("%d attempts at %s may run (T-15)", mayRun[t.ID], t.ID)
		}
		w.submissions(t)
	}
}

// permit: T-5.
func (w *walk) permit(a *Assignment) {
	w.t.Helper()
	if a.Runtime == nil {
		return
	}
	t := w.ticket(a.Ticket)
	want := t.State == Active && t.ActiveAssignment == a.ID && t.Generation == a.Generation && t.ContractRevision == a.ContractRevision &&
		a.AuthorityEpoch == w.s.Authority().Epoch && (a.State == Admitted || a.State == Running) && !w.stopped[a.ID]
	if err := w.s.Permit(Worker(a.ID, a.Generation, a.Runtime.RunID, a.Runtime.SessionID)); (err == nil) != want {
		w.t.Fatalf("the permit of %+v for %+v: got %v, want one: %t", a, t, err, want)
	}
}

// submissions: at most one is current, it is of the newest attempt and not stale, and
// only such a one is accepted (T-8).
func (w *walk) submissions(t *Ticket) {
	w.t.Helper()
	for _, id := range []string{t.CurrentSubmission, t.AcceptedSubmission} {
		if id == "" {
			continue
		}
		sub, ok := w.s.Submission(id)
		if !ok || sub.Stale || sub.Ticket != t.ID || sub.Generation != t.Generation || !w.stopped[sub.Assignment] || w.assignment(sub.Assignment).State != AssignmentSubmitted {
			w.t.Fatalf("the submission %q of %+v is %+v", id, t, sub)
		}
	}
	if (t.State == Accepted) != (t.AcceptedSubmission != "") || t.State == Accepted && t.AcceptedSubmission != t.CurrentSubmission || t.State == Submitted && t.CurrentSubmission == "" {
		w.t.Fatalf("ticket %+v does not go with its submissions", t)
	}
}

func (w *walk) steps(n int) {
	w.t.Helper()
	for i := range n {
		if w.step(); i%16 == 0 {
			w.s, w.log = reopened(w.t, w.s), reopened(w.t, w.log)
		}
	}
}

func TestWhateverIsCommandedTheRulesHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, name) }
		newWalk(rt, pick).steps(rapid.IntRange(1, 80).Draw(rt, "steps"))
	})
}

// The walks that the seeds 1, 2, … give take every move of both tables that a command
// alone can take; without that they would show little.
func TestTheWalksTakeEveryMove(t *testing.T) {
	taken := map[string]bool{}
	for seed := range uint64(120) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := newWalk(t, func(_ string, n int) int { return random.IntN(n) })
		w.steps(80)
		for k := range w.taken {
			taken[k] = true
		}
	}
	missing(t, "ticket", taken, ticketMoves)
	missing(t, "assignment", taken, assignmentMoves)
}

func missing[S ~string](t *testing.T, what string, taken map[string]bool, table []Move[S]) {
	t.Helper()
	for _, m := range table {
		for _, from := range m.From {
			for _, to := range m.To {
				if to == S(Admitted) {
					to = S(Running) // an admission is both moves
				}
				if move := fmt.Sprint(what, " ", from, " > ", to); from != S(Admitted) && from != to && !taken[move] {
					t.Errorf("no walk took %q (%s)", move, m.On)
				}
			}
		}
	}
}

// fitting is a verb that brings a ticket on.
func (w *walk) fitting(id string) string {
	t, ok := w.s.Ticket(id)
	switch {
	case !ok:
		return one(w, "make", "create", "batch")
	case t.State == Draft:
		return "ready"
	case t.State == Ready && t.Paused:
		return "resume"
	case t.State == Ready:
		return "start"
	case t.State == Blocked:
		return one(w, "blocked", "unblock", "unblock", "stop", "submit", "cancel attempt")
	case t.State == Submitted:
		return one(w, "judge", "accept", "accept", "reject")
	case t.State != Active:
		return one(w, "over", "reopen", "pause", "submit", "stop")
	}
	switch a := w.assignment(t.ActiveAssignment); {
	case a.State == DispatchPending:
		return "admit"
	case a.ProcessStopped:
		return one(w, "stopped", "submit", "submit", "fail")
	case a.State == Cancelling:
		return one(w, "cancelling", "stop", "stop", "confirm", "lose lease")
	case a.State == OutcomeUnknown:
		return one(w, "unknown", "stop", "confirm", "fail")
	default:
		return "stop"
	}
}

// epoch is the scope's, or now and then one that it never had yet.
func (w *walk) epoch() uint64 {
	if w.pick("epoch", 10) == 0 {
		return w.s.Authority().Epoch + 1
	}
	return w.s.Authority().Epoch
}
