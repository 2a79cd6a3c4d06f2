package conformance

import (
	"context"
	"errors"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

func identityCases() []Case {
	type change = func(c *host.Child)
	stranger := func(name, words, says string, change change) Case {
		return inTickets("T-7/"+name, "A valid stop receipt in a child "+words+" is scope denied, and changes nothing.", func(ctx context.Context, e *Env) error {
			return strangeChild(ctx, e, says, change)
		})
	}
	return []Case{
		stranger("other-parent", "of another parent", "parent", func(c *host.Child) { c.Parent = "somebody else" }),
		stranger("other-root", "of another root", "root", func(c *host.Child) { c.Root = "somebody else" }),
		stranger("no-dispatch", "that holds no dispatch", ticket.MetaDispatch, func(c *host.Child) { delete(c.Metadata, ticket.MetaDispatch) }),
		stranger("unreadable-dispatch", "whose dispatch can't be read", ticket.MetaDispatch, func(c *host.Child) { c.Metadata[ticket.MetaDispatch] = "{" }),
		inTickets("T-7/other-run", "A result of a run that was not admitted is scope denied, and changes nothing.", otherRun),
		inTickets("T-7/child-gone", "Without its canonical child an assignment has no result and no stop: the authority is unavailable, and nothing changes.", childGone),
		inTickets("T-7/child-made-anew", "A child that was deleted and made again is another one: its receipt is scope denied, and changes nothing.", childMadeAnew),
		inTickets("T-7/not-saved", "A child whose final save is not there yet has its stop published, and no result until then.", notSaved),
		inTickets("T-14/another-machine", "A process that another machine ran, and one of another boot, proves nothing here: the authority is unavailable until a person confirms the stop.", func(ctx context.Context, e *Env) error {
			return errors.Join(elsewhere(ctx, e, "machine", processElsewhere), elsewhere(ctx, e, "worker", workerElsewhere))
		}),
	}
}

// strangeChild changes the identity of a child that left a valid receipt.
func strangeChild(ctx context.Context, e *Env, says string, change func(*host.Child)) error {
	a, err := e.admitted(ctx, "stranger", true)
	if err != nil {
		return err
	}
	if err := a.write(ctx); err != nil {
		return err
	}
	if err := a.session.UpdateChild(ctx, func(c *host.Child) error { change(c); return nil }); err != nil {
		return failf("write the child's record: want success, got %w", err)
	}
	return a.refusedResult(ctx, ticket.ScopeDenied, says)
}

// refusedResult checks that neither the stop nor the result is taken.
func (a *admission) refusedResult(ctx context.Context, kind ticket.Kind, says string) error {
	return errors.Join(
		a.refused(ctx, "the result checkpoint", kind, says, func() error { _, _, err := a.result(ctx); return err }),
		a.refused(ctx, "publishing the stop", kind, says, func() error { _, err := a.runner.PublishStop(ctx, a.assignment, a.run); return err }),
	)
}

func otherRun(ctx context.Context, e *Env) error {
	a, err := e.admitted(ctx, "other-run", true)
	if err != nil {
		return err
	}
	if err := a.write(ctx); err != nil {
		return err
	}
	admitted := a.run
	a.run = "another-run"
	if err := a.refusedResult(ctx, ticket.ScopeDenied, "another-run"); err != nil {
		return err
	}
	a.run = admitted
	_, ok, err := a.result(ctx)
	return errors.Join(wantOK("the result of the admitted run", err), wantEqual("it gave a result", ok, true))
}

func childGone(ctx context.Context, e *Env) error {
	a, err := e.admitted(ctx, "gone", true)
	if err != nil {
		return err
	}
	if err := errors.Join(a.write(ctx), a.remove(ctx)); err != nil {
		return err
	}
	return a.refusedResult(ctx, ticket.AuthorityUnavailable, "no child")
}

// remove deletes the child's session.
func (a *admission) remove(ctx context.Context) error {
	return wantOK("delete the child", errors.Join(a.session.Close(ctx), a.eyes.Delete(ctx, a.session.ID())))
}

func childMadeAnew(ctx context.Context, e *Env) error {
	a, err := e.admitted(ctx, "made-anew", true)
	if err != nil {
		return err
	}
	if err := a.write(ctx); err != nil {
		return err
	}
	same, err := a.child(ctx, a.session.ID())
	if err != nil {
		return err
	}
	if err := a.remove(ctx); err != nil {
		return err
	}
	s, err := a.eyes.Open(ctx, host.OpenRequest{ID: a.session.ID(), Child: &same})
	if err != nil {
		return failf("make the child again: want success, got %w", err)
	}
	return errors.Join(a.refusedResult(ctx, ticket.ScopeDenied, "birth"), wantOK("close it", s.Close(ctx)))
}

func notSaved(ctx context.Context, e *Env) error {
	o, err := e.executed(ctx, "not-saved")
	if err != nil {
		return err
	}
	return errors.Join(
		o.refused(ctx, "the result checkpoint before the final save", ticket.AuthorityUnavailable, "final save", func() error {
			_, _, err := o.task.Checkpoint(ctx)
			return err
		}),
		func() error { _, err := o.submit(ctx); return err }(),
		o.wantResult(ctx, false),
	)
}

// processElsewhere is a process child that another machine ran, in another boot.
func processElsewhere(c *host.Child) error {
	p := ticket.ProcessIdentity{PID: 1234, StartTime: 1, BootID: "another boot", ProcessGroup: 1234, HostName: "another machine"}
	text, err := p.Encode()
	c.Metadata[ticket.MetaProcessIdentity] = text
	return err
}

// workerElsewhere is a local task in a process of another machine.
func workerElsewhere(c *host.Child) error {
	c.Worker = &ticket.ProcessIdentity{PID: 1234, StartTime: 1, BootID: "another boot", ProcessGroup: 1234, HostName: "another machine"}
	return nil
}

// elsewhere leaves a child without receipt, whose run this machine can't see.
func elsewhere(ctx context.Context, e *Env, id string, change func(*host.Child) error) error {
	a, err := e.admitted(ctx, id, true)
	if err != nil {
		return err
	}
	err = a.session.UpdateChild(ctx, func(c *host.Child) error {
		c.Status = ticket.ChildRunning
		return change(c)
	})
	if err := errors.Join(err, a.session.Close(ctx)); err != nil {
		return failf("leave the child: want success, got %w", err)
	}
	key := store.SessionKey(a.session.ID())
	before, err := look(ctx, a.other, key)
	if err != nil {
		return err
	}
	refused := a.refused(ctx, "recovering it from here", ticket.AuthorityUnavailable, "another machine", func() error {
		_, err := a.runner.Recover(ctx, a.assignment)
		return err
	})
	after, err := look(ctx, a.other, key)
	if err != nil {
		return err
	}
	_, err = a.do(ctx, ada, ticket.ConfirmStopped{Assignment: a.assignment, Reason: "that machine is gone"})
	now, serr := a.scopeRig.assignment(ctx, a.assignment)
	return errors.Join(refused, serr,
		before.same("the child's record after it", after),
		wantOK("a person's word", err),
		wantEqual("process_stopped after it", now.ProcessStopped, true),
		wantEqual("submissions", a.scope.State().Counts().Submissions, 0),
	)
}
