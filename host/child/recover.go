package child

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/internal/procgroup"
)

// Recover takes an admitted assignment, whose worker may be gone, as far as what is
// durable and what can be seen from here allow: it publishes a stop that the child's
// record proves, proves one where that is possible on this machine (T-14), writes the
// final status, and takes the result checkpoint. The agent is never run again. Where
// it succeeds the assignment's stop is published, and its result if it has one. It is
// safe to call at any time and from several workers. Errors:
//
//   - ticket.ResourceBlocked: a live worker holds the child; wait.
//   - ticket.AuthorityUnavailable: nothing here proves that the run stopped; ask the
//     machine that ran it, or let a person confirm it (T-15).
//   - ticket.InvalidTransition: no run was admitted; or the stop is published and the
//     last message can't be a result (T-13).
//   - ticket.ScopeDenied, and store errors.
func (r *Runner) Recover(ctx context.Context, assignment string) (_ ticket.Receipt, err error) {
	const op = "recover"
	c, err := r.canonical(ctx, assignment)
	if err != nil {
		return ticket.Receipt{}, err
	}
	a, _ := r.scope.State().Assignment(assignment)
	switch {
	case a.Runtime == nil:
		return ticket.Receipt{}, refuse(op, assignment, ticket.InvalidTransition, nil, "no run of it was admitted")
	case c.SessionID == "":
		return ticket.Receipt{}, refuse(op, assignment, ticket.AuthorityUnavailable, nil, "storage has no child of it")
	}
	durable := context.WithoutCancel(ctx)
	s, err := r.host.Open(ctx, host.OpenRequest{ID: a.Runtime.SessionID, MustExist: true})
	switch {
	case err == nil:
		// From here on the worker that had the session can't write it, nor begin the run.
		defer func() { err = errors.Join(err, s.Close(durable)) }()
		if err := r.settle(ctx, s, a); err != nil {
			return ticket.Receipt{}, err
		}
	case !errors.Is(err, store.ErrBusy):
		return ticket.Receipt{}, err
	case c.Metadata[ticket.MetaOwnedStop] == "" || c.Status == ticket.ChildRunning:
		return ticket.Receipt{}, refuse(op, assignment, ticket.ResourceBlocked, err, "a live worker holds the child session")
	}
	receipt, _, err := r.Checkpoint(durable, assignment, a.Runtime.RunID)
	if s != nil && unless(settled, err) == nil {
		err = errors.Join(err, r.finishActor(durable, s, assignment))
	}
	return receipt, err
}

// settle gives the child's record what its worker did not: the proof of its stop, and
// its final status.
func (r *Runner) settle(ctx context.Context, s *host.Session, a ticket.Assignment) error {
	head := s.Snapshot().Head
	if head.Child == nil {
		return refuse("recover", a.ID, ticket.ScopeDenied, nil, "the admitted session is no child")
	}
	if head.Child.Metadata[ticket.MetaOwnedStop] != "" && head.Child.Status != ticket.ChildRunning {
		return nil
	}
	document, err := preparedFor(head, a)
	if err != nil {
		return err
	}
	receipt, err := r.proof(ctx, head, a)
	if err != nil {
		return err
	}
	// Nothing of the run is left: its loop, if it has no ending, gets one (L-3).
	durable := context.WithoutCancel(ctx)
	if err := s.Recover(durable); err != nil {
		return err
	}
	status := statusOf(s.Snapshot().Head, receipt)
	return s.UpdateChild(durable, func(c *host.Child) error {
		c.Metadata[ticket.MetaDispatch] = document
		c.Status = status
		if receipt == nil {
			return nil
		}
		receipt.Completed = status == ticket.ChildCompleted
		return putStop(c, *receipt)
	})
}

// preparedFor is the child's dispatch with the run that was admitted. Another run may
// be in it only where nothing ran: a later claim was prepared, and then refused.
func preparedFor(head host.Head, a ticket.Assignment) (string, error) {
	d, err := ticket.DecodeChildDispatch([]byte(head.Child.Metadata[ticket.MetaDispatch]))
	if err != nil {
		return "", err
	}
	if d.Receipt == nil || *d.Receipt != *a.Runtime {
		if !idle(head) {
			return "", refuse("recover", a.ID, ticket.ScopeDenied, nil, "the child ran for another run than the admitted one")
		}
		d.Receipt, d.ChildBirth = nil, ""
		if d, err = d.Prepared(a.Runtime.RunID, a.Runtime.SessionID, a.ChildBirth); err != nil {
			return "", err
		}
	}
	return d.Encode()
}

// idle reports whether nothing was ever run in the session: a loop begins with a
// checkpoint (L-5), a command with its identity, and whoever reads this holds the fence.
func idle(head host.Head) bool {
	return head.Loop == nil && head.Child.Metadata[ticket.MetaProcessIdentity] == ""
}

// proof is the stop receipt of a run whose worker left none; nil where there is one.
// Completed is not filled in.
func (r *Runner) proof(ctx context.Context, head host.Head, a ticket.Assignment) (*ticket.StopReceipt, error) {
	metadata := head.Child.Metadata
	if metadata[ticket.MetaOwnedStop] != "" {
		return nil, nil
	}
	unproved := func(err error, why string) error {
		return refuse("recover", a.ID, ticket.AuthorityUnavailable, err, "%s", why)
	}
	receipt := &ticket.StopReceipt{Receipt: *a.Runtime, ChildBirth: a.ChildBirth}
	if value := metadata[ticket.MetaProcessIdentity]; value != "" {
		p, err := ticket.DecodeProcessIdentity([]byte(value))
		if err != nil {
			return nil, err
		}
		if err := r.visible(p); err != nil {
			return nil, err
		}
		if err := procgroup.End(ctx, groupOf(p, a.Runtime.RunID)); err != nil {
			return nil, unproved(err, "its process group is not proved to be gone")
		}
		receipt.PID = &p.PID
		return receipt, nil
	}
	if !idle(head) {
		worker := head.Child.Worker
		if worker == nil {
			return nil, unproved(nil, "its worker did not say which process it was; let a person confirm the stop")
		}
		if err := r.visible(*worker); err != nil {
			return nil, err
		}
		alive, err := r.executes(*worker, a.Runtime.RunID)
		if err != nil {
			return nil, unproved(err, "whether its worker lives can't be told")
		}
		if alive {
			return nil, unproved(nil, "the worker that runs it lives, though it lost the session; wait until it gives up")
		}
	}
	instance := metadata[ticket.MetaTaskInstance]
	if instance == "" {
		instance = uuid.NewString() // it never began
	}
	receipt.TaskInstance = &instance
	return receipt, nil
}

// visible refuses what can't be seen from here.
func (r *Runner) visible(p ticket.ProcessIdentity) error {
	if r.self == nil {
		return refuse("recover", "", ticket.AuthorityUnavailable, procgroup.ErrUnsupported, "it ran as a process of %s", p.HostName)
	}
	return p.Visible(r.self.HostName, r.self.BootID)
}

// executes reports whether the process p is there and, if it is this one, runs the run.
func (r *Runner) executes(p ticket.ProcessIdentity, run string) (bool, error) {
	if p == *r.self {
		_, here := running.Load(run)
		return here, nil
	}
	return procgroup.Alive(groupOf(p, ""))
}

// statusOf is the final status of a run that stopped: what its loop says, unless the
// receipt that is there already says otherwise.
func statusOf(head host.Head, proof *ticket.StopReceipt) ticket.ChildStatus {
	status := ticket.ChildFailed
	if l := head.Loop; l != nil {
		switch {
		case l.Status == loop.Completed && head.Runtime.Status == loop.RuntimeCompleted:
			status = ticket.ChildCompleted
		case l.Status == loop.Cancelled:
			status = ticket.ChildCancelled
		case l.ReasonCode == loop.ReasonWallTime:
			status = ticket.ChildTimedOut
		}
	}
	if proof == nil {
		written, err := ticket.DecodeStop([]byte(head.Child.Metadata[ticket.MetaOwnedStop]))
		if err == nil && written.Completed != (status == ticket.ChildCompleted) {
			if written.Completed {
				return ticket.ChildCompleted
			}
			return ticket.ChildFailed
		}
	}
	return status
}
