package scope_test

import (
	"context"
	"fmt"
	"log"

	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// A supervisor plans a ticket; the host that coordinates the scope starts it.
func Example() {
	ctx := context.Background()
	st := memstore.New().Open()
	defer st.Close()
	s, err := scope.Create(ctx, st, ticket.Binding{ScopeID: "release", SupervisorSessionID: "boss"}, scope.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	role, err := s.Coordinate(ctx, scope.Claim{Host: "host-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer role.Close()

	boss, of := ticket.Supervisor("boss"), ticket.Of{Ticket: "notes"}
	contract := ticket.Contract{Title: "Release notes", Objective: "Write them.", Acceptance: []string{"every change is named"}}
	for _, c := range []ticket.Command{
		{OperationID: "1", Principal: boss, Request: ticket.Create{Tickets: []ticket.NewTicket{{ID: "notes", Contract: contract}}}},
		{OperationID: "2", Principal: boss, Request: ticket.MarkReady{Of: of}},
		{OperationID: "3", Principal: role.Principal(), Request: ticket.Start{Of: of, Host: "host-1"}},
		{OperationID: "3", Principal: role.Principal(), Request: ticket.Start{Of: of, Host: "host-1"}}, // again: the same receipt
	} {
		r, err := s.Do(ctx, c)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.CommittedSeq, c.Request.Type(), r.IDs)
	}
	for in := range s.State().Intents() {
		fmt.Println("to dispatch:", in.DispatchKey)
	}
	// Output:
	// 2 create [notes]
	// 3 ready [notes]
	// 4 start [notes notes@1]
	// 4 start [notes notes@1]
	// to dispatch: release/notes@1/1
}
