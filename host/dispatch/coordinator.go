package dispatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// Policy is what a coordinator does by itself. The zero value starts nothing and
// accepts nothing: people and supervisors give the commands.
type Policy struct {
	// Start starts every ready ticket as soon as its dependencies are accepted.
	Start bool
	// Accept accepts every submission whose contract asks for no user's acceptance, in
	// the name of the scope's supervisor.
	Accept bool
}

// DefaultSweep is how often a coordinator and a worker look for what nobody told them.
const DefaultSweep = 5 * time.Second

// parallel bounds how many commands or look-ups are under way at once; commands that
// meet share a commit.
const parallel = 16

// CoordinatorConfig says what a Coordinator works with. Scope, Runner, Queue and ID
// are required.
type CoordinatorConfig struct {
	Scope  *scope.Scope
	Store  store.Store
	Queue  store.Queue
	Runner *child.Runner // to prove and publish what workers that are gone left behind
	ID     string        // of this start of this coordinator; 1–256 bytes
	Policy Policy
	TTL    time.Duration // of the role's lease; 0: store.DefaultTTL
	Sweep  time.Duration // 0: DefaultSweep
	Logger *slog.Logger  // nil: silent
}

// Coordinator coordinates a scope for as long as it has the role. Make one with
// NewCoordinator and call Run.
type Coordinator struct {
	c        CoordinatorConfig
	enqueued map[string]time.Time // intents by assignment: when they were enqueued last
	settled  atomic.Uint64        // one more than the seq at which a whole step changed nothing; 0: none yet
}

// NewCoordinator makes a coordinator. It touches nothing.
func NewCoordinator(c CoordinatorConfig) *Coordinator {
	if c.Sweep <= 0 {
		c.Sweep = DefaultSweep
	}
	if c.TTL <= 0 {
		c.TTL = store.DefaultTTL
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Coordinator{c: c, enqueued: map[string]time.Time{}}
}

// Run takes the role as often as it is free, and coordinates while it is held, until
// ctx ends; then it gives the role back. Failures of the store are logged and tried
// again. It returns ctx's cause.
func (c *Coordinator) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		role, err := c.take(ctx)
		switch {
		case err == nil:
			c.hold(ctx, role)
			role.Close()
		case errors.Is(err, store.ErrBusy):
			c.settled.Store(elsewhere)
		default:
			c.c.Logger.Warn("the coordinator's role can't be taken", "scope", c.c.Scope.Binding().ScopeID, "error", err)
		}
		pause(ctx, min(c.c.Sweep, c.c.TTL/2))
	}
	return context.Cause(ctx)
}

// elsewhere is what settled holds while another host has the role.
const elsewhere = math.MaxUint64

// Settled reports whether this coordinator has nothing to do at a seq of the scope: it
// looked at everything there, and changed nothing, or another host has the role.
func (c *Coordinator) Settled(seq uint64) bool {
	at := c.settled.Load()
	return at == elsewhere || at == seq+1
}

// Pass takes the role, does once what is to be done, and gives it back. changed says
// whether the scope moved on meanwhile. Error: store.ErrBusy while another host has the role.
func (c *Coordinator) Pass(ctx context.Context) (changed bool, err error) {
	role, err := c.take(ctx)
	if err != nil {
		return false, err
	}
	defer role.Close()
	before := c.c.Scope.State().Seq()
	if err := c.step(role.Context(), role, true); err != nil {
		return false, err
	}
	return c.c.Scope.State().Seq() != before, nil
}

func (c *Coordinator) take(ctx context.Context) (*scope.Role, error) {
	return c.c.Scope.Coordinate(ctx, scope.Claim{Host: c.c.ID, TTL: c.c.TTL, Expired: c.expired})
}

// hold coordinates until the role or ctx ends.
func (c *Coordinator) hold(ctx context.Context, role *scope.Role) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(role.Context(), func() { cancel(context.Cause(role.Context())) })()
	c.c.Logger.Info("coordinating", "scope", c.c.Scope.Binding().ScopeID, "epoch", c.c.Scope.State().Authority().Epoch)
	if n, err := scope.Sweep(ctx, c.c.Store); err != nil && ctx.Err() == nil {
		c.c.Logger.Warn("snapshots that nobody needs may be left", "error", err)
	} else if n > 0 {
		c.c.Logger.Info("snapshots that nobody needs were removed", "records", n)
	}
	swept := time.Time{}
	for ctx.Err() == nil {
		sweep := time.Since(swept) >= c.c.Sweep
		if sweep {
			swept = time.Now()
		}
		seq := c.c.Scope.State().Seq()
		if err := c.step(ctx, role, sweep); err != nil && ctx.Err() == nil {
			c.c.Logger.Warn("coordinating failed; it is tried again", "scope", c.c.Scope.Binding().ScopeID, "error", err)
			pause(ctx, c.c.Sweep)
			continue
		}
		if c.c.Scope.State().Seq() != seq {
			continue // what was done may have made more possible
		}
		if sweep || none(c.c.Scope.State().Unsettled()) {
			c.settled.Store(seq + 1)
		}
		wait, done := context.WithDeadline(ctx, swept.Add(c.c.Sweep))
		_, _ = c.c.Scope.Wait(wait, seq) // the step that follows looks anew, whatever it says
		done()
	}
}

func none[T any](seq iter.Seq[T]) bool {
	for range seq {
		return false
	}
	return true
}

// step does what the scope's newest state asks for. sweep looks also for workers that
// are gone.
func (c *Coordinator) step(ctx context.Context, role *scope.Role, sweep bool) error {
	s, err := c.c.Scope.Refresh(ctx)
	if err != nil {
		return err
	}
	w := work{c: c, ctx: ctx, role: role}
	w.group.SetLimit(parallel)
	if sweep {
		for a := range s.Unsettled() {
			w.look(s, a)
		}
	}
	if c.c.Policy.Accept {
		for t := range s.Tickets() {
			if t.State == ticket.Submitted && !t.Contract.UserAcceptanceRequired {
				w.give("accept/"+t.CurrentSubmission, ticket.Supervisor(s.Binding().SupervisorSessionID),
					ticket.Accept{Of: ticket.Of{Ticket: t.ID}, Submission: t.CurrentSubmission})
			}
		}
	}
	if c.c.Policy.Start {
		for t := range s.Startable() {
			next := ticket.AssignmentID(t.ID, t.Generation+1)
			w.give("start/"+next, role.Principal(), ticket.Start{Of: ticket.Of{Ticket: t.ID}})
		}
	}
	if err := w.group.Wait(); err != nil {
		return err
	}
	return c.enqueue(ctx, c.c.Scope.State())
}

// enqueue puts every dispatch that nobody admitted yet into the queue: at once when it
// is new, and again with each lease time, for what a queue or a worker lost.
func (c *Coordinator) enqueue(ctx context.Context, s *ticket.State) error {
	wanted := map[string]bool{}
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range s.Intents() {
		wanted[i.Assignment] = true
		if time.Since(c.enqueued[i.Assignment]) < c.c.TTL {
			continue
		}
		it, err := itemOf(s.Binding().ScopeID, i)
		if err != nil {
			return err
		}
		c.enqueued[i.Assignment] = time.Now()
		group.Go(func() error { return c.c.Queue.Enqueue(ctx, QueueName(s.Binding().ScopeID), it) })
	}
	for id := range c.enqueued {
		if !wanted[id] {
			delete(c.enqueued, id)
		}
	}
	err := group.Wait()
	if err != nil {
		clear(c.enqueued) // which of them are there is not known
	}
	return err
}

// work is the commands of one step, several at a time.
type work struct {
	c     *Coordinator
	ctx   context.Context
	role  *scope.Role
	group errgroup.Group
}

// give gives a command. A refusal says that the state moved on: the next step sees it.
func (w *work) give(operation string, p ticket.Principal, r ticket.Request) {
	w.group.Go(func() error {
		_, err := w.c.c.Scope.Do(w.ctx, ticket.Command{OperationID: bounded(operation), Principal: p, Request: r})
		if _, refused := errors.AsType[*ticket.Error](err); refused {
			w.c.c.Logger.Debug("refused", "operation", operation, "error", err)
			return nil
		}
		return err
	})
}

// bounded is an operation id of at most the size that one may have.
func bounded(operation string) string {
	if len(operation) <= ticket.MaxIDBytes {
		return operation
	}
	return ticket.ChildSessionID(operation)
}

// look sees whether an assignment's worker is gone, and takes it as far as can be.
func (w *work) look(s *ticket.State, a *ticket.Assignment) {
	switch t, _ := s.Ticket(a.Ticket); {
	case a.Runtime == nil && a.State == ticket.DispatchPending && a.ContractRevision != t.ContractRevision:
		w.fail(a, "the contract was revised before the attempt was admitted")
		return
	case a.Runtime == nil && a.State == ticket.OutcomeUnknown:
		w.fail(a, "it was given up before it was admitted")
		return
	case a.Runtime == nil:
		return // it waits for its dispatch
	}
	id, session, state := a.ID, a.Runtime.SessionID, a.State
	w.group.Go(func() error {
		held, err := w.c.held(w.ctx, session)
		if err != nil || held {
			return err
		}
		_, err = w.c.c.Runner.Recover(w.ctx, id)
		switch {
		case err == nil:
			w.c.c.Logger.Info("recovered", "assignment", id)
			return nil
		case errors.Is(err, ticket.InvalidTransition):
			return w.failNow(id, "its result can't be one: "+err.Error())
		case errors.Is(err, ticket.AuthorityUnavailable) && state != ticket.OutcomeUnknown:
			w.c.c.Logger.Warn("a worker is gone", "assignment", id, "error", err)
			return w.doNow("lose/"+id, ticket.LoseLease{Assignment: id})
		}
		if _, refused := errors.AsType[*ticket.Error](err); refused {
			w.c.c.Logger.Debug("not recovered", "assignment", id, "error", err)
			return nil
		}
		return err
	})
}

func (w *work) fail(a *ticket.Assignment, reason string) {
	w.group.Go(func() error { return w.failNow(a.ID, reason) })
}

func (w *work) failNow(assignment, reason string) error {
	if len(reason) > ticket.MaxTextBytes {
		reason = reason[:ticket.MaxTextBytes]
	}
	return w.doNow("fail/"+assignment, ticket.Fail{Assignment: assignment, Reason: reason})
}

func (w *work) doNow(operation string, r ticket.Request) error {
	_, err := w.c.c.Scope.Do(w.ctx, ticket.Command{OperationID: bounded(operation), Principal: w.role.Principal(), Request: r})
	if _, refused := errors.AsType[*ticket.Error](err); refused {
		w.c.c.Logger.Debug("refused", "operation", operation, "error", err)
		return nil
	}
	return err
}

// held reports whether a live worker holds a child session.
func (c *Coordinator) held(ctx context.Context, session string) (bool, error) {
	rec, err := c.c.Store.Load(ctx, store.SessionKey(session))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the worker of %s: %w", session, err)
	}
	return rec.Holder != nil, nil
}

// expired names the live assignments whose worker's lease has run out (T-2).
func (c *Coordinator) expired(ctx context.Context, s *ticket.State) ([]string, error) {
	var group errgroup.Group
	group.SetLimit(parallel)
	found := make(chan string, s.Counts().Assignments)
	for a := range s.Live() {
		if a.Runtime == nil || a.ProcessStopped {
			continue // nothing runs, or its stop is known
		}
		id, session := a.ID, a.Runtime.SessionID
		group.Go(func() error {
			held, err := c.held(ctx, session)
			if err == nil && !held {
				found <- id
			}
			return err
		})
	}
	err := group.Wait()
	close(found)
	var out []string
	for id := range found {
		out = append(out, id)
	}
	return out, err
}

// pause waits for d or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
