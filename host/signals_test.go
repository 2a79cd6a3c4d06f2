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
