package ticket

import (
	"slices"
)

// NewTicket describes a ticket to be made.
type NewTicket struct {
	ID        string   `json:"id"` // 1–128 letters, digits, '.', '_' or '-', the first a letter or digit
	Parent    string   `json:"parent"`
	DependsOn []string `json:"depends_on"`
	Contract  Contract `json:"contract"`
}

// Create makes tickets in the state draft, all or none. They may depend on each
// other in any order, without a cycle. By a supervisor or user.
type Create struct {
	Tickets []NewTicket `json:"tickets"` // 1–1,000
}

// Type implements Request.
func (Create) Type() string { return "create" }

func (r Create) decide(d *draft) error {
	if err := d.allow(RoleSupervisor, RoleUser); err != nil {
		return err
	}
	if n := len(r.Tickets); n == 0 || n > MaxBatch {
		return d.refuse(InvalidTransition, "", "%d tickets; one command makes 1 to %d", n, MaxBatch)
	}
	for i := range r.Tickets {
		in := &r.Tickets[i]
		if !validTicketID(in.ID) {
			return d.refuse(InvalidTransition, in.ID, "a ticket id is 1 to %d letters, digits, '.', '_' or '-', the first a letter or digit", MaxTicketIDBytes)
		}
		if _, ok := d.state.tickets.Get(in.ID); ok {
			return d.refuse(InvalidTransition, in.ID, "there is a ticket of that id; choose another")
		}
		if err := in.Contract.Validate(); err != nil {
			return err
		}
		t := &Ticket{ID: in.ID, Parent: in.Parent, DependsOn: sorted(in.DependsOn), Contract: in.Contract.clone(), State: Draft, ContractRevision: 1}
		if err := d.saveTicket("created", t, true); err != nil {
			return err
		}
	}
	// Only now do all tickets of the batch exist.
	for i := range r.Tickets {
		t, _ := d.state.tickets.Get(r.Tickets[i].ID)
		if err := d.related(t); err != nil {
			return err
		}
	}
	return nil
}

// Revise changes a ticket's contract, its dependencies, or both. Where the contract
// changes, a running attempt loses its permit, and its result will be stale (T-8).
// By a supervisor or user.
type Revise struct {
	Ticket     string    `json:"ticket"`
	IfRevision uint64    `json:"if_revision"`         // 0: any
	Contract   *Contract `json:"contract,omitzero"`   // nil: as it is
	DependsOn  *[]string `json:"depends_on,omitzero"` // nil: as they are
}

// Type implements Request.
func (Revise) Type() string { return "revise" }

func (r Revise) decide(d *draft) error {
	if err := d.allow(RoleSupervisor, RoleUser); err != nil {
		return err
	}
	t, err := d.ticket(r.Ticket, r.IfRevision)
	if err != nil {
		return err
	}
	if _, ok := next(ticketMoves, t.State, onRevise, ""); !ok {
		return d.refuse(InvalidTransition, t.ID, "the ticket is %s; that needs %s", t.State, either(sources(ticketMoves, onRevise)))
	}
	if r.Contract != nil {
		if err := r.Contract.Validate(); err != nil {
			return err
		}
		t.Contract = r.Contract.clone()
		t.ContractRevision++
	}
	if r.DependsOn != nil {
		t.DependsOn = sorted(*r.DependsOn)
	}
	if err := d.saveTicket("revised", t, r.Contract != nil); err != nil {
		return err
	}
	saved, _ := d.state.tickets.Get(t.ID)
	return d.related(saved)
}

// related checks a ticket's parent and dependencies: they exist, and neither line
// comes back to the ticket.
func (d *draft) related(t *Ticket) error {
	if len(t.DependsOn) > MaxDependencies {
		return d.refuse(InvalidTransition, t.ID, "it depends on %d tickets; at most %d are allowed", len(t.DependsOn), MaxDependencies)
	}
	for p := t.Parent; p != ""; {
		parent, ok := d.state.tickets.Get(p)
		if !ok {
			return d.refuse(InvalidTransition, t.ID, "its parent %q does not exist", p)
		}
		if p == t.ID {
			return d.refuse(InvalidTransition, t.ID, "it would be its own ancestor")
		}
		p = parent.Parent
	}
	seen := map[string]bool{}
	open := slices.Clone(t.DependsOn)
	for len(open) > 0 {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		dep, ok := d.state.tickets.Get(id)
		switch {
		case !ok:
			return d.refuse(InvalidTransition, t.ID, "it depends on %q, which does not exist", id)
		case id == t.ID:
			return d.refuse(InvalidTransition, t.ID, "it would depend on itself, by a cycle")
		}
		open = append(open, dep.DependsOn...)
	}
	return nil
}

func sorted(ids []string) []string {
	out := slices.Clone(ids)
	slices.Sort(out)
	if out = slices.Compact(out); out == nil {
		out = []string{}
	}
	return out
}
