package scope_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// TestAnyWalkOfSeveralHandlesLosesNothing lets three handles give random commands,
// each over a store that fails at random, be closed and opened at random, and repeat
// what they did before. What was acknowledged stays; what was refused is nowhere.
func TestAnyWalkOfSeveralHandlesLosesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		st := at(t)
		walks := 12
		if testing.Short() {
			walks = 3
		}
		for seed := range uint64(walks) {
			walk(t, st, rand.New(rand.NewPCG(seed, 1)), ticket.Binding{ScopeID: fmt.Sprint("walk ", seed), SupervisorSessionID: "boss"})
		}
	})
}

func walk(t *testing.T, st store.Store, r *rand.Rand, b ticket.Binding) {
	t.Helper()
	first, err := scope.Create(t.Context(), st, b, scope.Config{})
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	const handles, steps = 3, 120
	var faulty [handles]*conformance.Faulty
	var open [handles]*scope.Scope
	acked := map[string][]byte{}
	given := map[string]ticket.Command{}
	for i := range open {
		faulty[i] = conformance.NewFaulty(st)
	}
	for n := range steps {
		i := r.IntN(handles)
		if open[i] == nil {
			if open[i], err = scope.Open(t.Context(), faulty[i].Store(), b, scope.Config{SnapshotAfter: 1_500}); err != nil {
				open[i] = nil
				continue // a fault struck; the next step tries again
			}
		}
		switch r.IntN(10) {
		case 0:
			open[i].Close()
			open[i] = nil
			continue
		case 1, 2:
			faulty[i].Inject(conformance.Fault{Nth: 1 + r.IntN(6), When: conformance.When(r.IntN(3)), Times: 1 + r.IntN(3)})
		}
		c := randomCommand(r, n)
		if again, ok := given[c.OperationID]; ok {
			c = again
		}
		given[c.OperationID] = c
		receipt, err := open[i].Do(t.Context(), c)
		var refused *ticket.Error
		switch {
		case err == nil:
			data := mustCanonical(t, receipt)
			if was, ok := acked[c.OperationID]; ok && !bytes.Equal(was, data) {
				t.Errorf("%s: %s was acknowledged as\n%s\nand then as\n%s", b.ScopeID, c.OperationID, was, data)
			}
			acked[c.OperationID] = data
		case errors.As(err, &refused):
			if _, ok := acked[c.OperationID]; ok {
				t.Errorf("%s: %s was acknowledged, and then refused: %v", b.ScopeID, c.OperationID, err)
			}
		case errors.Is(err, store.ErrUnknownOutcome):
			if err := open[i].Reopen(t.Context()); err != nil {
				open[i].Close()
				open[i] = nil
			}
		case !errors.Is(err, store.ErrUnavailable):
			t.Errorf("%s: %s: %v", b.ScopeID, c.OperationID, err)
		}
	}
	for i, s := range open {
		faulty[i].Heal()
		if s != nil {
			s.Close()
		}
	}
	last, err := scope.Read(t.Context(), st, b.ScopeID)
	if err != nil {
		t.Fatal(err)
	}
	for op, want := range acked {
		kept, ok := last.Receipt(op)
		if got := mustCanonical(t, kept); !ok || !bytes.Equal(got, want) {
			t.Errorf("%s: the receipt of %s is\n%s\nacknowledged was\n%s", b.ScopeID, op, got, want)
		}
	}
	if n := last.Counts().Receipts; uint64(n) != last.Seq() || n < len(acked) || n < 10 {
		t.Errorf("%s: %d receipts at seq %d, %d acknowledged", b.ScopeID, n, last.Seq(), len(acked))
	}
	wantWhole(t, st, b.ScopeID)
}

// randomCommand is one of a few commands on a few tickets; a part of the operation
// ids comes again.
func randomCommand(r *rand.Rand, n int) ticket.Command {
	id := fmt.Sprint("t", r.IntN(30))
	of := ticket.Of{Ticket: id}
	c := newTicket(id)
	switch r.IntN(4) {
	case 0:
		c.Request = ticket.MarkReady{Of: of}
	case 1:
		c.Request = ticket.Revise{Ticket: id, DependsOn: &[]string{}}
	}
	c.OperationID = fmt.Sprint("op ", n)
	if r.IntN(4) == 0 {
		c.OperationID = fmt.Sprint("op ", r.IntN(n+1))
	}
	return c
}
