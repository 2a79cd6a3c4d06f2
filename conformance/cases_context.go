package conformance

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/loophost/loophost/host/store"
)

func contextCases() []Case {
	return []Case{
		core("S-9/cancelled-before", "A call with a cancelled context changes nothing and returns the context's error.", cancelledBefore),
		core("S-9/deadline-before", "A call whose deadline has passed changes nothing and returns the context's error.", deadlineBefore),
		core("S-9/cancelled-during", "A commit whose context ends while it runs is applied, or certainly not applied, or of unknown outcome and can be resolved.", cancelledDuring),
	}
}

func cancelledBefore(ctx context.Context, e *Env) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return endedBefore(ctx, ended, e, context.Canceled)
}

func deadlineBefore(ctx context.Context, e *Env) error {
	ended, cancel := context.WithDeadline(ctx, time.Unix(1, 0))
	defer cancel()
	return endedBefore(ctx, ended, e, context.DeadlineExceeded)
}

func endedBefore(ctx, ended context.Context, e *Env, want error) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("kept"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	check := func(what string, err error) error {
		if !errors.Is(err, want) {
			return failf("%s with an ended context: want %v, got %v", what, want, err)
		}
		if errors.Is(err, store.ErrUnknownOutcome) {
			return failf("%s with an ended context: want a certain outcome, got %v", what, err)
		}
		return nil
	}
	var bad []error
	for _, c := range append(a.calls(), a.keyless()...) {
		bad = append(bad, check(c.name, c.do(ended, s)))
		if c.writes {
			bad = append(bad, expectUntouched(ctx, s, c.name+" with an ended context", a.key, before))
		}
	}
	_, err = s.Create(ended, e.Key("unmade"), store.Commit{ID: e.UUID(), Head: []byte("h")})
	bad = append(bad, check("create of a new record", err))
	_, err = s.Load(ctx, e.Key("unmade"))
	bad = append(bad, wantKind("load what was not created", err, store.ErrNotFound))
	r, err := s.Load(ctx, a.key)
	return errors.Join(append(bad, wantOK("load", err), wantEqual("pending signals", len(r.Signals), 0), a.advance(ctx, 1))...)
}

func cancelledDuring(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("cut"))
	if err != nil {
		return err
	}
	for range 40 {
		before, err := a.look(ctx)
		if err != nil {
			return err
		}
		c := a.commit()
		yields := e.Rand.IntN(200)
		cut, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range yields {
				runtime.Gosched()
			}
			cancel()
		}()
		_, err = s.Commit(cut, a.key, a.fence, c)
		<-ended
		cancel()
		if err := settleCut(ctx, a, c, err, before); err != nil {
			return err
		}
	}
	return nil
}

// settleCut checks that the record is what the commit's answer allows.
func settleCut(ctx context.Context, a *actor, c store.Commit, answer error, before snapshot) error {
	after, err := a.look(ctx)
	if err != nil {
		return err
	}
	applied := after.record.LastCommitID == c.ID
	switch {
	case answer == nil:
		if err := wantEqual("a commit that was acknowledged is applied", applied, true); err != nil {
			return err
		}
	case errors.Is(answer, store.ErrUnknownOutcome):
		if !errors.Is(answer, context.Canceled) {
			return failf("an unknown outcome by a cancelled context: want an error that wraps the context's, got %v", answer)
		}
		out, err := a.s.Resolve(ctx, a.key, a.fence, c.ID)
		if err != nil {
			return failf("resolve after %v: want an answer, got %w", answer, err)
		}
		applied = out.Applied
	case errors.Is(answer, context.Canceled):
		if err := before.untouched("after a commit that returned the context's error", after); err != nil {
			return err
		}
	default:
		return failf("a commit whose context ends: want success, the context's error or an unknown outcome, got %v", answer)
	}
	if after, err = a.look(ctx); err != nil {
		return err
	}
	grown := 0
	if applied {
		grown = 1
	}
	a.mark = after.record.Mark
	return wantEqual("entries that came with the commit", len(after.log)-len(before.log), grown)
}
