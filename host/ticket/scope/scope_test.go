package scope_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

func TestAReopenedScopeIsTheSameByteByByte(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		st := at(t)
		s := create(t, st, scope.Config{})
		fill(t, s, 3)
		was, bytesBefore := s.State(), raw(t, st)
		s.Close()
		again := open(t, at(t), scope.Config{})
		wantSame(t, "reopened", again.State(), was)
		first := do(t, again, newTicket("t1")) // T-1: a replay
		if want, _ := was.Receipt("create t1"); !bytes.Equal(mustCanonical(t, first), mustCanonical(t, want)) {
			t.Errorf("a replay after reopening: got %+v, want %+v", first, want)
		}
		wantSame(t, "after the replay", again.State(), was)
		if got := raw(t, st); !bytes.Equal(got, bytesBefore) {
			t.Errorf("opening and a replay changed what is stored (T-1, T-2):\n%s\nwant\n%s", got, bytesBefore)
		}
	})
}

func mustCanonical(t *testing.T, r ticket.Receipt) []byte {
	t.Helper()
	data, err := r.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestARefusalLeavesTheBytesAsTheyWere(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		st := at(t)
		s := create(t, st, scope.Config{})
		fill(t, s, 2)
		was := raw(t, st)
		bad := newTicket("t1")
		bad.OperationID = "another id"
		_, err := s.Do(t.Context(), bad)
		wantKind(t, "a ticket that exists", err, ticket.InvalidTransition)
		bad.OperationID = "create t0"
		_, err = s.Do(t.Context(), bad)
		wantKind(t, "the id of another request (T-1)", err, ticket.IdempotencyConflict)
		bad = newTicket("t0")
		bad.Principal = ticket.User("eve")
		_, err = s.Do(t.Context(), bad)
		wantKind(t, "another principal's operation (T-1)", err, ticket.ScopeDenied)
		_, err = s.Do(t.Context(), ticket.Command{OperationID: "x", Principal: ticket.User("eve")})
		wantKind(t, "a command that asks for nothing", err, ticket.InvalidTransition)
		if got := raw(t, st); !bytes.Equal(got, was) {
			t.Errorf("refusals changed what is stored:\n%s\nwant\n%s", got, was)
		}
	})
}

func TestAnotherBindingOpensNothing(t *testing.T) {
	st := places(t)["memory"](t)
	create(t, st, scope.Config{})
	was := raw(t, st)
	for name, b := range map[string]ticket.Binding{
		"another supervisor":       {ScopeID: "work", SupervisorSessionID: "other", BindingRevision: 1},
		"another binding revision": {ScopeID: "work", SupervisorSessionID: "boss", BindingRevision: 2},
		"no supervisor":            {ScopeID: "work"},
	} {
		_, err := scope.Open(t.Context(), st, b, scope.Config{})
		wantKind(t, name+" (T-2)", err, ticket.ScopeDenied)
	}
	_, err := scope.Open(t.Context(), st, ticket.Binding{ScopeID: "nowhere", SupervisorSessionID: "boss"}, scope.Config{})
	wantKind(t, "a scope that is not there", err, store.ErrNotFound)
	_, err = scope.Create(t.Context(), st, bound, scope.Config{})
	wantKind(t, "a scope that is there", err, store.ErrExists)
	if got := raw(t, st); !bytes.Equal(got, was) {
		t.Errorf("opening changed what is stored:\n%s\nwant\n%s", got, was)
	}
}

func TestALoserDecidesAnewAndOnlyAtDoesNot(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		a := create(t, at(t), scope.Config{})
		b := open(t, at(t), scope.Config{})
		seq := b.State().Seq()
		do(t, a, newTicket("first"))
		// b does not know of it: it loses, rereads and wins (T-2).
		if r := do(t, b, newTicket("second")); r.CommittedSeq != 2 {
			t.Errorf("the loser of the race: got seq %d, want 2", r.CommittedSeq)
		}
		late := newTicket("third")
		late.OnlyAt = &seq
		_, err := a.Do(t.Context(), late)
		wantKind(t, "a command decided on seq 0, at seq 2", err, ticket.RevisionConflict)
		// A refusal of old knowledge is not given: a now knows "second" only by reading.
		start := ticket.Command{OperationID: "ready", Principal: ticket.Supervisor("boss"), Request: ticket.MarkReady{Of: ticket.Of{Ticket: "second"}}}
		do(t, a, start)
		seq = a.State().Seq()
		third := newTicket("third")
		third.OnlyAt = &seq
		do(t, b, third) // b read seq 3 for it
		if _, err := a.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "both handles", a.State(), b.State())
	})
}

func TestManyHandlesMakeOneOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		first := create(t, at(t), scope.Config{SnapshotAfter: 2_000})
		handles := []*scope.Scope{first, open(t, at(t), scope.Config{SnapshotAfter: 2_000}), open(t, at(t), scope.Config{SnapshotAfter: 2_000})}
		var wg sync.WaitGroup
		for h, s := range handles {
			for g := range 4 {
				wg.Go(func() {
					for i := range 8 {
						c := newTicket(fmt.Sprintf("h%d-%d-%d", h, g, i))
						for {
							_, err := s.Do(t.Context(), c)
							if kindOf(err) == ticket.RevisionConflict {
								continue // T-2: four times in vain; the caller may try again
							}
							if err != nil {
								t.Errorf("%s: %v", c.OperationID, err)
							}
							break
						}
					}
				})
			}
		}
		wg.Wait()
		var states []*ticket.State
		for _, s := range handles {
			got, err := s.Refresh(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, got)
		}
		if n := states[0].Counts().Tickets; n != 96 || states[0].Seq() != 96 {
			t.Errorf("got %d tickets at seq %d, want 96 at 96", n, states[0].Seq())
		}
		for _, s := range append(states[1:], open(t, at(t), scope.Config{}).State()) {
			wantSame(t, "another handle", s, states[0])
		}
	})
}

func kindOf(err error) ticket.Kind {
	for _, k := range ticket.Kinds() {
		if errors.Is(err, k) {
			return k
		}
	}
	return ""
}
