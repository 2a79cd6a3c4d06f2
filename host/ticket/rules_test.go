package ticket

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// T-1: same id, principal and request give the stored receipt; the rest is refused
// before anything else is looked at.
func TestAnOperationHappensOnce(t *testing.T) {
	p := newPlay(t)
	create := Command{OperationID: "x", Principal: boss, Request: Create{Tickets: []NewTicket{newTicket("a", 1)}}}
	first := p.command(create)
	p.do(boss, MarkReady{of("a")})
	before := canonical(t, p.s)

	again := p.command(create)
	if !again.Replayed || again.Receipt.CommittedSeq != first.Receipt.CommittedSeq || !slices.Equal(again.Receipt.IDs, []string{"a"}) {
		t.Errorf("got %+v, want the receipt of seq 1", again)
	}
	stale := uint64(0)
	late := create
	late.OnlyAt = &stale
	if d := p.command(late); !d.Replayed {
		t.Error("a replay at another seq was carried out")
	}
	if !bytes.Equal(before, canonical(t, p.s)) {
		t.Error("a replay changed the scope")
	}

	other := create
	other.Request = Create{Tickets: []NewTicket{newTicket("b", 1)}}
	p.refuseCommand(other, IdempotencyConflict)
	other.Request = MarkReady{of("a")}
	p.refuseCommand(other, IdempotencyConflict)
	large := newTicket("b", 1)
	large.Parent = strings.Repeat("x", MaxRequestBytes)
	other.Request = Create{Tickets: []NewTicket{large}}
	p.refuseCommand(other, IdempotencyConflict)
	other.Principal = ann
	p.refuseCommand(other, ScopeDenied)
	stranger := create
	stranger.Principal = ann
	p.refuseCommand(stranger, ScopeDenied)
	// The look-up comes before every other check, also that of who asks.
	stranger.Principal = Principal{}
	if err := p.refuseCommand(stranger, ScopeDenied); !strings.Contains(err.Error(), "another principal") {
		t.Errorf("got %v, want the operation to be another principal's", err)
	}
}

// T-1: an operation id has 1 to 256 bytes.
func TestAnOperationIDHasBounds(t *testing.T) {
	p := newPlay(t)
	r := Create{Tickets: []NewTicket{newTicket("a", 1)}}
	p.refuseCommand(Command{OperationID: "", Principal: boss, Request: r}, InvalidTransition)
	p.refuseCommand(Command{OperationID: strings.Repeat("x", 257), Principal: boss, Request: r}, InvalidTransition)
	p.command(Command{OperationID: strings.Repeat("x", 256), Principal: boss, Request: r})
}

// T-1: nobody can take the id under which a report will be made.
func TestTheIDsOfReportsAreReserved(t *testing.T) {
	p := newPlay(t)
	p.start("a", 1)
	d := p.dispatch("a@1", "run")
	admit, err := d.Admit(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{admit.Operation(), processStop(d, true).Operation(), submit(d).Operation()} {
		for _, by := range []Principal{boss, ann} {
			p.refuseCommand(Command{OperationID: id, Principal: by, Request: Pause{of("a")}}, ScopeDenied)
		}
		p.refuseCommand(Command{OperationID: id, Principal: host1, Request: TakeOver{}}, ScopeDenied)
	}
	p.do(host1, admit, processStop(d, true), submit(d))
}

// T-1: equal wishes have equal bytes, in whatever order a set was written.
func TestASetHasOneOrder(t *testing.T) {
	set := func(ids ...string) *[]string { return &ids }
	for name, pair := range map[string][2]Request{
		"create":    {Create{Tickets: []NewTicket{newTicket("a", 1, "c", "b", "c")}}, Create{Tickets: []NewTicket{newTicket("a", 1, "b", "c")}}},
		"revise":    {Revise{Ticket: "a", DependsOn: set("c", "b")}, Revise{Ticket: "a", DependsOn: set("b", "c", "b")}},
		"take-over": {TakeOver{Expired: []string{"b@1", "a@1", "b@1"}}, TakeOver{Expired: []string{"a@1", "b@1"}}},
		"none":      {TakeOver{}, TakeOver{Expired: []string{}}},
	} {
		one, err := canonicalRequest(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		two, err := canonicalRequest(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, two) {
			t.Errorf("%s: got\n%s\nand\n%s", name, one, two)
		}
	}
	given := []string{"b", "a"}
	if _, err := canonicalRequest(TakeOver{Expired: given}); err != nil || given[0] != "b" {
		t.Errorf("the caller's list became %q (%v)", given, err)
	}
}

// T-2: a command decided on another seq is a revision conflict; the loser rereads.
func TestOneOfTwoAtTheSameSeqWins(t *testing.T) {
	p := newPlay(t)
	p.do(boss, Create{Tickets: []NewTicket{newTicket("a", 1)}})
	seq := p.s.Seq()
	p.command(Command{OperationID: "one", Principal: boss, Request: MarkReady{of("a")}, OnlyAt: &seq})
	two := Command{OperationID: "two", Principal: ann, Request: Pause{of("a")}, OnlyAt: &seq}
	p.refuseCommand(two, RevisionConflict)
	seq = p.s.Seq()
	p.command(two)
	p.refuse(boss, Pause{Of{Ticket: "a", IfRevision: 1}}, RevisionConflict)
}

// T-2: the epoch rises only where the role changes hands.
func TestTheEpochRisesWithTheCoordinatorOnly(t *testing.T) {
	p := newPlay(t)
	p.do(host1, TakeOver{})
	if got := p.s.Authority(); got != (Authority{1, "host-1"}) {
		t.Fatalf("got %+v, want epoch 1 of host-1", got)
	}
	p.do(host1, TakeOver{})
	if got := p.s.Authority().Epoch; got != 1 {
		t.Errorf("the same coordinator again: epoch %d, want 1", got)
	}
	p.do(Runtime("host-2"), TakeOver{})
	if got := p.s.Authority(); got != (Authority{2, "host-2"}) {
		t.Errorf("got %+v, want epoch 2 of host-2", got)
	}
	p.refuse(boss, TakeOver{}, ScopeDenied)
	p.refuse(ann, TakeOver{}, ScopeDenied)
}

// T-2: a take-over loses what ran, or was to run, inside the lost coordinator and
// what has no lease any more; the others keep their permit under the new epoch.
func TestATakeOverLosesOnlyWhatIsGone(t *testing.T) {
	p := newPlay(t)
	p.do(host1, TakeOver{})
	for _, id := range []string{"inside", "waiting", "remote", "expired", "unclaimed"} {
		p.do(boss, Create{Tickets: []NewTicket{newTicket(id, 1)}}, MarkReady{of(id)})
	}
	p.do(boss, Start{Of: of("inside"), Host: "host-1"}, Start{Of: of("waiting"), Host: "host-1"}, Start{Of: of("remote")}, Start{Of: of("expired")}, Start{Of: of("unclaimed")})
	p.admit("inside@1", "r1")
	worker := Runtime("worker-machine")
	for _, id := range []string{"remote", "expired"} {
		d := p.dispatch(id+"@1", "r-"+id)
		r, err := d.Admit(1)
		if err != nil {
			t.Fatal(err)
		}
		p.do(worker, r)
	}
	p.do(Runtime("host-2"), TakeOver{Expired: []string{"expired@1"}})
	for id, want := range map[string]AssignmentState{
		"inside@1": OutcomeUnknown, "waiting@1": OutcomeUnknown, "expired@1": OutcomeUnknown, "remote@1": Running, "unclaimed@1": DispatchPending,
	} {
		if got := p.assignment(id).State; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	remote := p.assignment("remote@1").Runtime
	if err := p.s.Permit(Worker("remote@1", 1, remote.RunID, remote.SessionID)); err != nil {
		t.Errorf("the permit of a run that goes on: %v", err)
	}
	inside := p.assignment("inside@1").Runtime
	denied(t, p.s.Permit(Worker("inside@1", 1, inside.RunID, inside.SessionID)), ScopeDenied, "outcome_unknown")
	// The unclaimed one is admitted under the new epoch only.
	d := p.dispatch("unclaimed@1", "r2")
	old, err := d.Admit(1)
	if err != nil {
		t.Fatal(err)
	}
	p.refuse(worker, old, RevisionConflict)
	old.Epoch = 2
	p.do(worker, old)
}

// T-2: a coordinator that is started anew under the same logical host has another
// id, so what ran inside the one before is lost, and is never run again silently.
func TestARestartedCoordinatorLosesWhatItRan(t *testing.T) {
	p := newPlay(t)
	p.do(Runtime("machine/start-1"), TakeOver{})
	p.do(boss, Create{Tickets: []NewTicket{newTicket("a", 2)}}, MarkReady{of("a")}, Start{Of: of("a"), Host: "machine/start-1"})
	p.do(Runtime("machine/start-2"), TakeOver{})
	if got := p.assignment("a@1").State; got != OutcomeUnknown {
		t.Errorf("got %s, want %s", got, OutcomeUnknown)
	}
	d := p.dispatch("a@1", "run")
	r, err := d.Admit(2)
	if err != nil {
		t.Fatal(err)
	}
	p.refuse(Runtime("machine/start-2"), r, ScopeDenied)
	p.refuse(Runtime("machine/start-1"), r, InvalidTransition)
	p.refuse(boss, Start{Of: of("a")}, InvalidTransition)
	// It was never admitted, so nothing ran: the coordinator ends it, and starts anew.
	p.do(Runtime("machine/start-2"), Fail{Assignment: "a@1", Reason: "it was never admitted"}, Start{Of: of("a"), Host: "machine/start-2"})
	if got := p.ticket("a"); got.State != Active || got.Generation != 2 {
		t.Errorf("got %s at generation %d, want active at 2", got.State, got.Generation)
	}
}

// Life cycle, row 1: an intent is found after a restart, from the log as from a snapshot.
func TestAnIntentIsFoundAfterARestart(t *testing.T) {
	p := newPlay(t)
	p.start("a", 1)
	for name, s := range map[string]*State{"log": p.log, "snapshot": reopened(t, p.s)} {
		in, ok := s.Intent("a@1")
		spec, err := s.Dispatch("a@1")
		if err != nil || !ok {
			t.Fatalf("%s: got %t, %v; want the intent and its spec", name, ok, err)
		}
		hash, err := spec.Hash()
		if err != nil || hash != in.SpecHash || spec.DispatchKey() != in.DispatchKey || in.DispatchKey != "scope/a@1/1" {
			t.Errorf("%s: the spec has %s, %s (%v); the intent %+v", name, spec.DispatchKey(), hash, err, in)
		}
		open := 0
		for range s.Intents() {
			open++
		}
		for range s.Unsettled() {
			open++
		}
		if open != 2 {
			t.Errorf("%s: got %d, want one intent and one unsettled assignment", name, open)
		}
	}
	p.admit("a@1", "run")
	if _, ok := p.s.Intent("a@1"); ok {
		t.Error("the intent outlived the admission")
	}
}

// reopened is the state as its parts give it.
func reopened(t rapid.TB, s *State) *State {
	t.Helper()
	var b Builder
	for data, err := range s.Parts() {
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Add(data); err != nil {
			t.Fatal(err)
		}
	}
	again, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := canonical(t, again), canonical(t, s); !bytes.Equal(got, want) {
		t.Fatalf("its parts give\n%s\nwant\n%s", got, want)
	}
	return again
}

// T-3: a batch is made as a whole or not at all.
func TestABatchIsMadeAsAWholeOrNotAtAll(t *testing.T) {
	p := newPlay(t)
	bad := newTicket("b", 1)
	bad.Contract.Acceptance = nil
	err := p.refuse(boss, Create{Tickets: []NewTicket{newTicket("a", 1), bad}}, InvalidTransition)
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Key != "b" || refusal.Op != "create" {
		t.Errorf("got %v, want the ticket's id and the operation in it", err)
	}
	p.refuse(boss, Create{Tickets: []NewTicket{newTicket("a", 1), newTicket("a", 1)}}, InvalidTransition)
	p.do(boss, Create{Tickets: []NewTicket{newTicket("a", 1)}})
	bad.Contract.Title = strings.Repeat("x", MaxContractBytes)
	bad.Contract.Acceptance = []string{"y"}
	denied(t, p.refuse(boss, Revise{Ticket: "a", Contract: &bad.Contract}, ContextBudgetExceeded), ContextBudgetExceeded, "revise a:")
}

// T-4: no input decodes into a principal, and each role does only what is its own.
func TestPrincipalsAreMadeByTheHost(t *testing.T) {
	var p Principal
	for _, in := range []string{`{}`, `null`, `"user:ann"`, `{"role":"user","id":"ann"}`} {
		if in != "null" && json.Unmarshal([]byte(in), &p) == nil || p != (Principal{}) {
			t.Errorf("%s became the principal %v", in, p)
		}
	}
	if data, err := json.Marshal(ann); err == nil {
		t.Errorf("a principal was written as %s", data)
	}
	q := newPlay(t)
	create := Create{Tickets: []NewTicket{newTicket("a", 1)}}
	for _, by := range []Principal{{}, Supervisor(""), Supervisor("another"), User(""), host1, Worker("a@1", 1, "run", "child")} {
		q.refuse(by, create, ScopeDenied)
	}
	q.do(ann, create)
	q.do(boss, MarkReady{of("a")}, Start{Of: of("a")})
	d := q.dispatch("a@1", "run")
	admit, err := d.Admit(0)
	if err != nil {
		t.Fatal(err)
	}
	worker := Worker("a@1", 1, "run", d.Receipt.SessionID)
	for _, by := range []Principal{boss, ann, worker} {
		q.refuse(by, admit, ScopeDenied)
	}
	q.do(host1, admit)
	for _, by := range []Principal{boss, ann, worker} {
		q.refuse(by, processStop(d, true), ScopeDenied)
		q.refuse(by, submit(d), ScopeDenied)
	}
	for _, r := range []Request{MarkReady{of("a")}, Start{Of: of("a")}, Pause{of("a")}, Cancel{of("a")}, Accept{Of: of("a")}, CancelAttempt{"a@1", "r"}, Fail{"a@1", "r"}} {
		q.refuse(worker, r, ScopeDenied)
	}
	for _, by := range []Principal{boss, host1, worker} {
		q.refuse(by, ConfirmStopped{"a@1", "I looked"}, ScopeDenied)
	}
	for _, by := range []Principal{boss, ann, host1} {
		q.refuse(by, RecordEffect{"a@1", "sent a mail"}, ScopeDenied)
	}
	// A report is given under the id that it prescribes.
	q.refuseCommand(Command{OperationID: "mine", Principal: host1, Request: processStop(d, true)}, ScopeDenied)
}

// T-4, M-4: a report replays for the host that was started anew under another id, and
// a take-over does not.
func TestAReportReplaysAfterARestart(t *testing.T) {
	p := newPlay(t)
	p.do(host1, TakeOver{})
	p.start("a", 1)
	d := p.admit("a@1", "run")
	admit, err := d.Admit(1)
	if err != nil {
		t.Fatal(err)
	}
	p.do(host1, processStop(d, true), submit(d))
	before := canonical(t, p.s)
	p.s, p.log = reopened(t, p.s), reopened(t, p.log)
	for _, r := range []Request{admit, processStop(d, true), submit(d)} {
		first, ok := p.s.Receipt(p.operation(r))
		got := p.command(Command{OperationID: p.operation(r), Principal: Runtime("host-1, started anew"), Request: r})
		if !ok || !got.Replayed || got.Receipt.Principal != "runtime" || got.Receipt.CommittedSeq != first.CommittedSeq {
			t.Errorf("%s: got %+v, want the receipt of seq %d", r.Type(), got, first.CommittedSeq)
		}
		p.refuseCommand(Command{OperationID: p.operation(r), Principal: boss, Request: r}, ScopeDenied)
	}
	if !bytes.Equal(before, canonical(t, p.s)) || p.s.Counts().Submissions != 1 {
		t.Error("the reports made again changed the scope")
	}
	p.command(Command{OperationID: "take", Principal: Runtime("host-2"), Request: TakeOver{}})
	p.refuseCommand(Command{OperationID: "take", Principal: Runtime("host-3"), Request: TakeOver{}}, ScopeDenied)
}

// T-5: a permit ends with each of the things it needs.
func TestAPermitNeedsAllOfIt(t *testing.T) {
	for name, end := range map[string]func(*play, ChildDispatch){
		"the epoch": func(p *play, _ ChildDispatch) { p.do(Runtime("host-2"), TakeOver{Expired: []string{"a@1"}}) },
		"the contract": func(p *play, _ ChildDispatch) {
			c := newTicket("a", 3).Contract
			p.do(boss, Revise{Ticket: "a", Contract: &c})
		},
		"the generation": func(p *play, d ChildDispatch) { p.do(host1, processStop(d, false)); p.do(boss, Start{Of: of("a")}) },
		"the ticket":     func(p *play, _ ChildDispatch) { p.do(boss, Block{of("a"), "wait"}) },
		"the assignment": func(p *play, _ ChildDispatch) { p.do(boss, CancelAttempt{"a@1", "too slow"}) },
		"the stop":       func(p *play, d ChildDispatch) { p.do(host1, processStop(d, true)) },
		"the lease":      func(p *play, _ ChildDispatch) { p.do(host1, TakeOver{}, LoseLease{"a@1"}) },
		"the person":     func(p *play, _ ChildDispatch) { p.do(ann, ConfirmStopped{"a@1", "I pulled the plug"}) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.start("a", 3)
			d := p.admit("a@1", "run")
			worker := Worker("a@1", 1, "run", d.Receipt.SessionID)
			if err := p.s.Permit(worker); err != nil {
				t.Fatalf("the permit of a running worker: %v", err)
			}
			p.do(worker, RecordEffect{"a@1", "sent a mail"})
			end(p, d)
			if err := p.s.Permit(worker); !errors.Is(err, ScopeDenied) {
				t.Errorf("got %v, want %v", err, ScopeDenied)
			}
			p.refuse(worker, RecordEffect{"a@1", "sent another"}, ScopeDenied)
			if got := p.assignment("a@1").Effects; !slices.Equal(got, []string{"sent a mail"}) {
				t.Errorf("the effects are %q", got)
			}
		})
	}
	p := newPlay(t)
	p.start("a", 1)
	denied(t, p.s.Permit(Worker("a@1", 1, "run", "child")), ScopeDenied, "another run was admitted, or none")
	d := p.admit("a@1", "run")
	for _, w := range []Principal{
		host1, boss, Worker("b@1", 1, "run", d.Receipt.SessionID), Worker("a@1", 2, "run", d.Receipt.SessionID),
		Worker("a@1", 1, "other", d.Receipt.SessionID), Worker("a@1", 1, "run", "other"),
	} {
		denied(t, p.s.Permit(w), ScopeDenied, "permit")
	}
}

// T-5: an admission needs the current epoch, contract and ticket, and admits one run.
func TestAStaleAdmissionIsRefused(t *testing.T) {
	p := newPlay(t)
	p.start("a", 3)
	d := p.dispatch("a@1", "run")
	r, err := d.Admit(0)
	if err != nil {
		t.Fatal(err)
	}
	ahead := r
	ahead.Epoch = 1
	p.refuse(host1, ahead, RevisionConflict)
	p.do(boss, Block{of("a"), "wait"})
	p.refuse(host1, r, InvalidTransition)
	p.do(boss, Unblock{of("a")})
	c := newTicket("a", 3).Contract
	p.do(boss, Revise{Ticket: "a", Contract: &c})
	p.refuse(host1, r, RevisionConflict)
	p.do(boss, Fail{"a@1", "the contract was revised"}, Start{Of: of("a")})
	second := p.admit("a@2", "run-2")
	p.refuse(host1, r, InvalidTransition)
	other := p.dispatch("a@2", "run-3")
	late, err := other.Admit(0)
	if err != nil {
		t.Fatal(err)
	}
	p.refuse(host1, late, IdempotencyConflict)
	same, err := second.Admit(0)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.command(Command{OperationID: same.Operation(), Principal: host1, Request: same}); !d.Replayed {
		t.Error("an identical admission was carried out twice")
	}
	wrong := same
	wrong.Receipt.SpecHash = strings.Repeat("0", 64)
	p.refuseCommand(Command{OperationID: "runtime-admit/other", Principal: host1, Request: wrong}, ScopeDenied)
}

// T-6: a published stop is not published otherwise.
func TestAStopIsPublishedOnce(t *testing.T) {
	p := newPlay(t)
	p.start("a", 1)
	d := p.admit("a@1", "run")
	p.do(host1, processStop(d, true))
	if got := p.command(Command{OperationID: processStop(d, true).Operation(), Principal: host1, Request: processStop(d, true)}); !got.Replayed {
		t.Error("the same stop was published twice")
	}
	p.refuse(host1, processStop(d, false), IdempotencyConflict)
}

// T-7: no result before the stop, of no other run, and none without artifacts.
func TestAResultNeedsItsStop(t *testing.T) {
	p := newPlay(t)
	p.start("a", 1)
	d := p.admit("a@1", "run")
	p.refuse(host1, submit(d), AuthorityUnavailable)
	other := processStop(d, true)
	other.Stop.ChildBirth = "later"
	p.refuse(host1, other, ScopeDenied)
	other = processStop(d, true)
	other.Stop.Receipt.RunID = "other"
	p.refuse(host1, other, ScopeDenied)
	p.do(host1, processStop(d, true))
	for name, change := range map[string]func(*Submit){
		"no artifact":       func(r *Submit) { r.Artifacts = nil },
		"too many":          func(r *Submit) { r.Artifacts = slices.Repeat(r.Artifacts, MaxArtifacts+1) },
		"no hash":           func(r *Submit) { r.Artifacts = []Artifact{{URI: "x"}} },
		"an upper-case one": func(r *Submit) { r.Artifacts = []Artifact{{"x", strings.ToUpper(r.Artifacts[0].SHA256)}} },
		"no uri":            func(r *Submit) { r.Artifacts = []Artifact{{"", r.Artifacts[0].SHA256}} },
		"blank evidence":    func(r *Submit) { r.Evidence = []string{" "} },
	} {
		r := submit(d)
		change(&r)
		t.Log(name)
		p.refuse(host1, r, InvalidTransition)
	}
	r := submit(d)
	r.Receipt.SessionID = "other"
	p.refuse(host1, r, ScopeDenied)
	r = submit(d)
	p.do(host1, r)
	r.Artifacts[0].URI = "changed by the caller"
	if sub, _ := p.s.Submission("a@1"); sub.Artifacts[0].URI == r.Artifacts[0].URI {
		t.Error("the scope shares the caller's list")
	}
}

// T-8: what comes late is kept as stale and changes nothing else.
func TestALateResultIsStale(t *testing.T) {
	for name, late := range map[string]func(*play, ChildDispatch){
		"a changed contract": func(p *play, d ChildDispatch) {
			c := newTicket("a", 3).Contract
			p.do(boss, Revise{Ticket: "a", Contract: &c})
			p.do(host1, processStop(d, true))
		},
		"a cancelled ticket": func(p *play, d ChildDispatch) {
			p.do(boss, Cancel{of("a")})
			p.do(host1, processStop(d, true))
		},
		"a cancelled and reopened ticket": func(p *play, d ChildDispatch) {
			p.do(boss, Cancel{of("a")}, Reopen{of("a")})
			p.do(host1, processStop(d, true))
		},
		"a lost attempt at a cancelled ticket": func(p *play, d ChildDispatch) {
			p.do(host1, TakeOver{}, LoseLease{"a@1"})
			p.do(boss, Cancel{of("a")})
			p.do(host1, processStop(d, true))
		},
		"an older generation": func(p *play, d ChildDispatch) {
			p.do(host1, processStop(d, true))
			p.do(boss, Fail{"a@1", "too late"}, Start{Of: of("a")})
			p.admit("a@2", "run-2")
		},
		"a confirmed stop": func(p *play, d ChildDispatch) {
			p.do(ann, ConfirmStopped{"a@1", "I looked"})
			p.do(host1, processStop(d, true))
		},
		"a changed input": func(p *play, d ChildDispatch) {
			p.do(boss, Reopen{of("dep")}, Start{Of: of("dep")})
			p.do(host1, processStop(d, true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.start("dep", 3)
			p.finish("dep@1")
			p.do(boss, Accept{of("dep"), "dep@1"}, Create{Tickets: []NewTicket{newTicket("a", 3, "dep")}}, MarkReady{of("a")}, Start{Of: of("a")})
			d := p.admit("a@1", "run")
			if in := p.assignment("a@1").Inputs; len(in) != 1 || in[0].Submission != "dep@1" || len(in[0].Artifacts) != 1 {
				t.Fatalf("the inputs are %+v, want the accepted submission of dep", in)
			}
			late(p, d)
			ticket, assignment, counts := p.ticket("a"), p.assignment("a@1"), p.s.Counts()
			p.do(host1, submit(d))
			sub, ok := p.s.Submission("a@1")
			if !ok || !sub.Stale {
				t.Errorf("got %+v, %t; want it kept as stale", sub, ok)
			}
			if got := p.ticket("a"); fmt.Sprint(got.State, got.RecordRevision, got.CurrentSubmission) != fmt.Sprint(ticket.State, ticket.RecordRevision, "") {
				t.Errorf("the ticket became %+v, from %+v", got, ticket)
			}
			if got := p.assignment("a@1"); got.State != assignment.State || p.s.Counts().Submissions != counts.Submissions+1 {
				t.Errorf("the assignment became %+v", got)
			}
			p.refuse(boss, Accept{of("a"), "a@1"}, InvalidTransition)
		})
	}
}

// T-8, M-4: the current attempt does not notice that an older one submits.
func TestTheCurrentAttemptIsUntouchedByAnOlderOne(t *testing.T) {
	p := newPlay(t)
	p.start("a", 2)
	old := p.admit("a@1", "run-1")
	p.do(host1, processStop(old, true))
	p.do(boss, Fail{"a@1", "its result is not there"}, Start{Of: of("a")})
	now := p.admit("a@2", "run-2")
	p.do(host1, submit(old))
	if err := p.s.Permit(Worker("a@2", 2, "run-2", now.Receipt.SessionID)); err != nil {
		t.Errorf("the permit of the current run: %v", err)
	}
	p.do(host1, processStop(now, true), submit(now))
	p.do(boss, Accept{of("a"), "a@2"})
}

// T-9: an unsuccessful child gives its stop and no submission, and the ticket goes on.
func TestAnUnsuccessfulAttemptEnds(t *testing.T) {
	p := newPlay(t)
	p.start("a", 2)
	d := p.admit("a@1", "run-1")
	p.do(host1, processStop(d, false))
	if a, tk := p.assignment("a@1"), p.ticket("a"); a.State != Failed || !a.ProcessStopped || tk.State != Ready || tk.ActiveAssignment != "" {
		t.Errorf("got %+v of %+v; want it failed, the ticket ready", a, tk)
	}
	p.do(boss, Start{Of: of("a")})
	d = p.admit("a@2", "run-2")
	p.do(host1, processStop(d, false))
	tk := p.ticket("a")
	if tk.State != Blocked || tk.Blocked.ResumeState != Ready || p.s.Counts().Submissions != 0 {
		t.Errorf("got %+v, want it blocked when all attempts are spent", tk)
	}
	p.do(ann, Unblock{of("a")}, Start{Of: of("a")})
	if tk := p.ticket("a"); tk.Attempts != 1 || tk.Generation != 3 {
		t.Errorf("got attempt %d of generation %d, want 1 of 3", tk.Attempts, tk.Generation)
	}
}

// T-11: an orphan is asked to stop, and its stop ends the attempt.
func TestAnOrphanIsCancelled(t *testing.T) {
	p := newPlay(t)
	p.do(host1, TakeOver{})
	p.start("a", 1)
	d := p.admit("a@1", "run")
	p.refuse(Runtime("host-2"), CancelAttempt{"a@1", "its coordinator is gone"}, ScopeDenied)
	p.do(host1, CancelAttempt{"a@1", "its coordinator is gone"})
	if got := p.assignment("a@1").State; got != Cancelling {
		t.Errorf("got %s, want %s", got, Cancelling)
	}
	p.do(host1, processStop(d, false))
	if got := p.assignment("a@1"); got.State != AssignmentCancelled || !got.ProcessStopped {
		t.Errorf("got %+v, want it cancelled and stopped", got)
	}
}

// T-15: the next start waits for the proof that the attempt before stopped, or for a
// person's word.
func TestARetryWaitsForTheStop(t *testing.T) {
	reachable := map[string]func(*play){
		"cancelled and reopened": func(p *play) { p.do(boss, Cancel{of("a")}, Reopen{of("a")}) },
		"lost, cancelled and reopened": func(p *play) {
			p.do(host1, TakeOver{}, LoseLease{"a@1"})
			p.do(boss, Cancel{of("a")}, Reopen{of("a")})
		},
		"cancelled, lost and reopened": func(p *play) {
			p.do(boss, Cancel{of("a")})
			p.do(host1, TakeOver{}, LoseLease{"a@1"})
			p.do(boss, Reopen{of("a")})
		},
		"paused, cancelled, reopened and resumed": func(p *play) {
			p.do(boss, Pause{of("a")}, Cancel{of("a")}, Reopen{of("a")})
			p.refuse(boss, Start{Of: of("a")}, ResourceBlocked)
			p.do(boss, Resume{of("a")})
		},
		"blocked, cancelled and reopened": func(p *play) { p.do(boss, Block{of("a"), "wait"}, Cancel{of("a")}, Reopen{of("a")}) },
	}
	proofs := map[string]func(*play, ChildDispatch){
		"a stop of one that did not complete": func(p *play, d ChildDispatch) { p.do(host1, processStop(d, false)) },
		"a stop of one that completed":        func(p *play, d ChildDispatch) { p.do(host1, processStop(d, true)) },
		"a person's word":                     func(p *play, _ ChildDispatch) { p.do(ann, ConfirmStopped{"a@1", "I looked"}) },
	}
	for name, reach := range reachable {
		for by, prove := range proofs {
			t.Run(name+", then "+by, func(t *testing.T) {
				p := newPlay(t)
				p.start("a", 1)
				d := p.admit("a@1", "run")
				reach(p)
				p.refuse(boss, Start{Of: of("a")}, AuthorityUnavailable)
				for range p.s.Startable() {
					t.Error("a ticket that can't be started is startable")
				}
				prove(p, d)
				p.do(boss, Start{Of: of("a")})
				if got := p.ticket("a"); got.Generation != 2 || got.ActiveAssignment != "a@2" || got.Attempts != 1 {
					t.Errorf("got %+v, want the first attempt of generation 2", got)
				}
			})
		}
	}
}

// T-15: an attempt of unknown outcome holds its ticket until its stop is proved or
// confirmed; then the contract says whether there is another.
func TestAnUnknownOutcomeIsRetriedOnlyAfterItsStop(t *testing.T) {
	for _, attempts := range []uint64{0, 1, 2} {
		want := Blocked
		if attempts == 2 {
			want = Ready
		}
		for name, end := range map[string]func(*play, ChildDispatch){
			"stopped, not completed": func(p *play, d ChildDispatch) { p.do(host1, processStop(d, false)) },
			"stopped, without a result": func(p *play, d ChildDispatch) {
				p.do(host1, processStop(d, true), Fail{"a@1", "its last message is blank"})
			},
			"confirmed": func(p *play, _ ChildDispatch) { p.do(ann, ConfirmStopped{"a@1", "the machine burnt"}) },
		} {
			t.Run(fmt.Sprintf("%d attempts, %s", attempts, name), func(t *testing.T) {
				p := newPlay(t)
				p.do(host1, TakeOver{})
				p.start("a", attempts)
				d := p.admit("a@1", "run")
				p.do(host1, LoseLease{"a@1"})
				p.refuse(boss, Start{Of: of("a")}, InvalidTransition)
				p.refuse(host1, Fail{"a@1", "it is gone"}, AuthorityUnavailable)
				end(p, d)
				if got := p.ticket("a").State; got != want {
					t.Errorf("the ticket is %s, want %s", got, want)
				}
				if want == Ready {
					p.do(host1, Start{Of: of("a")})
				}
			})
		}
	}
	t.Run("stopped, with a result", func(t *testing.T) {
		p := newPlay(t)
		p.do(host1, TakeOver{})
		p.start("a", 1)
		d := p.admit("a@1", "run")
		p.do(Runtime("host-2"), TakeOver{})
		p.do(Runtime("host-2"), processStop(d, true), submit(d))
		if sub, _ := p.s.Submission("a@1"); sub.Stale || p.ticket("a").State != Submitted || p.s.Counts().Submissions != 1 {
			t.Errorf("got %+v, want one that is not stale", sub)
		}
		denied(t, p.s.Permit(Worker("a@1", 1, "run", d.Receipt.SessionID)), ScopeDenied, "stop is proved")
	})
}

// T-15: a person confirms what nothing else proves, and nothing that is proved.
func TestAPersonConfirmsAStop(t *testing.T) {
	p := newPlay(t)
	p.start("a", 2)
	d := p.admit("a@1", "run")
	p.refuse(ann, ConfirmStopped{"a@1", " "}, InvalidTransition)
	p.do(ann, ConfirmStopped{"a@1", "I looked"})
	if a := p.assignment("a@1"); !a.ProcessStopped || a.State != Failed {
		t.Errorf("got %+v, want it stopped and failed", a)
	}
	p.refuse(ann, ConfirmStopped{"a@1", "I looked again"}, InvalidTransition)
	// The receipt that turns up later changes no state.
	p.do(host1, processStop(d, true))
	if a := p.assignment("a@1"); a.State != Failed {
		t.Errorf("got %s, want %s", a.State, Failed)
	}
}

func TestAcceptance(t *testing.T) {
	p := newPlay(t)
	n := newTicket("a", 1)
	n.Contract.UserAcceptanceRequired = true
	p.do(boss, Create{Tickets: []NewTicket{n, newTicket("b", 1, "a")}}, MarkReady{of("a")}, MarkReady{of("b")}, Start{Of: of("a")})
	p.refuse(boss, Start{Of: of("b")}, ResourceBlocked)
	p.finish("a@1")
	p.refuse(boss, Start{Of: of("b")}, ResourceBlocked)
	p.refuse(host1, Accept{of("a"), "a@1"}, ScopeDenied)
	p.refuse(boss, Accept{of("a"), "a@1"}, ScopeDenied)
	p.refuse(ann, Accept{of("a"), ""}, RevisionConflict)
	p.do(ann, Reject{of("a"), "a@1", "not good"})
	p.do(boss, Start{Of: of("a")})
	p.finish("a@2")
	p.refuse(ann, Accept{of("a"), "a@1"}, RevisionConflict)
	p.do(ann, Accept{of("a"), "a@2"})
	p.do(boss, Start{Of: of("b")})
}

func TestDependenciesHaveNoCycle(t *testing.T) {
	p := newPlay(t)
	child := func(id, parent string) NewTicket { n := newTicket(id, 1); n.Parent = parent; return n }
	p.refuse(boss, Create{Tickets: []NewTicket{newTicket("a", 1, "a")}}, InvalidTransition)
	p.refuse(boss, Create{Tickets: []NewTicket{newTicket("a", 1, "c"), newTicket("b", 1, "a"), newTicket("c", 1, "b")}}, InvalidTransition)
	p.refuse(boss, Create{Tickets: []NewTicket{newTicket("a", 1, "nowhere")}}, InvalidTransition)
	p.refuse(boss, Create{Tickets: []NewTicket{child("a", "b"), child("b", "a")}}, InvalidTransition)
	p.refuse(boss, Create{Tickets: []NewTicket{child("a", "a")}}, InvalidTransition)
	p.refuse(boss, Create{Tickets: []NewTicket{child("a", "nowhere")}}, InvalidTransition)
	// A diamond is none, and the order in a batch does not matter.
	p.do(boss, Create{Tickets: []NewTicket{newTicket("d", 1, "b", "c"), newTicket("b", 1, "a"), newTicket("c", 1, "a"), newTicket("a", 1)}})
	deps := func(ids ...string) *[]string { return &ids }
	p.refuse(boss, Revise{Ticket: "a", DependsOn: deps("d")}, InvalidTransition)
	p.refuse(boss, Revise{Ticket: "a", DependsOn: deps("a")}, InvalidTransition)
	p.refuse(boss, Revise{Ticket: "a", DependsOn: deps("nowhere")}, InvalidTransition)
	p.do(boss, Revise{Ticket: "d", DependsOn: deps("a")}, Revise{Ticket: "b", DependsOn: deps()})
	p.do(boss, Revise{Ticket: "a", DependsOn: deps("b")})
	p.refuse(boss, Revise{Ticket: "b", DependsOn: deps("a")}, InvalidTransition)
}

func TestTheIDOfEveryReportFits(t *testing.T) {
	s, err := New(Binding{ScopeID: strings.Repeat("s", 66), SupervisorSessionID: "boss"})
	if err != nil {
		t.Fatal(err)
	}
	log, _ := New(s.Binding())
	p := &play{t: t, s: s, log: log}
	p.refuse(boss, Create{Tickets: []NewTicket{newTicket(strings.Repeat("t", 128), 1)}}, ContextBudgetExceeded)
	id := strings.Repeat("t", 127)
	p.start(id, 1)
	const run = "0b5f2f0e-6f2e-4f6e-9d0a-0c6f1f7f8a11"
	d := p.dispatch(id+"@1", strings.Repeat("r", 60))
	r, err := d.Admit(0)
	if err != nil {
		t.Fatal(err)
	}
	p.refuse(host1, r, ScopeDenied)
	d = p.admit(id+"@1", run)
	p.do(host1, processStop(d, true), submit(d))
}

func TestWhatIsHandedOutIsACopy(t *testing.T) {
	p := newPlay(t)
	p.start("dep", 1)
	p.finish("dep@1")
	p.do(boss, Accept{of("dep"), "dep@1"}, Create{Tickets: []NewTicket{newTicket("a", 1, "dep")}}, MarkReady{of("a")}, Start{Of: of("a")})
	before := canonical(t, p.s)
	tk, a := p.ticket("a"), p.assignment("a@1")
	sub, _ := p.s.Submission("dep@1")
	spec, err := p.s.Dispatch("a@1")
	if err != nil {
		t.Fatal(err)
	}
	tk.DependsOn[0], tk.Contract.Acceptance[0] = "x", "x"
	a.Inputs[0].Artifacts[0].URI, a.Inputs[0].Ticket = "x", "x"
	sub.Artifacts[0].URI = "x"
	spec.Contract.Acceptance[0], spec.Inputs[0].Artifacts[0].URI = "x", "x"
	if !bytes.Equal(before, canonical(t, p.s)) {
		t.Error("a change of what was handed out changed the scope")
	}
}
