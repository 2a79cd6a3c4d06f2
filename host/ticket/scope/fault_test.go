package scope_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// small makes snapshots after every few commands.
var small = scope.Config{SnapshotAfter: 2_000}

// story is what the fault tests carry out: every step once, however often it is tried.
func story() []ticket.Command {
	boss, host := ticket.Supervisor("boss"), ticket.Runtime("host")
	of := ticket.Of{Ticket: "a"}
	epoch := uint64(0)
	return []ticket.Command{
		{OperationID: "take", Principal: host, Request: ticket.TakeOver{Expired: []string{}, IfEpoch: &epoch}},
		newTicket("a"),
		newTicket("b"),
		{OperationID: "ready", Principal: boss, Request: ticket.MarkReady{Of: of}},
		{OperationID: "start", Principal: host, Request: ticket.Start{Of: of}},
		newTicket("c"),
		{OperationID: "pause", Principal: boss, Request: ticket.Pause{Of: of}},
		newTicket("d"),
	}
}

// tell carries the story out on a store that fails, as a host would: it opens again
// what is not there or can't be written, and gives a command again until it is
// answered. acked are the receipts that it got.
func tell(t *testing.T, st store.Store, b ticket.Binding) (acked []ticket.Receipt) {
	t.Helper()
	var s *scope.Scope
	const tries = 6 // one fault can cost several
	for i := range tries {
		var err error
		if s, err = scope.Create(t.Context(), st, b, small); err != nil {
			s, err = scope.Open(t.Context(), st, b, small)
		}
		if err == nil {
			break
		}
		if i == tries-1 {
			t.Fatalf("opening: %v", err)
		}
	}
	defer func() { s.Close() }()
	for _, c := range story() {
		for i := 0; ; i++ {
			before := s.State()
			r, err := s.Do(t.Context(), c)
			if err == nil {
				acked = append(acked, r)
				break
			}
			if got := s.State(); got != before && got.Seq() == before.Seq() {
				t.Errorf("%s failed (%v) and left another state of the same seq (T-3)", c.OperationID, err)
			}
			if i == tries {
				t.Fatalf("%s: %v", c.OperationID, err)
			}
			if errors.Is(err, store.ErrUnknownOutcome) {
				if err := s.Reopen(t.Context()); err != nil {
					t.Logf("reopening: %v", err)
				}
			}
		}
	}
	return acked
}

func TestAFaultAtEveryStoreCallLosesNothing(t *testing.T) {
	memory := memstore.New().Open()
	defer memory.Close()
	everywhere(t, func(t *testing.T, at place) {
		plain := at(t)
		for _, when := range []conformance.When{conformance.Before, conformance.After, conformance.Torn} {
			for n, struck := 1, true; struck; n++ {
				b := ticket.Binding{ScopeID: fmt.Sprintf("%s %s %d", t.Name(), when, n), SupervisorSessionID: "boss"}
				f := conformance.NewFaulty(plain, conformance.Fault{Nth: n, When: when})
				acked := tell(t, f.Store(), b)
				if struck = f.Struck() > 0; !struck && n < 12 {
					t.Errorf("only %d store calls were made", n)
				}
				wantTold(t, fmt.Sprintf("call %d failed %s", n, when), plain, memory, b, acked)
			}
		}
	})
}

// wantTold wants the scope b in st to be that of the whole story, as it is told
// without faults in memory, with every receipt that was acknowledged.
func wantTold(t *testing.T, what string, st, memory store.Store, b ticket.Binding, acked []ticket.Receipt) {
	t.Helper()
	reference, err := scope.Create(t.Context(), memory, b, small)
	if err != nil {
		t.Fatal(err)
	}
	defer reference.Close()
	for _, c := range story() {
		do(t, reference, c)
	}
	again, err := scope.Open(t.Context(), st, b, scope.Config{})
	if err != nil {
		t.Errorf("%s: reopening: %v", what, err)
		return
	}
	defer again.Close()
	wantSame(t, what+": reopened", again.State(), reference.State())
	for _, r := range acked {
		kept, ok := again.State().Receipt(r.OperationID)
		if !ok || !bytes.Equal(mustCanonical(t, kept), mustCanonical(t, r)) {
			t.Errorf("%s: the receipt of %s is %+v, acknowledged was %+v", what, r.OperationID, kept, r)
		}
	}
	wantWhole(t, st, b.ScopeID)
}

func wantWhole(t *testing.T, st store.Store, id string) {
	t.Helper()
	r, err := scope.Check(t.Context(), st, id)
	if err != nil || len(r.Findings) > 0 {
		t.Errorf("check: got %q, %v; want all whole", r.Findings, err)
	}
}

func TestACommitThatCannotBeSettledMakesTheHandleReadOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		f := conformance.NewFaulty(at(t))
		s := create(t, f.Store(), scope.Config{})
		fill(t, s, 2)
		was := s.State()
		f.Inject(
			conformance.Fault{Op: conformance.OpCommit, When: conformance.After, Err: &store.Error{Op: "commit", Kind: store.ErrUnknownOutcome}},
			conformance.Fault{Op: conformance.OpResolve, Times: 2},
		)
		_, err := s.Do(t.Context(), newTicket("lost"))
		wantKind(t, "a commit of unknown outcome (T-3)", err, store.ErrUnknownOutcome)
		if s.State() != was {
			t.Error("the published state changed; want the old one readable (T-3)")
		}
		_, err = s.Do(t.Context(), newTicket("next"))
		wantKind(t, "the next command", err, store.ErrUnknownOutcome)
		do(t, s, newTicket("t1")) // a replay writes nothing
		wantKind(t, "reopening while the store can't tell", s.Reopen(t.Context()), store.ErrUnavailable)
		if err := s.Reopen(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := do(t, s, newTicket("lost")); r.CommittedSeq != 3 {
			t.Errorf("the command again: got seq %d, want 3, where it was applied (T-1)", r.CommittedSeq)
		}
		do(t, s, newTicket("next"))
		wantSame(t, "reopened", open(t, at(t), scope.Config{}).State(), s.State())
	})
}

func TestACommitThatIsSettledIsAnswered(t *testing.T) {
	for _, when := range []conformance.When{conformance.Before, conformance.After} {
		t.Run(when.String(), func(t *testing.T) {
			f := conformance.NewFaulty(places(t)["memory"](t))
			s := create(t, f.Store(), scope.Config{})
			f.Inject(conformance.Fault{Op: conformance.OpCommit, When: when, Err: &store.Error{Op: "commit", Kind: store.ErrUnknownOutcome}})
			if r := do(t, s, newTicket("a")); r.CommittedSeq != 1 || f.Count(conformance.OpResolve) != 1 {
				t.Errorf("got seq %d after %d resolves, want 1 after 1", r.CommittedSeq, f.Count(conformance.OpResolve))
			}
		})
	}
}

func TestALoserGivesUpAfterFourRereads(t *testing.T) {
	st := places(t)["memory"](t)
	f := conformance.NewFaulty(st)
	s := create(t, f.Store(), scope.Config{})
	other := open(t, st, scope.Config{})
	rival := 0
	f.Inject(conformance.Fault{
		Op: conformance.OpCommit, Times: -1, Err: &store.Error{Op: "commit", Kind: store.ErrConflict},
		Then: func() { do(t, other, newTicket(fmt.Sprint("rival", rival))); rival++ },
	})
	_, err := s.Do(t.Context(), newTicket("a"))
	wantKind(t, "a command that always loses (T-2)", err, ticket.RevisionConflict)
	if rival != 1+scope.MaxRereads {
		t.Errorf("it was tried %d times, want %d", rival, 1+scope.MaxRereads)
	}
	f.Heal()
	if r := do(t, s, newTicket("a")); r.CommittedSeq != uint64(rival)+1 {
		t.Errorf("once nobody is faster: got seq %d, want %d", r.CommittedSeq, rival+1)
	}
}
