package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// What was raised before the provider answered counts before its answer does,
// however close the two are. Each is tried often, because the order in which the
// host hears of two things at once is a matter of scheduling.
func TestASignalRaisedBeforeTheAnswerCountsBeforeIt(t *testing.T) {
	const tries = 400
	for range tries {
		r := newRig(t, nil)
		s := r.open("s")
		p := &script{answers: []any{func(context.Context) (pluginapi.Message, error) {
			return say("a"), s.Stop("enough")
		}}}
		spec := r.spec(p, 2, 2)
		var seen loop.Status
		spec.Hooks = []plugin.Hook{hook("watch", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
			seen = s.Snapshot().Head.Loop.Status
			return pluginapi.Decision{Action: pluginapi.Continue}
		})}
		if _, err := s.Run(context.Background(), spec); err != nil {
			t.Fatal(err)
		}
		if seen != loop.Stopped {
			t.Fatalf("the after-round hook saw %s, want stopped: the stop came before the answer (L-10)", seen)
		}
	}
}

func TestACancelledContextCountsBeforeAnAnswerThatCameAfterIt(t *testing.T) {
	const tries = 400
	for range tries {
		r := newRig(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		p := &script{answers: []any{func(context.Context) (pluginapi.Message, error) {
			cancel()
			return say("a"), nil
		}}}
		_, err := r.open("s").Run(ctx, r.spec(p, 1, 1))
		cancel()
		if !errors.Is(err, host.ErrCancelled) {
			t.Fatalf("got %v, want ErrCancelled: the cancel came before the answer (L-17)", err)
		}
	}
}

func TestAContextThatEndsDuringACommitCancelsTheRun(t *testing.T) {
	tests := []struct {
		name  string
		at    loop.Checkpoint
		calls int64
	}{
		{"at the start", loop.CheckpointStart, 0},
		{"at the admission", loop.CheckpointAdmission, 0},
		{"at the boundary", loop.CheckpointBoundary, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			p := &script{answers: []any{say("a")}}
			spec := r.spec(p, 1, 1)
			spec.Observer = func(e host.Event) {
				r.observe(e)
				if e.Checkpoint != nil && e.Checkpoint.Name == string(tt.at) {
					cancel()
				}
			}
			_, err := r.open("s").Run(ctx, spec)
			if !errors.Is(err, host.ErrCancelled) || p.calls.Load() != tt.calls {
				t.Errorf("got %v after %d provider calls, want ErrCancelled after %d (L-17)", err, p.calls.Load(), tt.calls)
			}
			if n := r.count(host.EventComplete); n != 0 {
				t.Errorf("got %d Complete events, want 0", n)
			}
		})
	}
}

// A hook that rewrites the objective decides before the loop is started (its
// original is never stored); signals reach the run there, too.
func TestASignalReachesTheHooksThatRunAheadOfTheStart(t *testing.T) {
	tests := []struct {
		name    string
		signal  func(*host.Session, context.CancelFunc) error
		started bool
		err     error
		status  loop.Status
	}{
		{"a cancel", func(s *host.Session, _ context.CancelFunc) error { return s.Cancel("enough") }, false, host.ErrCancelled, ""},
		{"the caller's context", func(_ *host.Session, cancel context.CancelFunc) error { cancel(); return nil }, false, host.ErrCancelled, ""},
		{"a stop, which lets the hook finish", func(s *host.Session, _ context.CancelFunc) error { return s.Stop("enough") }, true, nil, loop.Stopped},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			s := r.open("s")
			before := r.raw("s")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			p := &script{answers: []any{say("a")}}
			spec := r.spec(p, 1, 1)
			spec.Hooks = []plugin.Hook{plugin.FuncHook{
				Name: "slow", Decls: []pluginapi.HookDecl{{Point: pluginapi.BeforePrompt, Mutates: true}},
				Fn: func(ctx context.Context, _ plugin.Session, _ *pluginapi.HookInput) (pluginapi.Decision, error) {
					if err := tt.signal(s, cancel); err != nil {
						return pluginapi.Decision{}, err
					}
					if !tt.started {
						<-ctx.Done()
						return pluginapi.Decision{}, ctx.Err()
					}
					return pluginapi.Decision{Action: pluginapi.Continue}, nil
				},
			}}
			res, err := s.Run(ctx, spec)
			if !errors.Is(err, tt.err) || res.Status != tt.status || p.calls.Load() != 0 {
				t.Errorf("got %q and %v after %d provider calls, want %q and %v after none", res.Status, err, p.calls.Load(), tt.status, tt.err)
			}
			if wrote := r.raw("s") != before; wrote != tt.started {
				t.Errorf("something was written: %v, want %v", wrote, tt.started)
			}
		})
	}
}
