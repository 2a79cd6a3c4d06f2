package host_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/pluginapi"
)

// mostAllocated bounds what a round without hooks may allocate, the store in memory
// included, in bytes: half as much again as when this was written.
const mostAllocated = 20 << 10

// TestARoundCostsTheSameHoweverOldItsSessionIs counts bytes, since times depend on
// the machine: anything that walks, copies or encodes the history again for a round
// shows as many times the bytes in an old session.
func TestARoundCostsTheSameHoweverOldItsSessionIs(t *testing.T) {
	const perLoop, loops = 100, 24
	st := memstore.New().Open()
	defer st.Close()
	h, err := host.New(host.Config{Store: st, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var seen int
	p := plugin.FuncProvider{Name: "native", Fn: func(_ context.Context, _ plugin.Session, req *plugin.Request, _ func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
		seen = len(req.Messages)
		return &pluginapi.ProviderResult{Message: say("an answer of the usual length"), Finish: pluginapi.FinishStop}, nil
	}}
	spec := host.RunSpec{Objective: "do it", Iterations: perLoop, Rounds: perLoop, Provider: p}
	// allocated is how many bytes a round of the session's next loop allocates,
	// without opening, where the whole history is read.
	allocated := func() uint64 {
		s, err := h.Open(t.Context(), host.OpenRequest{ID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = s.Run(t.Context(), spec)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return (after.TotalAlloc - before.TotalAlloc) / perLoop
	}
	young := allocated()
	var old uint64
	for range loops {
		old = allocated()
	}
	t.Logf("%d bytes a round at first, %d after %d messages", young, old, seen)
	if young > mostAllocated {
		t.Errorf("a round allocates %d bytes, want at most %d", young, mostAllocated)
	}
	// The history's own slices grow by doubling, once in a while in a loop that is measured.
	if old > young+young/2 {
		t.Errorf("a round allocates %d bytes at first and %d after %d messages, want at most half as much again", young, old, seen)
	}
}
