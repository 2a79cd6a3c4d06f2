package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

func orderCases() []Case {
	return []Case{
		inTickets("T-1/same-operation", "The same operation again, at any handle and whatever happened since, gives the stored receipt; nothing is published.", sameOperation),
		inTickets("T-1/other-principal", "An operation id that another principal used is scope denied, before every other check.", otherPrincipal),
		inTickets("T-1/other-payload", "An operation id with another payload is an idempotency conflict, before every other check.", otherPayload),
		inTickets("T-1/operation-ids", "An operation id has 1 to 256 bytes, whatever they are; any other is refused.", operationIDs),
		inTickets("M-4/raced-at-one-seq", "Of two commands that two handles decided at the same seq one is carried out, and the other is a revision conflict.", raced),
		inTickets("T-2/two-writers", "What two handles write has one order: each command happens once, at a seq of its own, and both handles see the same bytes.", twoWriters),
		inTickets("T-2/four-rereads", "A command that loses to another writer is decided anew four times; the fifth loss is a revision conflict that changes nothing.", fourRereads),
		inTickets("T-2/binding-differs", "A binding that differs opens nothing, and changes nothing.", bindingDiffers),
		inTickets("T-2/opening-changes-nothing", "Opening a scope, reading it and closing it change nothing.", openingChangesNothing),
		inTickets("T-2/take-over", "The authority's epoch rises only when the coordinator's role changes hands; what was to run inside the lost coordinator has an unknown outcome then, and nothing else.", takeOver),
		inTickets("T-3/failed-publication", "A publication that fails leaves the old snapshot readable, and the same command happens later.", failedPublication),
		inTickets("T-3/created-once", "A scope whose creation has an unknown outcome is there once, and empty.", createdOnce),
		inTickets("T-3/settled-outcome", "A publication whose outcome is not known at first is settled: one that was applied is published once, one that never will be is decided anew.", settledPublication),
		inTickets("T-3/unknown-outcome", "A publication whose outcome can't be settled makes the handle read-only until it is reopened; the same command then happens once, whether it was applied or not.", unknownPublication),
	}
}

// command is one with an id of its own, by the supervisor.
func (r *scopeRig) command(id string, req ticket.Request) ticket.Command {
	return ticket.Command{OperationID: id, Principal: r.boss(), Request: req}
}

func sameOperation(ctx context.Context, e *Env) error {
	r, err := e.newScope(ctx, "again")
	if err != nil {
		return err
	}
	made := r.command("make", newTicket("work", 1))
	first, err := r.scope.Do(ctx, made)
	if err != nil {
		return failf("create: want success, got %w", err)
	}
	if err := r.give(ctx, ticket.MarkReady{Of: of("work")}, ticket.Cancel{Of: of("work")}); err != nil {
		return err
	}
	before, err := r.still(ctx)
	if err != nil {
		return err
	}
	other, err := r.another(ctx)
	if err != nil {
		return err
	}
	stale := uint64(0)
	decided := made
	decided.OnlyAt = &stale // the look-up comes first
	var bad []error
	for _, try := range []struct {
		what string
		rig  *scopeRig
		c    ticket.Command
	}{{"at the same handle", r, made}, {"at another handle", other, made}, {"decided at an older seq", other, decided}} {
		again, err := try.rig.scope.Do(ctx, try.c)
		if err != nil {
			bad = append(bad, failf("the operation again, %s: want its receipt, got %w", try.what, err))
			continue
		}
		bad = append(bad, wantReceipt("the operation again, "+try.what, again, first), r.wantStill(ctx, "the operation again, "+try.what, before))
	}
	return errors.Join(bad...)
}

func otherPrincipal(ctx context.Context, e *Env) error {
	return reused(ctx, e, ticket.ScopeDenied, "another principal", func(c *ticket.Command) { c.Principal = ada })
}

func otherPayload(ctx context.Context, e *Env) error {
	return reused(ctx, e, ticket.IdempotencyConflict, "another request", func(c *ticket.Command) { c.Request = newTicket("else", 1) })
}

// reused gives an operation id again in another command, which would be refused for
// another reason too.
func reused(ctx context.Context, e *Env, kind ticket.Kind, says string, change func(*ticket.Command)) error {
	r, err := e.newScope(ctx, "reused")
	if err != nil {
		return err
	}
	c := r.command("make", newTicket("work", 1))
	if _, err := r.scope.Do(ctx, c); err != nil {
		return failf("create: want success, got %w", err)
	}
	stale := uint64(0)
	change(&c)
	c.OnlyAt = &stale
	other, err := r.another(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		r.refused(ctx, "the id again", kind, says, func() error { _, err := r.scope.Do(ctx, c); return err }),
		other.refused(ctx, "the id again at another handle", kind, says, func() error { _, err := other.scope.Do(ctx, c); return err }),
	)
}

func operationIDs(ctx context.Context, e *Env) error {
	r, err := e.newScope(ctx, "ids")
	if err != nil {
		return err
	}
	var bad []error
	for _, id := range []string{"", strings.Repeat("x", ticket.MaxIDBytes+1)} {
		bad = append(bad, r.refused(ctx, fmt.Sprintf("an operation id of %d bytes", len(id)), ticket.InvalidTransition, fmt.Sprintf("%d bytes", len(id)), func() error {
			_, err := r.scope.Do(ctx, r.command(id, newTicket("work", 1)))
			return err
		}))
	}
	for i, id := range []string{"x", strings.Repeat("é", ticket.MaxIDBytes/2), "a/b c\"\n\x00"} {
		first, err := r.scope.Do(ctx, r.command(id, newTicket(fmt.Sprintf("work-%d", i), 1)))
		if err != nil {
			return errors.Join(append(bad, failf("the operation id %q: want success, got %w", id, err))...)
		}
		other, err := r.another(ctx)
		if err != nil {
			return err
		}
		stored, ok := other.scope.State().Receipt(id)
		bad = append(bad, wantEqual(fmt.Sprintf("the receipt of %q is stored", id), ok, true), wantReceipt("it", stored, first))
	}
	return errors.Join(bad...)
}

// races is how often two handles race for one seq.
const races = 8

func raced(ctx context.Context, e *Env) error {
	a, err := e.newScope(ctx, "raced")
	if err != nil {
		return err
	}
	b, err := a.another(ctx)
	if err != nil {
		return err
	}
	for n := range races {
		seq := uint64(n)
		var errs [2]error
		var both sync.WaitGroup
		for i, r := range []*scopeRig{a, b} {
			c := r.command(fmt.Sprintf("%d-%d", n, i), newTicket(fmt.Sprintf("work-%d-%d", n, i), 1))
			c.OnlyAt = &seq
			both.Go(func() { _, errs[i] = r.scope.Do(ctx, c) })
		}
		both.Wait()
		lost := errs[0]
		if lost == nil {
			lost = errs[1]
		}
		if (errs[0] == nil) == (errs[1] == nil) {
			return failf("two commands at seq %d: want one carried out, got %w and %w", seq, orNone(errs[0]), orNone(errs[1]))
		}
		s, err := b.scope.Refresh(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(
			wantRefusal("the command that lost", lost, ticket.RevisionConflict, ""),
			wantEqual("seq after the race", s.Seq(), seq+1),
			wantEqual("tickets after the race", s.Counts().Tickets, n+1),
		); err != nil {
			return err
		}
	}
	return nil
}

func twoWriters(ctx context.Context, e *Env) error {
	const each = 10
	a, err := e.newScope(ctx, "writers")
	if err != nil {
		return err
	}
	b, err := a.another(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	seqs := map[uint64]int{}
	var errs [2]error
	var both sync.WaitGroup
	for i, r := range []*scopeRig{a, b} {
		both.Go(func() {
			for n := range each {
				c := r.command(fmt.Sprintf("%d-%d", i, n), newTicket(fmt.Sprintf("work-%d-%d", i, n), 1))
				receipt, err := r.scope.Do(ctx, c)
				for errors.Is(err, ticket.RevisionConflict) { // five losses in a row: it is given again
					receipt, err = r.scope.Do(ctx, c)
				}
				if err != nil {
					errs[i] = err
					return
				}
				mu.Lock()
				seqs[receipt.CommittedSeq]++
				mu.Unlock()
			}
		})
	}
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return failf("two writers: want every command carried out, got %w", err)
	}
	var bad []error
	for seq := uint64(1); seq <= 2*each; seq++ {
		bad = append(bad, wantEqual(fmt.Sprintf("commands at seq %d", seq), seqs[seq], 1))
	}
	before, err := a.still(ctx)
	if err != nil {
		return err
	}
	return errors.Join(append(bad,
		wantEqual("tickets", before.counts.Tickets, 2*each),
		a.wantStill(ctx, "the end, by the first handle", before),
		b.wantStill(ctx, "the end, by the second handle", before))...)
}

// rereads is how often a command that lost is decided anew (T-2).
const rereads = 4

func fourRereads(ctx context.Context, e *Env) error {
	for _, faster := range []int{rereads, rereads + 1} {
		if err := losing(ctx, e, faster); err != nil {
			return failf("another writer is faster %d times: %w", faster, err)
		}
	}
	return nil
}

// losing gives a command that another writer overtakes faster times.
func losing(ctx context.Context, e *Env, faster int) error {
	r, err := e.newScope(ctx, fmt.Sprintf("faster-%d", faster))
	if err != nil {
		return err
	}
	rival, err := r.another(ctx)
	if err != nil {
		return err
	}
	commits, wins := 0, 0
	var given error
	st := pausing{r.faulty.Store(), func(ctx context.Context, _ store.Commit) {
		if commits++; wins < faster {
			wins++
			given = errors.Join(given, rival.give(ctx, newTicket(fmt.Sprintf("rival-%d", wins), 1)))
		}
	}}
	s, err := scope.Open(ctx, st, r.binding, scope.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Do(ctx, r.command("mine", newTicket("mine", 1)))
	want := wantOK("the command", err)
	if faster > rereads {
		want = wantRefusal("the command", err, ticket.RevisionConflict, "")
	}
	_, there := rival.scope.State().Ticket("mine")
	if now, rerr := rival.scope.Refresh(ctx); rerr == nil {
		_, there = now.Ticket("mine")
	}
	return errors.Join(given, want,
		wantEqual("commits that were tried", commits, rereads+1),
		wantEqual("the command was carried out", there, err == nil))
}

func bindingDiffers(ctx context.Context, e *Env) error {
	r, err := e.newScope(ctx, "bound")
	if err != nil {
		return err
	}
	if err := r.give(ctx, newTicket("work", 1)); err != nil {
		return err
	}
	var bad []error
	for what, change := range map[string]func(*ticket.Binding){
		"another supervisor":       func(b *ticket.Binding) { b.SupervisorSessionID += "-else" },
		"an older binding":         func(b *ticket.Binding) { b.BindingRevision-- },
		"a later binding":          func(b *ticket.Binding) { b.BindingRevision++ },
		"a binding without a name": func(b *ticket.Binding) { b.SupervisorSessionID = "" },
	} {
		b := r.binding
		change(&b)
		bad = append(bad, r.refused(ctx, what, ticket.ScopeDenied, "", func() error {
			s, err := scope.Open(ctx, r.other, b, scope.Config{})
			if err == nil {
				s.Close()
			}
			return err
		}))
	}
	return errors.Join(append(bad, r.give(ctx, ticket.MarkReady{Of: of("work")}))...)
}

func openingChangesNothing(ctx context.Context, e *Env) error {
	r, err := e.newScope(ctx, "opened")
	if err != nil {
		return err
	}
	if err := r.give(ctx, newTicket("work", 1)); err != nil {
		return err
	}
	before, err := r.still(ctx)
	if err != nil {
		return err
	}
	for range 3 {
		s, err := scope.Open(ctx, r.other, r.binding, scope.Config{})
		if err != nil {
			return failf("open: want success, got %w", err)
		}
		_, err = s.Refresh(ctx)
		s.Close()
		if err != nil {
			return failf("read: want success, got %w", err)
		}
	}
	report, err := scope.Check(ctx, r.other, r.binding.ScopeID)
	return errors.Join(err, wantEqual("findings", len(report.Findings), 0), r.wantStill(ctx, "opening and reading", before))
}

func takeOver(ctx context.Context, e *Env) error {
	r, err := e.newScope(ctx, "authority", "inside", "anywhere")
	if err != nil {
		return err
	}
	first, err := r.scope.Coordinate(ctx, scope.Claim{Host: "first"})
	if err != nil {
		return failf("coordinate: want success, got %w", err)
	}
	e.atEnd(first.Close)
	if err := r.give(ctx, newTicket("inside", 2), ticket.MarkReady{Of: of("inside")}, newTicket("anywhere", 2), ticket.MarkReady{Of: of("anywhere")},
		ticket.Start{Of: of("inside"), Host: "first"}, ticket.Start{Of: of("anywhere")}); err != nil {
		return err
	}
	epoch := r.scope.State().Authority().Epoch
	other, err := r.another(ctx)
	if err != nil {
		return err
	}
	_, err = other.scope.Coordinate(ctx, scope.Claim{Host: "second"})
	busy := wantEqual("a second host is told that the first one coordinates", errors.Is(err, store.ErrBusy), true)
	before, err := r.still(ctx)
	if err != nil {
		return err
	}
	again, err := r.scope.Coordinate(ctx, scope.Claim{Host: "first"})
	if err != nil {
		return failf("coordinate again: want success, got %w", err)
	}
	e.atEnd(again.Close)
	same := r.wantStill(ctx, "the same host asks again", before)
	second, err := other.scope.Coordinate(ctx, scope.Claim{Host: "second", Force: true})
	if err != nil {
		return failf("take over: want success, got %w", err)
	}
	e.atEnd(second.Close)
	s, err := r.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	inside, _ := s.Assignment("inside@1")
	anywhere, _ := s.Assignment("anywhere@1")
	return errors.Join(busy, same,
		wantEqual("the epoch after the role changed hands", s.Authority().Epoch, epoch+1),
		wantEqual("what was to run inside the lost coordinator", inside.State, ticket.OutcomeUnknown),
		wantEqual("what was to run anywhere", anywhere.State, ticket.DispatchPending),
		wantEqual("its epoch", anywhere.AuthorityEpoch, epoch+1),
		r.refused(ctx, "a word of the lost coordinator", ticket.ScopeDenied, "coordinate", func() error {
			_, err := r.do(ctx, ticket.Runtime("first"), ticket.LoseLease{Assignment: "anywhere@1"})
			return err
		}),
	)
}

func failedPublication(ctx context.Context, e *Env) error {
	r, err := e.newScope(ctx, "failed")
	if err != nil {
		return err
	}
	if err := r.give(ctx, newTicket("work", 1)); err != nil {
		return err
	}
	before, err := r.still(ctx)
	if err != nil {
		return err
	}
	c := r.command("ready", ticket.MarkReady{Of: of("work")})
	r.faulty.Inject(Fault{Op: OpCommit, When: Before, Err: definite()})
	if _, err := r.scope.Do(ctx, c); err == nil {
		return failf("a publication that fails: want an error, got success")
	}
	bad := []error{r.wantStill(ctx, "the failed publication", before)}
	receipt, err := r.scope.Do(ctx, c)
	if err != nil {
		return errors.Join(append(bad, failf("the same command later: want success, got %w", err))...)
	}
	return errors.Join(append(bad, wantEqual("its seq", receipt.CommittedSeq, uint64(2)))...)
}

func createdOnce(ctx context.Context, e *Env) error {
	for _, when := range []When{Before, After} {
		st, err := e.Open(ctx)
		if err != nil {
			return err
		}
		faulty := NewFaulty(st, Fault{Op: OpCreate, When: when, Err: unknown()})
		s, err := scope.Create(ctx, faulty.Store(), e.bind("created-"+word(when)), scope.Config{})
		if err != nil {
			return failf("a creation that failed %s: want success, got %w", when, err)
		}
		defer s.Close()
		if err := errors.Join(
			wantEqual("creates", faulty.Count(OpCreate), 2),
			wantEqual("the seq of the new scope", s.State().Seq(), 0),
		); err != nil {
			return failf("a creation that failed %s: %w", when, err)
		}
	}
	return nil
}

func settledPublication(ctx context.Context, e *Env) error {
	for _, when := range []When{Before, After} {
		r, err := e.newScope(ctx, "settled-"+word(when))
		if err != nil {
			return err
		}
		r.faulty.Inject(Fault{Op: OpCommit, When: when, Err: unknown()})
		receipt, err := r.scope.Do(ctx, r.command("make", newTicket("work", 1)))
		if err != nil {
			return failf("a command whose commit failed %s: want it carried out, got %w", when, err)
		}
		now, err := r.still(ctx)
		if err != nil {
			return failf("after a commit that failed %s: %w", when, err)
		}
		mine, err := r.scope.State().Canonical()
		if err := errors.Join(err,
			wantEqual("its seq", receipt.CommittedSeq, uint64(1)),
			wantEqual("entries in the log", now.record.record.LogLength, uint64(1)),
			wantEqual("tickets in the store", now.counts.Tickets, 1),
			wantBytes("what is stored", now.canonical, mine),
		); err != nil {
			return failf("a commit that failed %s: %w", when, err)
		}
	}
	return nil
}

func unknownPublication(ctx context.Context, e *Env) error {
	for _, when := range []When{Before, After} {
		if err := unknownAt(ctx, e, when); err != nil {
			return failf("failed %s: %w", when, err)
		}
	}
	return nil
}

func unknownAt(ctx context.Context, e *Env, when When) error {
	r, err := e.newScope(ctx, "unknown-"+word(when))
	if err != nil {
		return err
	}
	if err := r.give(ctx, newTicket("work", 1)); err != nil {
		return err
	}
	old, err := r.scope.State().Canonical()
	if err != nil {
		return err
	}
	c := r.command("ready", ticket.MarkReady{Of: of("work")})
	r.faulty.Inject(Fault{Op: OpCommit, When: when, Err: unknown()}, Fault{Op: OpResolve})
	_, lost := r.scope.Do(ctx, c)
	_, closed := r.do(ctx, r.boss(), ticket.Cancel{Of: of("work")})
	readable, err := r.scope.State().Canonical()
	if err != nil {
		return err
	}
	commits := r.faulty.Count(OpCommit)
	bad := []error{
		wantEqual("the command's outcome is unknown", errors.Is(lost, store.ErrUnknownOutcome), true),
		wantEqual("another command is refused as the handle is read-only", errors.Is(closed, store.ErrUnknownOutcome), true),
		wantBytes("the old snapshot", readable, old),
	}
	if err := r.scope.Reopen(ctx); err != nil {
		return errors.Join(append(bad, failf("reopen: want success, got %w", err))...)
	}
	_, known := r.scope.State().Receipt("ready")
	receipt, err := r.scope.Do(ctx, c)
	if err != nil {
		return errors.Join(append(bad, failf("the same command after reopening: want success, got %w", err))...)
	}
	want := commits
	if when == Before {
		want++
	}
	s, err := r.scope.Refresh(ctx)
	if err != nil {
		return err
	}
	t, _ := s.Ticket("work")
	return errors.Join(append(bad,
		wantEqual("the command was applied", known, when == After),
		wantEqual("its seq", receipt.CommittedSeq, uint64(2)),
		wantEqual("the scope's seq", s.Seq(), uint64(2)),
		wantEqual("the ticket", t.State, ticket.Ready),
		wantEqual("commits", r.faulty.Count(OpCommit), want))...)
}
