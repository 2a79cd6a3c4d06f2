package child

import (
	"context"
	"errors"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

// Prepare makes the child session of an assignment that waits for its dispatch, or
// finds it again by its key, claims its actor and admits the run (life cycle, rows 2
// to 5). The Task owns the session until Finish or Abandon. Nothing of the agent has
// run when it returns. Errors:
//
//   - ticket.ResourceBlocked: another worker holds the child.
//   - ticket.InvalidTransition: the assignment waits for no dispatch any more.
//   - ticket.RevisionConflict: the contract or the authority moved on.
//   - ticket.ScopeDenied: the session of that id is no child of this assignment.
//   - store errors. The dispatch may be tried again after each.
func (r *Runner) Prepare(ctx context.Context, assignment string) (*Task, error) {
	const op = "prepare"
	state, err := r.scope.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	a, ok := state.Assignment(assignment)
	switch {
	case !ok:
		return nil, refuse(op, assignment, ticket.ScopeDenied, nil, "there is no such assignment in this scope")
	case a.State != ticket.DispatchPending:
		return nil, refuse(op, assignment, ticket.InvalidTransition, nil, "the assignment is %s; only one that is %s can be prepared", a.State, ticket.DispatchPending)
	}
	spec, err := state.Dispatch(assignment)
	if err != nil {
		return nil, err
	}
	root, err := r.rootOf(ctx, spec.Binding.SupervisorSessionID)
	if err != nil {
		return nil, err
	}
	dispatch, err := state.ChildDispatch(assignment, root)
	if err != nil {
		return nil, err
	}
	session, err := r.ensure(ctx, dispatch)
	if err != nil {
		return nil, err
	}
	t := &Task{
		runner: r, session: session, spec: spec, dispatch: dispatch, epoch: a.AuthorityEpoch,
		ended: make(chan struct{}), joined: make(chan struct{}), published: make(chan struct{}),
	}
	if err := r.add(t); err != nil {
		return nil, errors.Join(err, session.Close(context.WithoutCancel(ctx)))
	}
	if err := t.admit(ctx); err != nil {
		return nil, errors.Join(err, t.Abandon(context.WithoutCancel(ctx)))
	}
	return t, nil
}

// rootOf is the session at the top of the supervisor's line. A supervisor that has no
// session in the store is the top itself.
func (r *Runner) rootOf(ctx context.Context, supervisor string) (string, error) {
	view, err := r.host.Show(ctx, supervisor)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return supervisor, nil
	case err != nil:
		return "", err
	case view.Head.Child != nil:
		return view.Head.Child.Root, nil
	default:
		return supervisor, nil
	}
}

// ensure opens the child session, which it makes first where there is none.
func (r *Runner) ensure(ctx context.Context, want ticket.ChildDispatch) (*host.Session, error) {
	document, err := want.Encode()
	if err != nil {
		return nil, err
	}
	id := ticket.ChildSessionID(want.DispatchKey)
	s, err := r.host.Open(ctx, host.OpenRequest{ID: id, Child: &host.Child{
		Parent: want.Binding.SupervisorSessionID, Root: want.RootSessionID, Status: ticket.ChildRunning,
		Metadata: map[string]string{ticket.MetaDispatch: document},
	}})
	if errors.Is(err, store.ErrBusy) {
		return nil, refuse("prepare", want.Assignment, ticket.ResourceBlocked, err, "another worker holds the child session")
	}
	if err != nil {
		return nil, err
	}
	if err := dispatchedTo(s.Snapshot().Head, want); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// dispatchedTo refuses a session that was made for something else, or that has run.
func dispatchedTo(head host.Head, want ticket.ChildDispatch) error {
	const op = "prepare"
	if head.Child == nil {
		return refuse(op, want.Assignment, ticket.ScopeDenied, nil, "the session of its id is no child")
	}
	have, err := ticket.DecodeChildDispatch([]byte(head.Child.Metadata[ticket.MetaDispatch]))
	if err != nil {
		return err
	}
	have.Receipt, have.ChildBirth = nil, "" // of a run that was prepared and never admitted
	switch {
	case have != want || head.Child.Parent != want.Binding.SupervisorSessionID || head.Child.Root != want.RootSessionID:
		return refuse(op, want.Assignment, ticket.ScopeDenied, nil, "the session of its id is another assignment's child")
	case head.Loop != nil:
		return refuse(op, want.Assignment, ticket.ScopeDenied, nil, "its child has run, though no run was admitted")
	}
	return nil
}

// admit is rows 4 and 5: the run in the child's own record, then in the scope.
func (t *Task) admit(ctx context.Context) error {
	s := t.session
	prepared, err := t.dispatch.Prepared(s.ExecutionID(), s.ID(), s.Birth().String())
	if err != nil {
		return err
	}
	document, err := prepared.Encode()
	if err != nil {
		return err
	}
	err = s.UpdateChild(ctx, func(c *host.Child) error {
		// What an earlier run left behind was of one that was never admitted.
		c.Metadata = map[string]string{ticket.MetaDispatch: document}
		c.Worker, c.Status = t.runner.self, ticket.ChildRunning
		c.Actor, err = t.runner.claim(c.Actor, t.dispatch.DispatchKey, s.ExecutionID())
		return err
	})
	if err != nil {
		return err
	}
	t.dispatch = prepared
	request, err := prepared.Admit(t.epoch)
	if err != nil {
		return err
	}
	t.sent = true
	if _, err = t.runner.do(ctx, request.Operation(), request); err == nil {
		t.admitted = true
	} else if _, refused := errors.AsType[*ticket.Error](err); refused {
		t.sent = false
	}
	return err
}
