package ticket

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/loophost/loophost/internal/bench"
)

// many is a scope of n tickets, each with an attempt at work that waits for its stop.
func many(b *testing.B, n int) (*State, []Stop) {
	b.Helper()
	s, err := New(Binding{ScopeID: "scope", SupervisorSessionID: "boss"})
	if err != nil {
		b.Fatal(err)
	}
	operations := 0
	do := func(by Principal, r Request) {
		operations++
		id := "op-" + strconv.Itoa(operations)
		if named, ok := r.(interface{ Operation() string }); ok {
			id = named.Operation()
		}
		d, err := s.Decide(Command{OperationID: id, Principal: by, Request: r})
		if err != nil {
			b.Fatal(err)
		}
		s = d.Next
	}
	var stops []Stop
	for i := range n {
		id := fmt.Sprintf("t%05d", i)
		do(boss, Create{Tickets: []NewTicket{newTicket(id, 1)}})
		do(boss, MarkReady{of(id)})
		do(boss, Start{Of: of(id)})
		d, err := s.ChildDispatch(AssignmentID(id, 1), "root")
		if err != nil {
			b.Fatal(err)
		}
		if d, err = d.Prepared("0b5f2f0e-6f2e-4f6e-9d0a-0c6f1f7f8a11", "child", "born"); err != nil {
			b.Fatal(err)
		}
		admit, err := d.Admit(0)
		if err != nil {
			b.Fatal(err)
		}
		do(host1, admit)
		stops = append(stops, processStop(d, true))
	}
	return s, stops
}

// BenchmarkDecide carries out one command on a scope with 10,000 tickets beside the
// same on one with 10. What it costs should not depend on that: the target is 1.5.
func BenchmarkDecide(b *testing.B) {
	small, smallStops := many(b, 10)
	large, largeStops := many(b, 10_000)
	for name, request := range map[string]func([]Stop, int) (Principal, Request){
		"stop": func(stops []Stop, i int) (Principal, Request) { return host1, stops[i%len(stops)] },
		"pause": func(stops []Stop, i int) (Principal, Request) {
			return boss, Pause{of(stops[i%len(stops)].Assignment[:6])}
		},
		"create": func(_ []Stop, i int) (Principal, Request) {
			return boss, Create{Tickets: []NewTicket{newTicket("new-"+strconv.Itoa(i), 1)}}
		},
	} {
		b.Run(name+"/10000-vs-10", func(b *testing.B) {
			n := 0
			side := func(s *State, stops []Stop) bench.Side {
				return func(steps int) error {
					for range steps {
						n += 7919
						by, r := request(stops, n)
						id := "new-" + strconv.Itoa(n)
						if stop, ok := r.(Stop); ok {
							id = stop.Operation()
						}
						if _, err := s.Decide(Command{OperationID: id, Principal: by, Request: r}); err != nil {
							return err
						}
					}
					return nil
				}
			}
			bench.Against(b, 2_000, side(large, largeStops), side(small, smallStops))
		})
	}
}
