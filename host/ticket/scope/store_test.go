package scope_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// between lets a test stand between a handle and its store.
type between struct {
	store.Store
	commit func(ctx context.Context, k store.Key, f store.Fence, c store.Commit) (store.Ack, error)
	create func() // before a record is made
	limits store.Limits
}

func (b *between) Describe(ctx context.Context) (store.Description, error) {
	d, err := b.Store.Describe(ctx)
	d.Limits = b.limits
	return d, err
}

func (b *between) Create(ctx context.Context, k store.Key, c store.Commit) (store.Ack, error) {
	if b.create != nil {
		b.create()
	}
	return b.Store.Create(ctx, k, c)
}

func (b *between) Commit(ctx context.Context, k store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	if b.commit != nil {
		return b.commit(ctx, k, f, c)
	}
	return b.Store.Commit(ctx, k, f, c)
}

// spoiling commits something else than what it was given.
func spoiling(st store.Store, spoil func(entry, head string) (string, string)) func(context.Context, store.Key, store.Fence, store.Commit) (store.Ack, error) {
	return func(ctx context.Context, k store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
		entry, head := spoil(string(c.Entries[0]), string(c.Head))
		c.Entries, c.Head = [][]byte{[]byte(entry)}, []byte(head)
		return st.Commit(ctx, k, f, c)
	}
}

func TestCommandsThatComeDuringACommitShareTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := closing(t, memstore.New().Open())
		gate, commits := make(chan struct{}), 0
		b := &between{Store: st}
		s := create(t, b, scope.Config{})
		b.commit = func(ctx context.Context, k store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			commits++
			<-gate
			return st.Commit(ctx, k, f, c)
		}
		var wg sync.WaitGroup
		send := func(ctx context.Context, c ticket.Command, want error) {
			wg.Go(func() {
				if _, err := s.Do(ctx, c); !errors.Is(err, want) {
					t.Errorf("%s: got %v, want %v", c.OperationID, err, want)
				}
			})
			synctest.Wait()
		}
		send(t.Context(), newTicket("first"), nil)
		send(t.Context(), newTicket("second"), nil)
		send(t.Context(), newTicket("second"), nil) // the same operation: it happens once
		twin := newTicket("second")
		twin.OperationID = "twin"
		send(t.Context(), twin, ticket.InvalidTransition)
		given, cancel := context.WithCancelCause(t.Context())
		send(given, newTicket("withdrawn"), errGivenUp)
		send(t.Context(), newTicket("third"), nil)
		cancel(errGivenUp)
		synctest.Wait()
		close(gate)
		wg.Wait()
		if n := s.State().Counts().Tickets; commits != 2 || n != 3 || s.State().Seq() != 3 {
			t.Errorf("got %d tickets at seq %d in %d commits, want 3 at 3 in 2", n, s.State().Seq(), commits)
		}
		wantSame(t, "reopened", open(t, st, scope.Config{}).State(), s.State())
	})
}

func TestACommandThatWasSentIsAnsweredDespiteItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := closing(t, memstore.New().Open())
		b, gate := &between{Store: st}, make(chan struct{})
		s := create(t, b, scope.Config{})
		b.commit = func(ctx context.Context, k store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			<-gate
			return st.Commit(ctx, k, f, c)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} { // a is sent first, then b and c together
			wg.Go(func() {
				if _, err := s.Do(ctx, newTicket(id)); err != nil {
					t.Errorf("%s: got %v, want it carried out", id, err)
				}
			})
			synctest.Wait()
		}
		gate <- struct{}{}
		synctest.Wait()
		cancel(errGivenUp)
		synctest.Wait()
		gate <- struct{}{}
		wg.Wait()
		if n := s.State().Seq(); n != 3 {
			t.Errorf("got seq %d, want 3", n)
		}
		_, err := s.Do(ctx, newTicket("d"))
		wantKind(t, "a command whose context has ended", err, errGivenUp)
	})
}

var errGivenUp = errors.New("given up")

func TestWhatTheStoreDoesNotTakeFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := closing(t, memstore.New().Open())
		b := &between{Store: st, limits: store.Limits{EntryBytes: 3_000}}
		s := create(t, b, scope.Config{})
		gate := make(chan struct{})
		b.commit = func(ctx context.Context, k store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			<-gate
			return st.Commit(ctx, k, f, c)
		}
		large := newTicket("large")
		large.Request = ticket.Create{Tickets: []ticket.NewTicket{{ID: "large", Contract: ticket.Contract{
			Title: "t", Objective: strings.Repeat("o", 3_000), Acceptance: []string{"x"},
		}}}}
		var wg sync.WaitGroup
		for _, x := range []struct {
			command ticket.Command
			want    error
		}{{newTicket("a"), nil}, {newTicket("b"), nil}, {large, ticket.ContextBudgetExceeded}, {newTicket("c"), nil}} {
			wg.Go(func() {
				if _, err := s.Do(t.Context(), x.command); !errors.Is(err, x.want) {
					t.Errorf("%s: got %v, want %v", x.command.OperationID, err, x.want)
				}
			})
			synctest.Wait()
		}
		close(gate)
		wg.Wait()
		if n := s.State().Counts().Tickets; n != 3 {
			t.Errorf("got %d tickets, want 3", n)
		}
	})
}

func TestWhatIsLessDurableThanRequiredIsNoSuccess(t *testing.T) {
	st := places(t)["memory"](t)
	_, err := scope.Create(t.Context(), st, bound, scope.Config{Require: store.Durability{Level: store.LevelPower}})
	wantKind(t, "power is required of memory (S-5)", err, store.ErrNotDurable)
	b := &between{Store: st}
	s := create(t, b, scope.Config{Require: store.Durability{Level: store.LevelMemory}})
	weak := true
	b.commit = func(ctx context.Context, k store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
		ack, err := st.Commit(ctx, k, f, c)
		if weak {
			ack.Durability = store.Durability{}
		}
		return ack, err
	}
	for range 2 { // a replay of it is none either
		_, err = s.Do(t.Context(), newTicket("a"))
		wantKind(t, "a commit that reached less", err, store.ErrNotDurable)
	}
	weak = false
	if r := do(t, s, newTicket("a")); r.CommittedSeq != 1 || s.State().Seq() != 1 {
		t.Errorf("once it is durable: got seq %d of %d, want 1 of 1", r.CommittedSeq, s.State().Seq())
	}
}

func TestAStoreThatLostWhatItAcknowledgedIsWrittenNoMore(t *testing.T) {
	now := func() time.Time { return time.Unix(1_700_000_000, 0) }
	lost := func(n int) store.Store { // another history of a record of the same birth
		st := closing(t, memstore.NewWith(memstore.Config{Clock: now}).Open())
		s := create(t, st, scope.Config{})
		fill(t, s, n)
		return st
	}
	for name, n := range map[string]int{"shorter": 2, "as long": 3, "longer": 5} {
		t.Run(name, func(t *testing.T) {
			first := closing(t, memstore.NewWith(memstore.Config{Clock: now}).Open())
			b := &between{Store: first}
			s := create(t, b, scope.Config{})
			for _, id := range []string{"a", "b", "c"} {
				do(t, s, newTicket(id))
			}
			was := s.State()
			b.Store = lost(n)
			stored := raw(t, b.Store)
			_, err := s.Refresh(t.Context())
			wantKind(t, "reading another history (S-6)", err, store.ErrRegressed)
			_, err = s.Do(t.Context(), newTicket("d"))
			wantKind(t, "a command after that", err, store.ErrRegressed)
			wantKind(t, "reopening the handle", s.Reopen(t.Context()), store.ErrRegressed)
			if s.State() != was {
				t.Error("the state that was acknowledged is not readable any more")
			}
			if got := raw(t, b.Store); string(got) != string(stored) {
				t.Errorf("something was written:\n%s\nwant\n%s", got, stored)
			}
			b.Store = first
			_, err = s.Do(t.Context(), newTicket("d"))
			wantKind(t, "a command after the lost history came back", err, store.ErrRegressed)
		})
	}
	t.Run("made anew", func(t *testing.T) {
		b := &between{Store: places(t)["memory"](t)}
		s := create(t, b, scope.Config{})
		b.Store = lost(1)
		_, err := s.Do(t.Context(), newTicket("a"))
		wantKind(t, "a scope of another birth (S-12)", err, store.ErrFenced)
	})
}

func TestWaitTellsOfWhatAnotherHandleCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memstore.New()
		a, f := create(t, closing(t, memory.Open()), scope.Config{}), conformance.NewFaulty(closing(t, memory.Open()))
		b := open(t, f.Store(), scope.Config{})
		loads := f.Count(conformance.OpLoad)
		got := make(chan uint64, 3)
		for range cap(got) {
			go func() {
				s, err := b.Wait(t.Context(), 0)
				if err != nil {
					t.Error(err)
				}
				got <- s.Seq()
			}()
		}
		time.Sleep(3*scope.DefaultPoll + scope.DefaultPoll/4) // of the bubble's clock
		do(t, a, newTicket("a"))
		for range cap(got) {
			if seq := <-got; seq != 1 {
				t.Errorf("got seq %d, want 1", seq)
			}
		}
		if n := f.Count(conformance.OpLoad) - loads; n != 4 {
			t.Errorf("three waiters made %d loads in four polls, want 4", n)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errGivenUp)
		_, err := b.Wait(ctx, 1)
		wantKind(t, "a wait that is given up", err, errGivenUp)
		go func() {
			synctest.Wait()
			b.Close()
		}()
		_, err = b.Wait(t.Context(), 1)
		wantKind(t, "a wait on a handle that is closed", err, store.ErrUnavailable)
		_, err = b.Do(t.Context(), newTicket("b"))
		wantKind(t, "a command on a closed handle", err, store.ErrUnavailable)
	})
}
