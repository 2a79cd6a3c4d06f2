package child

import (
	"context"
	"errors"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

// Run does an assignment from its dispatch to its result: Prepare, Track, Execute,
// Save, Checkpoint, Finish. ctx is the coordinator: its end cancels the child, and what
// is to be written then is written all the same. A step whose store can't be reached is
// tried again for as long as ctx lasts, and once after its end.
//
// The outcome is how the child's run ended. An error says that not all of it is
// published; Recover, here or on another worker, goes on from what is durable.
func (r *Runner) Run(ctx context.Context, assignment string, w Work) (Outcome, error) {
	t, err := r.Prepare(ctx, assignment)
	if err != nil {
		return Outcome{}, err
	}
	if err := t.Track(ctx.Done()); err != nil {
		return Outcome{}, errors.Join(err, t.Abandon(context.WithoutCancel(ctx)))
	}
	err = t.complete(ctx, w)
	if host.IsFenced(err) {
		err = errors.Join(err, t.end(context.WithoutCancel(ctx)))
		if _, rerr := r.Recover(context.WithoutCancel(ctx), assignment); rerr == nil {
			return t.Outcome(), nil
		}
	}
	return t.Outcome(), err
}

// complete takes the steps behind Prepare and Track.
func (t *Task) complete(ctx context.Context, w Work) error {
	durable := context.WithoutCancel(ctx)
	if err := t.Execute(ctx, w); err != nil {
		if err := again(ctx, err, func() error { return t.Conclude(durable) }); err != nil {
			return errors.Join(err, t.Abandon(durable))
		}
	}
	steps := []func() error{
		func() error { return t.Save(durable) },
		func() error { _, _, err := t.Checkpoint(durable); return unless(settled, err) },
	}
	for _, step := range steps {
		if err := again(ctx, step(), step); err != nil {
			return errors.Join(err, t.Abandon(durable))
		}
	}
	return t.Finish(durable)
}

// settled reports whether err says that there is no result and never will be (T-13).
func settled(err error) bool { return errors.Is(err, ticket.InvalidTransition) }

func unless(is func(error) bool, err error) error {
	if is(err) {
		return nil
	}
	return err
}

// Waits between two attempts at a step.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 5 * time.Second
)

// again repeats a step that failed with err for as long as the store may come back and
// ctx lasts, and once more after its end.
func again(ctx context.Context, err error, step func() error) error {
	for wait := firstWait; err != nil && passing(err); wait = min(2*wait, lastWait) {
		last := ctx.Err() != nil
		pause(ctx, wait)
		err = step()
		if last {
			break
		}
	}
	return err
}

// passing reports whether the store may answer otherwise later.
func passing(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, ticket.RevisionConflict) || errors.Is(err, context.DeadlineExceeded)
}
