package ticket

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestAPartHoldsNoMoreThanAStoreTakes(t *testing.T) {
	s, err := New(Binding{ScopeID: "s", SupervisorSessionID: "boss"})
	if err != nil {
		t.Fatal(err)
	}
	big := Contract{Title: "t", Objective: strings.Repeat("o", 60_000), Acceptance: []string{"x"}}
	for batch := range 10 {
		var r Create
		for i := range 60 {
			r.Tickets = append(r.Tickets, NewTicket{ID: fmt.Sprintf("t%d-%d", batch, i), Contract: big})
		}
		d, err := s.Decide(Command{OperationID: fmt.Sprint(batch), Principal: Supervisor("boss"), Request: r})
		if err != nil {
			t.Fatal(err)
		}
		s = d.Next
	}
	var b Builder
	parts := 0
	for data, err := range s.Parts() {
		if err != nil {
			t.Fatal(err)
		}
		// The bound, and the largest item: a receipt with its request.
		if len(data) > partBytes+MaxRequestBytes+1<<10 {
			t.Errorf("a part has %d bytes", len(data))
		}
		if err := b.Add(data); err != nil {
			t.Fatal(err)
		}
		parts++
	}
	again, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	want, _ := s.Canonical()
	if got, _ := again.Canonical(); !bytes.Equal(got, want) || parts < 36 {
		t.Errorf("%d parts of %d bytes give %d other bytes", parts, len(want), len(got))
	}
}

func TestALateTakeOverDisplacesNobody(t *testing.T) {
	s, err := New(Binding{ScopeID: "s", SupervisorSessionID: "boss"})
	if err != nil {
		t.Fatal(err)
	}
	first, epoch := s, uint64(0)
	d, err := s.Decide(Command{OperationID: "1", Principal: Runtime("b"), Request: TakeOver{Expired: []string{}, IfEpoch: &epoch}})
	if err != nil || d.Next.Authority() != (Authority{1, "b"}) {
		t.Fatalf("the first take-over: got %+v, %v", d.Next, err)
	}
	late := Command{OperationID: "2", Principal: Runtime("a"), Request: TakeOver{Expired: []string{}, IfEpoch: &epoch}}
	if _, err := d.Next.Decide(late); !errors.Is(err, RevisionConflict) {
		t.Errorf("a take-over decided on epoch 0, at epoch 1 (T-2): got %v, want %v", err, RevisionConflict)
	}
	if _, err := first.Decide(late); err != nil {
		t.Errorf("the same at epoch 0: got %v, want it carried out", err)
	}
}
