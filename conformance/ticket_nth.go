package conformance

import (
	"context"
	"errors"
	"fmt"
)

// writes reports whether a call may change what is stored. Renewals go on beside a life
// at no fixed place in it, and change nothing that counts.
func writes(op Op) bool {
	switch op {
	case OpCreate, OpAcquire, OpCommit, OpRelease, OpDelete, OpResolve:
		return true
	default:
		return false
	}
}

func nthTicketCases() []Case {
	nth := func(name, words string, when When, err error) Case {
		return inTickets("M-4/nth-write-"+name,
			fmt.Sprintf("Whichever write of a ticket's life fails %s, what is left is whole, nothing that was acknowledged is lost, no attempt is run twice, and another worker brings the ticket to its one result.", words),
			func(ctx context.Context, e *Env) error { return nthWrite(ctx, e, when, err) })
	}
	return []Case{
		nth("fails-before", "before the store did it", Before, definite()),
		nth("fails-after", "after the store did it", After, definite()),
		nth("unknown", "with an unknown outcome", Torn, nil),
	}
}

// nthWrite lets the first write of a life fail, then the second of another one, and so
// on, until one has fewer writes.
func nthWrite(ctx context.Context, e *Env, when When, fails error) error {
	var struck []Op
	for n := 1; ; n++ {
		op, err := e.failWrite(ctx, n, Fault{When: when, Err: fails})
		if err != nil {
			return failf("write %d (%s) fails %s: %w", n, op, when, err)
		}
		if op == "" {
			e.Note("%d writes failed, one in each life", len(struck))
			return nil
		}
		struck = append(struck, op)
	}
}

// failWrite lives a life whose n-th write fault strikes, and lets an heir go on. op is
// what was struck; "": the life has fewer writes.
func (e *Env) failWrite(ctx context.Context, n int, fault Fault) (op Op, err error) {
	st, err := e.Open(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	faulty := NewFaulty(st)
	fault.Nth, fault.Match = n, func(c Call) bool { return writes(c.Op) }
	faulty.Inject(fault)
	l := e.newLife(fmt.Sprintf("%s-%d", word(fault.When), n))
	var facts []fact
	calls := new(counter)
	lived := l.live(ctx, faulty.Store(), func(f fact) { facts = append(facts, f) }, calls.add)
	for _, c := range faulty.Calls() {
		if c.Failed {
			op = c.Op
		}
	}
	switch {
	case op == "" && lived != nil:
		return op, failf("a life without a fault: want success, got %w", lived)
	case lived == nil && !has(facts, stepAccepted):
		return op, failf("a life that came to its end: want it accepted, got %v", facts)
	}
	return op, e.inherit(ctx, l, facts, calls.count())
}
