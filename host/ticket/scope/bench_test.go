package scope_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
	"github.com/loophost/loophost/internal/bench"
)

// BenchmarkScopeCommand is a command on a scope of 10,000 tickets beside the same
// command on one of 10.
func BenchmarkScopeCommand(b *testing.B) {
	for name, at := range places(b) {
		b.Run(name, func(b *testing.B) {
			st := at(b)
			large, small := grown(b, st, "large", 10_000), grown(b, st, "small", 10)
			bench.Against(b, 200, revisions(b, large), revisions(b, small))
		})
	}
}

// BenchmarkScopeOpen measures what opening a scope of 10,000 tickets takes: right
// after its snapshot, and with as much log behind the snapshot as there ever is.
func BenchmarkScopeOpen(b *testing.B) {
	for name, at := range places(b) {
		st := at(b)
		s := grown(b, st, "large", 10_000)
		due := func() bool {
			page, err := scope.List(b.Context(), st, "", 0)
			if err != nil {
				b.Fatal(err)
			}
			h := page.Items[0].Head
			return h.LogBytes-h.Snapshot.LogBytes > h.Snapshot.Bytes*9/10
		}
		revise := revisions(b, s)
		for _, state := range []string{"short-tail", "long-tail"} {
			b.Run(name+"/"+state, func(b *testing.B) {
				for state == "long-tail" && !due() {
					if err := bench.Workers(slicesOf(revise, 64))(500); err != nil {
						b.Fatal(err)
					}
				}
				var took []float64
				for b.Loop() {
					start := time.Now()
					again, err := scope.Open(b.Context(), st, s.Binding(), scope.Config{})
					took = append(took, float64(time.Since(start).Microseconds())/1000)
					if err != nil || again.State().Seq() != s.State().Seq() {
						b.Fatalf("opening: %v", err)
					}
					again.Close()
				}
				b.ReportMetric(bench.Median(took), "ms/open")
			})
		}
	}
}

func slicesOf(side bench.Side, n int) []bench.Side {
	out := make([]bench.Side, n)
	for i := range out {
		out[i] = side
	}
	return out
}

// grown makes a scope of n tickets, each ready and half of them started, as several
// callers at once would, and closes it to have its snapshot written.
func grown(b *testing.B, st store.Store, id string, n int) *scope.Scope {
	b.Helper()
	bind := ticket.Binding{ScopeID: id, SupervisorSessionID: "boss"}
	s, err := scope.Create(b.Context(), st, bind, scope.Config{})
	if err != nil {
		b.Fatal(err)
	}
	boss := ticket.Supervisor("boss")
	c := ticket.Contract{
		Title: "a title of the usual length", Objective: strings.Repeat("what is to be done, in words. ", 10),
		Constraints: []string{"keep to the style of the code around"}, Acceptance: []string{"the tests pass", "nothing else changed"}, AllowedTools: []string{"read", "write", "test"},
	}
	var group sync.WaitGroup
	for w := range 64 {
		group.Go(func() {
			for i := w; i < n; i += 64 {
				of := ticket.Of{Ticket: fmt.Sprint("t", i)}
				requests := []ticket.Request{ticket.Create{Tickets: []ticket.NewTicket{{ID: of.Ticket, Contract: c}}}, ticket.MarkReady{Of: of}}
				if i%2 == 0 {
					requests = append(requests, ticket.Start{Of: of})
				}
				for _, r := range requests {
					if _, err := s.Do(b.Context(), ticket.Command{OperationID: r.Type() + "/" + of.Ticket, Principal: boss, Request: r}); err != nil {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	s.Close()
	s, err = scope.Open(b.Context(), st, bind, scope.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

// revisions revises tickets in turn, one command a step.
func revisions(b *testing.B, s *scope.Scope) bench.Side {
	b.Helper()
	steps := new(atomic.Int64)
	n := int64(s.State().Counts().Tickets)
	return func(todo int) error {
		for range todo {
			i := steps.Add(1)
			r := ticket.Revise{Ticket: fmt.Sprint("t", i%n), DependsOn: &[]string{}}
			c := ticket.Command{OperationID: fmt.Sprint("revise/", i), Principal: ticket.User("somebody"), Request: r}
			if _, err := s.Do(b.Context(), c); err != nil {
				return err
			}
		}
		return nil
	}
}
