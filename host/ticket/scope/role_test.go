package scope_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

func coordinate(t *testing.T, s *scope.Scope, c scope.Claim) *scope.Role {
	t.Helper()
	r, err := s.Coordinate(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantAuthority(t *testing.T, s *scope.Scope, epoch uint64, coordinator string) {
	t.Helper()
	state, err := s.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := state.Authority(), (ticket.Authority{Epoch: epoch, Coordinator: coordinator}); got != want {
		t.Errorf("authority: got %+v, want %+v", got, want)
	}
}

func TestTheEpochRisesOnlyWhenTheRoleChangesHands(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		a := create(t, at(t), scope.Config{})
		b := open(t, at(t), scope.Config{})
		role := coordinate(t, a, scope.Claim{Host: "host-a"})
		wantAuthority(t, a, 1, "host-a")
		_, err := b.Coordinate(t.Context(), scope.Claim{Host: "host-b"})
		wantKind(t, "a second coordinator", err, store.ErrBusy)
		role.Close()
		wantKind(t, "the role's end", role.Context().Err(), context.Canceled)
		role = coordinate(t, a, scope.Claim{Host: "host-a"})
		wantAuthority(t, b, 1, "host-a")
		role.Close()
		role = coordinate(t, b, scope.Claim{Host: "host-b"})
		defer role.Close()
		wantAuthority(t, a, 2, "host-b")
		_, err = a.Coordinate(t.Context(), scope.Claim{})
		wantKind(t, "a host without id", err, ticket.ScopeDenied)
	})
}

func TestALostLeaseEndsTheRoleAndItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memstore.New()
		f := conformance.NewFaulty(closing(t, memory.Open()))
		a, b := create(t, f.Store(), scope.Config{}), open(t, closing(t, memory.Open()), scope.Config{})
		role := coordinate(t, a, scope.Claim{Host: "host-a", TTL: time.Minute})
		boss := ticket.Supervisor("boss")
		for _, id := range []string{"mine", "expired", "alive"} {
			do(t, a, newTicket(id))
			do(t, a, ticket.Command{OperationID: "ready " + id, Principal: boss, Request: ticket.MarkReady{Of: ticket.Of{Ticket: id}}})
			host := ""
			if id == "mine" {
				host = "host-a"
			}
			do(t, a, ticket.Command{OperationID: "start " + id, Principal: role.Principal(), Request: ticket.Start{Of: ticket.Of{Ticket: id}, Host: host}})
		}
		time.Sleep(10 * time.Minute) // of the bubble's clock
		if err := role.Context().Err(); err != nil {
			t.Fatalf("the lease was not kept: %v", context.Cause(role.Context()))
		}
		f.Inject(conformance.Fault{Op: conformance.OpRenew, Times: -1})
		start := time.Now()
		<-role.Context().Done()
		wantKind(t, "the cause of the role's end", context.Cause(role.Context()), store.ErrUnavailable)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("the role ended %v after the store was gone, want at most its lease", took)
		}
		role.Close()
		f.Heal()
		time.Sleep(time.Minute)
		second := coordinate(t, b, scope.Claim{Host: "host-b", Expired: func(context.Context, *ticket.State) ([]string, error) {
			return []string{"expired@1"}, nil
		}})
		defer second.Close()
		wantAuthority(t, a, 2, "host-b")
		for id, want := range map[string]ticket.AssignmentState{"mine@1": ticket.OutcomeUnknown, "expired@1": ticket.OutcomeUnknown, "alive@1": ticket.DispatchPending} {
			if got, _ := a.State().Assignment(id); got.State != want {
				t.Errorf("%s (T-2): got %s, want %s", id, got.State, want)
			}
		}
		_, err := a.Do(t.Context(), ticket.Command{OperationID: "late", Principal: role.Principal(), Request: ticket.LoseLease{Assignment: "alive@1"}})
		wantKind(t, "a command of the coordinator before (T-2)", err, ticket.ScopeDenied)
	})
}

func TestAHostThatWasLateDoesNotTakeTheRoleBack(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		a := create(t, at(t), scope.Config{})
		b := open(t, at(t), scope.Config{})
		var second *scope.Role
		_, err := a.Coordinate(t.Context(), scope.Claim{Host: "late", Expired: func(context.Context, *ticket.State) ([]string, error) {
			// Between reading the epoch and taking over, somebody else does both.
			if second == nil {
				second = coordinate(t, b, scope.Claim{Host: "fast", Force: true})
			}
			return nil, nil
		}})
		if second != nil {
			defer second.Close()
		}
		if err == nil {
			t.Fatal("the late host has the role")
		}
		wantAuthority(t, a, 1, "fast")
		if err := second.Context().Err(); err != nil {
			t.Errorf("the role of the fast one ended: %v", context.Cause(second.Context()))
		}
	})
}

func TestTheScopeTellsACoordinatorThatItIsNoneAnyMore(t *testing.T) {
	st := places(t)["memory"](t)
	a, b := create(t, st, scope.Config{}), open(t, st, scope.Config{})
	first := coordinate(t, a, scope.Claim{Host: "a"})
	defer first.Close()
	second := coordinate(t, b, scope.Claim{Host: "b", Force: true})
	wantAuthority(t, a, 2, "b") // a reads it, long before its next renewal
	<-first.Context().Done()
	wantKind(t, "the cause", context.Cause(first.Context()), ticket.ScopeDenied)
	b.Close() // ends its role too
	wantKind(t, "the role of a closed handle", context.Cause(second.Context()), store.ErrUnavailable)
	third := coordinate(t, a, scope.Claim{Host: "c"})
	third.Close()
}

func TestAFaultAtEveryStoreCallLeavesOneCoordinator(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		plain := at(t)
		for _, when := range []conformance.When{conformance.Before, conformance.After, conformance.Torn} {
			for n, struck := 1, true; struck; n++ {
				b := ticket.Binding{ScopeID: fmt.Sprintf("%s %s %d", t.Name(), when, n), SupervisorSessionID: "boss"}
				f := conformance.NewFaulty(plain)
				s, err := scope.Create(t.Context(), f.Store(), b, scope.Config{})
				if err != nil {
					t.Fatal(err)
				}
				f.Inject(conformance.Fault{Nth: n, When: when})
				role, err := s.Coordinate(t.Context(), scope.Claim{Host: "host"})
				struck = f.Struck() > 0
				for i := 0; err != nil && i < 4; i++ {
					if rerr := s.Reopen(t.Context()); rerr != nil {
						t.Logf("reopening: %v", rerr)
					}
					role, err = s.Coordinate(t.Context(), scope.Claim{Host: "host"})
				}
				if err != nil {
					t.Fatalf("call %d failed %s: %v", n, when, err)
				}
				f.Heal()
				wantAuthority(t, s, 1, "host")
				role.Close()
				next := coordinate(t, s, scope.Claim{Host: "next"}) // the lease was given back
				wantAuthority(t, s, 2, "next")
				next.Close()
				s.Close()
			}
		}
	})
}
