package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func nthLoopCases() []Case {
	return []Case{
		inLoop("L-20/nth-call-fails-before", "Whichever store call of a run fails before the store did it, there is no Complete event without a durable ending, and a checkpoint makes the store equal to memory.", nthCallOfRun(Before)),
		inLoop("L-20/nth-call-fails-after", "Whichever store call of a run fails after the store did it, there is no Complete event without a durable ending, and a checkpoint makes the store equal to memory.", nthCallOfRun(After)),
		inLoop("L-19/nth-commit-unknown", "Whichever commit of a run has an unknown outcome, the run ends as if it had not.", nthCommitOfRun),
	}
}

// longRun is a run with three iterations, tools and hooks.
func longRun(r *loopRig) (host.RunSpec, *model) {
	m := &model{answer: asksThenAnswers}
	spec := r.spec(m, 3, 6)
	spec.Tools = []plugin.Tool{workTool(new(counter), nil)}
	spec.Hooks = []plugin.Hook{afterRound(new(counter), goOn), plugin.FuncHook{
		Name: "guard", Decls: []pluginapi.HookDecl{{Point: pluginapi.BeforeTool}, {Point: pluginapi.BeforeFinalize}},
		Fn: func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
			return pluginapi.Decision{Action: pluginapi.Allow}, nil
		},
	}}
	return spec, m
}

var longWhole = wholeAs(loop.Completed, "", counts{3, 3, 6}, 6, 3, 6)

func nthCallOfRun(when When) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		for n, more := 1, true; more; n++ {
			var err error
			if more, err = failNth(ctx, e, n, when); err != nil {
				return failf("call %d fails %s: %w", n, when, err)
			}
		}
		return nil
	}
}

// failNth runs a session whose n-th store call fails, and checks what must be
// true whatever it was. more is false once the run has fewer calls than n.
func failNth(ctx context.Context, e *Env, n int, when When) (more bool, err error) {
	rig, err := e.loop(ctx, fmt.Sprintf("%s-%d", word(when), n), never)
	if err != nil {
		return false, err
	}
	// Watching for signals and renewing the lease go on beside the run, at no fixed place in it.
	inOrder := func(c Call) bool { return c.Op != OpWatch && c.Op != OpRenew && c.Op != OpLoad }
	rig.faulty.Inject(Fault{Nth: n, Match: inOrder, When: when, Err: definite()})
	s, err := rig.host.Open(ctx, host.OpenRequest{ID: rig.id})
	if err == nil {
		if err := afterFailure(ctx, rig, s); err != nil {
			return false, errors.Join(err, s.Close(ctx))
		}
		_ = s.Close(ctx) // it may be the call that fails: the next owner takes the session over then
	}
	more = rig.faulty.Struck() > 0
	return more, recovered(ctx, rig)
}

// afterFailure runs the loop and checks what its end promises.
func afterFailure(ctx context.Context, rig *loopRig, s *host.Session) error {
	spec, _ := longRun(rig)
	_, runErr := s.Run(ctx, spec)
	memory := s.Snapshot().Head
	complete := rig.count(host.EventComplete)
	if (runErr == nil) != (complete == 1) {
		return failf("Complete events: got %d of a run that ended with %w", complete, orNone(runErr))
	}
	if runErr == nil {
		return errors.Join(
			wantLoop("memory", memory, longWhole.status, longWhole.runtime, longWhole.counts),
			rig.wantStored(ctx, "the store of a run that completed", memory))
	}
	rig.faulty.Heal()
	return errors.Join(
		wantOK("an explicit checkpoint", s.Checkpoint(ctx)),
		wantSameLoop("memory after it", s.Snapshot().Head, memory),
		rig.wantStored(ctx, "the store after it", memory),
		rig.wantOnceEach(ctx),
	)
}

// recovered opens the session as its next owner and runs a new loop in it.
func recovered(ctx context.Context, rig *loopRig) error {
	rig.faulty.Heal()
	s, err := rig.host.Open(ctx, host.OpenRequest{ID: rig.id, Force: true})
	if err != nil {
		return failf("the next owner opens the session: want success, got %w", err)
	}
	spec, _ := longRun(rig)
	spec.NewLoop = true
	spec.Observer = nil
	_, err = s.Run(ctx, spec)
	return errors.Join(
		wantOK("the next owner's run", err),
		rig.wantStored(ctx, "the store after the next owner's run", s.Snapshot().Head),
		rig.wantOnceEach(ctx),
		wantOK("close", s.Close(ctx)),
	)
}

func nthCommitOfRun(ctx context.Context, e *Env) error {
	for _, when := range []When{Before, After} {
		for n, more := 1, true; more; n++ {
			rig, s, done, err := e.opened(ctx, fmt.Sprintf("unknown-%s-%d", word(when), n), never)
			if err != nil {
				return err
			}
			rig.faulty.Inject(Fault{Op: OpCommit, Nth: n, When: when, Err: unknown()})
			spec, m := longRun(rig)
			_, err = s.Run(ctx, spec)
			more = rig.faulty.Struck() > 0
			err = errors.Join(
				wantOK("the run", err),
				wantEqual("provider calls", m.count(), longWhole.calls),
				wantEqual("Complete events", rig.count(host.EventComplete), 1),
				wantLoop("memory", s.Snapshot().Head, longWhole.status, longWhole.runtime, longWhole.counts),
				rig.wantStored(ctx, "the store", s.Snapshot().Head),
				rig.wantOnceEach(ctx),
			)
			done()
			if err != nil {
				return failf("commit %d of unknown outcome, failed %s: %w", n, when, err)
			}
		}
	}
	return nil
}
