package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// nthWrite lets the first write of a life fail, the second of another one, and so on,
// as many as a life without a fault has.
func nthWrite(ctx context.Context, e *Env, when When, fails error) error {
	n, _, err := e.failWrite(ctx, 0, Fault{When: when, Err: fails})
	if err != nil {
		return failf("a life without a fault: %w", err)
	}
	e.Note("%d writes failed, one in each life", n)
	return fewAtOnce(n, func(n int) error {
		_, op, err := e.failWrite(ctx, n, Fault{When: when, Err: fails})
		if err == nil && op == "" {
			err = failf("want it to be struck, got a life without it")
		}
		if err != nil {
			return failf("write %d (%s) fails %s: %w", n, op, when, err)
		}
		return nil
	})
}

// atOnce is how many lives of a matrix are lived at a time: most of theirs is waiting for
// the store.
const atOnce = 4

// fewAtOnce calls do with 1 to n, a few at a time, and none any more once one of them
// has an error: it gives that of the least.
func fewAtOnce(n int, do func(int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for range min(n, atOnce) {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n) && !failed.Load(); i = next.Add(1) {
				if errs[i-1] = do(int(i)); errs[i-1] != nil {
					failed.Store(true)
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// failWrite lives a life whose n-th write fault strikes (0: none), and lets an heir go
// on. made is how many writes the life had, and op the one that was struck.
func (e *Env) failWrite(ctx context.Context, n int, fault Fault) (made int, op Op, err error) {
	st, err := e.Open(ctx)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	faulty := NewFaulty(st)
	if n > 0 {
		fault.Nth, fault.Match = n, func(c Call) bool { return writes(c.Op) }
		faulty.Inject(fault)
	}
	l := e.newLife(fmt.Sprintf("%s-%d", word(fault.When), n))
	var facts []fact
	calls := new(counter)
	lived := l.live(ctx, faulty.Store(), func(f fact) { facts = append(facts, f) }, calls.add)
	for _, c := range faulty.Calls() {
		if writes(c.Op) {
			made++
		}
		if c.Failed {
			op = c.Op
		}
	}
	switch {
	case op == "" && lived != nil:
		return made, op, failf("a life without a fault: want success, got %w", lived)
	case lived == nil && !has(facts, stepAccepted):
		return made, op, failf("a life that came to its end: want it accepted, got %v", facts)
	}
	return made, op, e.inherit(ctx, l, facts, calls.count())
}
