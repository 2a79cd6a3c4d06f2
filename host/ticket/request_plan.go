package ticket

import (
	"errors"
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

func (r Create) normal() Request {
	tickets := slices.Clone(r.Tickets)
	for i := range tickets {
		tickets[i].DependsOn = sorted(tickets[i].DependsOn)
	}
	return Create{tickets}
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
		if n := len(d.state.binding.ScopeID) + len(in.ID); n > maxNameBytes {
			return d.refuse(ContextBudgetExceeded, in.ID, "its id and the scope's have %d bytes together; at most %d are allowed", n, maxNameBytes)
		}
		if err := d.contract(in.ID, &in.Contract); err != nil {
			return err
		}
		t := &Ticket{ID: in.ID, Parent: in.Parent, DependsOn: sorted(in.DependsOn), Contract: in.Contract.clone(), State: Draft, ContractRevision: 1}
		if err := d.saveTicket("created", t, true); err != nil {
			return err
		}
	}
	return d.related(r.Tickets)
}

// contract is nil, or says what is wrong with a ticket's contract.
func (d *draft) contract(ticket string, c *Contract) error {
	err := c.Validate()
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Op: d.op, Key: ticket, Kind: e.Kind, Detail: e.Detail, Err: e.Err}
	}
	return err
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
	if r.Contract == nil && r.DependsOn == nil {
		return d.refuse(InvalidTransition, t.ID, "the revision changes neither the contract nor the dependencies")
	}
	if r.Contract != nil {
		if err := d.contract(t.ID, r.Contract); err != nil {
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
	if r.DependsOn == nil {
		return nil
	}
	return d.acyclic(t.ID)
}

func (r Revise) normal() Request {
	if r.DependsOn != nil {
		deps := sorted(*r.DependsOn)
		r.DependsOn = &deps
	}
	return r
}

func sorted(ids []string) []string {
	out := slices.Clone(ids)
	slices.Sort(out)
	if out = slices.Compact(out); out == nil {
		out = []string{}
	}
	return out
}
