package child

import (
	"context"
	"errors"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/ticket"
)

// The actor's activation lies in the child's own record, so its lease is that of the
// session's fence: whoever holds the session knows that every claim before is over,
// and no clock is asked. LeaseUntil is therefore the instant of the claim.

// claim is the activation of an actor that the holder of its session claims.
func (r *Runner) claim(before *ticket.Activation, dispatchKey, run string) (*ticket.Activation, error) {
	var a ticket.Activation
	if before != nil {
		a = *before
	}
	now := max(time.Now().UnixNano(), a.LeaseUntil)
	a, err := a.Claim(ticket.ActorClaim{ActivationID: activationID(dispatchKey), RunID: run, Owner: r.principal.ID()}, now, now+1)
	return &a, err
}

// activationID is a dispatch key's, which may be longer than an id.
func activationID(dispatchKey string) string { return ticket.ChildSessionID(dispatchKey) }

// runActor is the child's actor at work.
func runActor(c *host.Child) error {
	if c.Actor == nil {
		return errors.New("the child's actor was not claimed")
	}
	a, err := c.Actor.Run(c.Actor.Lease(), c.Actor.LeaseUntil-1)
	if err == nil {
		c.Actor = &a
	}
	return err
}

// finishActor ends the actor as its assignment ended (life cycle, row 11). One that has
// ended stays as it is. An attempt whose result can't be one has failed (T-13), though
// the scope is told so by the coordinator.
func (r *Runner) finishActor(ctx context.Context, s *host.Session, assignment string) error {
	status, err := r.scope.State().ActorOutcome(assignment)
	if errors.Is(err, ticket.AuthorityUnavailable) {
		if a, ok := r.scope.State().Assignment(assignment); ok && a.ProcessStopped {
			status, err = ticket.ActorFailed, nil
		}
	}
	if err != nil {
		return err
	}
	if c := s.Snapshot().Head.Child; c == nil || c.Actor == nil || c.Actor.Status == status {
		return nil
	}
	return s.UpdateChild(ctx, func(c *host.Child) error {
		a, err := c.Actor.Finish(c.Actor.Lease(), status)
		if err == nil {
			c.Actor = &a
		}
		return err
	})
}
