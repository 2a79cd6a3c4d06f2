package scope

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/internal/canon"
)

// Claim asks for a scope's coordinator's role.
type Claim struct {
	Host string        // the runtime's id; every start of a host is another one
	TTL  time.Duration // of the lease; 0: store.DefaultTTL
	// Force is an operator's explicit take-over from a live coordinator.
	Force bool
	// Expired names the live assignments of a state whose worker's lease has run out:
	// they become outcome_unknown if the role changes hands (T-2). nil: none.
	Expired func(ctx context.Context, s *ticket.State) ([]string, error)
}

// Role is the coordinator's role, held. Its lease permits the attempt; the scope's
// log decides:
//
//	Acquire coordinator/<id> ─▶ read epoch e ─▶ Renew: still mine? ─▶ TakeOver, only at e
//	            ▲                     ▲                                      │
//	            └── busy: later       └───── somebody was faster ◀───────────┤
//	                                                                 epoch e+1, held
//
// A host that pauses between any two steps finds another epoch, and is refused.
type Role struct {
	scope *Scope
	host  string
	ttl   time.Duration
	fence store.Fence
	ctx   context.Context
	end   context.CancelCauseFunc
	done  chan struct{}
}

// errRoleClosed ends a role that its holder gave back.
var errRoleClosed = errors.New("the coordinator's role was given back")

// Coordinate takes the coordinator's role and keeps its lease, also after ctx. The epoch rises
// unless c.Host has the role already. A lease of the same host is its own, left behind
// by an attempt that failed, and is taken over; so a host asks once at a time. Errors:
// store.ErrBusy while another host holds the lease (Error.Holder says which and until
// when: try again then), and those of Do.
func (s *Scope) Coordinate(ctx context.Context, c Claim) (*Role, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.busy.Done()
	if c.Host == "" || len(c.Host) > ticket.MaxIDBytes {
		return nil, &ticket.Error{Op: "coordinate", Key: s.binding.ScopeID, Kind: ticket.ScopeDenied, Detail: fmt.Sprintf("the host's id has %d bytes; it needs 1 to %d", len(c.Host), ticket.MaxIDBytes)}
	}
	if c.TTL <= 0 {
		c.TTL = store.DefaultTTL
	}
	r := &Role{scope: s, host: c.Host, ttl: c.TTL, done: make(chan struct{})}
	asked := time.Now()
	if err := r.acquire(ctx, c.Force); err != nil {
		return nil, err
	}
	if err := r.takeOver(ctx, c.Expired); err != nil {
		return nil, errors.Join(err, r.release(context.WithoutCancel(ctx)))
	}
	r.ctx, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.busy.Go(func() { r.keep(asked) })
	return r, nil
}

func (r *Role) key() store.Key {
	return store.Key{Kind: KindCoordinator, ID: r.scope.binding.ScopeID}
}

// acquire takes the lease. The first coordinator of a scope makes its record.
func (r *Role) acquire(ctx context.Context, force bool) error {
	claim := store.Claim{Owner: r.host, Run: uuid.NewString(), TTL: r.ttl, Force: force}
	err := r.acquireOnce(ctx, claim)
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	head, err := canon.Marshal(struct {
		Schema int    `json:"schema"`
		Scope  string `json:"scope_id"`
	}{HeadSchema, r.scope.binding.ScopeID})
	if err != nil {
		return err
	}
	err = r.scope.makeRecord(ctx, r.key(), store.Commit{ID: uuid.NewString(), Head: head})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	return r.acquireOnce(ctx, claim)
}

func (r *Role) acquireOnce(ctx context.Context, claim store.Claim) (err error) {
	ctx, cancel := r.scope.cfg.bounded(ctx)
	defer cancel()
	r.fence, _, err = r.scope.store.Acquire(ctx, r.key(), claim)
	var busy *store.Error
	if errors.Is(err, store.ErrBusy) && errors.As(err, &busy) && busy.Holder.Fence.Owner == r.host {
		claim.Force = true
		r.fence, _, err = r.scope.store.Acquire(ctx, r.key(), claim)
	}
	return err
}

// takeOver makes the holder of the lease the scope's coordinator.
func (r *Role) takeOver(ctx context.Context, expired func(context.Context, *ticket.State) ([]string, error)) error {
	for {
		state, err := r.scope.Refresh(ctx)
		if err != nil || state.Authority().Coordinator == r.host {
			return err
		}
		// Whoever acquires after this renewal reads, and follows, a later epoch or this one.
		if err := r.renew(ctx); err != nil {
			return err
		}
		ids := []string{}
		if expired != nil {
			if ids, err = expired(ctx, state); err != nil {
				return err
			}
		}
		epoch := state.Authority().Epoch
		_, err = r.scope.Do(ctx, ticket.Command{
			OperationID: fmt.Sprintf("take-over/%s/%d", r.fence.Generation, epoch),
			Principal:   r.Principal(),
			Request:     ticket.TakeOver{Expired: append([]string{}, ids...), IfEpoch: &epoch},
		})
		if err != nil && !errors.Is(err, ticket.RevisionConflict) {
			return err
		}
	}
}

// keep renews the lease until the role ends, and gives it back.
func (r *Role) keep(renewed time.Time) {
	defer close(r.done)
	for lost := false; ; {
		v, changed := r.scope.latest()
		if c := v.state.Authority().Coordinator; c != r.host {
			r.end(&ticket.Error{Op: "coordinate", Key: r.scope.binding.ScopeID, Kind: ticket.ScopeDenied, Detail: fmt.Sprintf("the role is now %q's", c)})
		}
		wait := time.NewTimer(max(0, min(r.ttl/3, time.Until(renewed.Add(r.ttl)))))
		select {
		case <-r.ctx.Done():
			wait.Stop()
			if !lost {
				if err := r.release(context.Background()); err != nil {
					r.scope.cfg.Logger.Warn("the coordinator's lease was not given back; it runs out", "scope_id", r.scope.binding.ScopeID, "err", err)
				}
			}
			return
		case <-r.scope.closed:
			wait.Stop()
			r.end(r.scope.errClosed())
			continue
		case <-changed:
			wait.Stop()
			continue
		case <-wait.C:
		}
		sent := time.Now()
		attempt, cancel := context.WithDeadline(r.ctx, renewed.Add(r.ttl))
		err := r.renew(attempt)
		cancel()
		switch {
		case err == nil:
			renewed = sent
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrNotFound):
			lost = true
			r.end(err)
		case time.Since(renewed) >= r.ttl:
			r.end(&store.Error{Op: "renew", Key: r.key(), Kind: store.ErrUnavailable, Detail: fmt.Sprintf("the coordinator's lease could not be renewed for %v", r.ttl), Err: err})
		}
	}
}

func (r *Role) renew(ctx context.Context) error {
	ctx, cancel := r.scope.cfg.bounded(ctx)
	defer cancel()
	return r.scope.store.Renew(ctx, r.key(), r.fence, r.ttl)
}

// release gives the lease back. That somebody else has it is no error.
func (r *Role) release(ctx context.Context) error {
	ctx, cancel := r.scope.cfg.bounded(ctx)
	defer cancel()
	err := r.scope.store.Release(ctx, r.key(), r.fence)
	if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Context ends with the role: another host took it (store.ErrFenced, or
// ticket.ScopeDenied where the scope told first), the lease could not be renewed in
// time (store.ErrUnavailable), or the role or the scope was closed. context.Cause
// says which. What a coordinator does runs under it.
func (r *Role) Context() context.Context { return r.ctx }

// Principal is the runtime that holds the role.
func (r *Role) Principal() ticket.Principal { return ticket.Runtime(r.host) }

// Close gives the role back: another host may take it at once. The scope's authority
// stays as it is until then.
func (r *Role) Close() {
	r.end(errRoleClosed)
	<-r.done
}
