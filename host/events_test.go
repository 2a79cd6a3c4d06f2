package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// What anybody reads later is what the run's observer got live: its durable
// events, then the terminal one.
func TestEventsReplayTheLiveStream(t *testing.T) {
	tests := []struct {
		name string
		spec func(*rig) host.RunSpec
		last host.EventType
	}{
		{"completed", func(r *rig) host.RunSpec {
			spec := r.spec(&script{answers: []any{useTool("echo", `{}`), say("a")}}, 2, 4)
			spec.Tools = []plugin.Tool{echoTool(new(atomic.Int64))}
			spec.Hooks = []plugin.Hook{hook("watch", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
				return pluginapi.Decision{Action: pluginapi.Inject, Text: "go on"}
			})}
			return spec
		}, host.EventComplete},
		{"failed", func(r *rig) host.RunSpec { return r.spec(&script{answers: []any{fails(pluginapi.FailAuth, 0)}}, 1, 1) }, host.EventFailed},
		{"stopped", func(r *rig) host.RunSpec {
			spec := r.spec(&script{answers: []any{say("a")}}, 2, 4)
			spec.Hooks = []plugin.Hook{hook("stopper", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
				return pluginapi.Decision{Action: pluginapi.Stop, Reason: "enough"}
			})}
			return spec
		}, host.EventComplete},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			s := r.open("s")
			_, _ = s.Run(context.Background(), tt.spec(r))
			replay := func(follow bool) []host.Event {
				t.Helper()
				var out []host.Event
				if err := r.host.Events(context.Background(), "s", 1, follow, func(e host.Event) error {
					out = append(out, e)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				return out
			}
			var live []host.Event
			for _, e := range r.events {
				if e.Seq != nil || e.Type.Terminal() {
					live = append(live, e)
				}
			}
			if held := replay(false); len(held) != len(live)-1 {
				t.Errorf("got %d events while the session is held, want the %d durable ones without an ending", len(held), len(live)-1)
			}
			if err := s.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			got := replay(true)
			if d := cmp.Diff(asJSON(t, live), asJSON(t, got)); d != "" {
				t.Errorf("replayed events differ (-live +replayed):\n%s", d)
			}
			last := got[len(got)-1]
			if last.Type != tt.last || last.Ending == nil || last.Seq != nil || last.Revision != r.record("s").Mark.Revision {
				t.Errorf("the last event is %+v, want %s of the record's revision", last, tt.last)
			}
			for i, e := range got {
				if e.SessionID != "s" || e.ExecutionID != s.ExecutionID() || e.Generation != s.Generation() || e.Revision == 0 {
					t.Errorf("event %d is %+v, want it to name session, execution, generation and revision", i, e)
				}
			}
		})
	}
}

func asJSON(t *testing.T, events []host.Event) []string {
	t.Helper()
	out := make([]string, len(events))
	for i, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(data)
	}
	return out
}

func TestEventsFollowALiveSessionToItsEnd(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("s")
	var got []host.EventType
	done := make(chan error, 1)
	go func() {
		done <- r.host.Events(context.Background(), "s", 1, true, func(e host.Event) error {
			got = append(got, e.Type)
			return nil
		})
	}()
	if _, err := s.Run(context.Background(), r.spec(&script{answers: []any{say("a")}}, 1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 || got[len(got)-1] != host.EventComplete {
		t.Errorf("got %v, want the stream up to complete", got)
	}
}

func TestEventsEndWithTheReaderOrItsContext(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("s")
	if _, err := s.Run(context.Background(), r.spec(&script{answers: []any{say("a")}}, 1, 1)); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if err := r.host.Events(context.Background(), "s", 1, true, func(host.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want the reader's error", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	err := r.host.Events(ctx, "s", 1, true, func(host.Event) error { return nil })
	if !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if err := r.host.Events(context.Background(), "none", 1, false, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestEventsSayThatAnOwnerIsLost(t *testing.T) {
	r := newRig(t, nil)
	head := host.NewHead(time.Now())
	head.Loop = &loop.State{
		SchemaVersion: loop.SchemaVersion, Generation: "00000000-0000-4000-8000-00000000000a", OwnerExecutionID: "00000000-0000-4000-8000-00000000000b",
		Revision: 3, Objective: "x", MaxIterations: 2, MaxTotalRounds: 2, IterationsStarted: 1, RoundsStarted: 1, Status: loop.Running,
	}
	head.Runtime = loop.Runtime{Status: loop.RuntimeRunning, ExecutionID: head.Loop.OwnerExecutionID}
	data, err := head.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Create(context.Background(), store.SessionKey("s"), store.Commit{ID: "00000000-0000-4000-8000-00000000000c", Head: data}); err != nil {
		t.Fatal(err)
	}
	none := func(e host.Event) error { t.Errorf("got an event %s", e.Type); return nil }
	if err := r.host.Events(context.Background(), "s", 1, true, none); !errors.Is(err, host.ErrOwnerLost) {
		t.Errorf("following it: got %v, want ErrOwnerLost", err)
	}
	if err := r.host.Events(context.Background(), "s", 1, false, none); err != nil {
		t.Errorf("reading it: %v", err)
	}
}
