package child_test

import (
	"strings"
	"testing"

	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// A scope and a ticket of the longest ids together live as others do.
func TestLongIDs(t *testing.T) {
	st := memstore.New().Open()
	defer st.Close()
	r := newRig(t, st)
	r.scope.Close()
	b := ticket.Binding{ScopeID: strings.Repeat("s", 193-ticket.MaxTicketIDBytes), SupervisorSessionID: strings.Repeat("b", ticket.MaxIDBytes)}
	var err error
	if r.scope, err = scope.Create(t.Context(), st, b, scope.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.scope.Close)
	r.runner = r.newRunner()
	name := strings.Repeat("t", ticket.MaxTicketIDBytes)
	ada := ticket.User("ada")
	r.give(ada, ticket.Create{Tickets: []ticket.NewTicket{{ID: name, Contract: contract()}}})
	r.give(ada, ticket.MarkReady{Of: ticket.Of{Ticket: name}})
	r.give(ada, ticket.Start{Of: ticket.Of{Ticket: name}})
	id := name + "@1"
	if o, err := r.runner.Run(t.Context(), id, local(says("done", nil))); err != nil || o.Status != ticket.ChildCompleted {
		t.Errorf("got %+v, %v", o, err)
	}
}
