package meter_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// Both halves share the engine and its compiled guest, which takes seconds.
func TestAMeteredGoGuest(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	spinning, refused := false, 0
	rt := newRuntime(t, 1024, func(ctx context.Context, _ int64) int64 {
		if ctx.Err() != nil {
			refused++
			return meter.Refuse
		}
		if spinning {
			cancel()
		}
		return meter.Quantum
	})
	guest := goGuest(t)
	out := rewrite(t, guest)
	if len(out) > len(guest)+len(guest)/10 {
		t.Errorf("got %d bytes for %d, want at most a tenth more", len(out), len(guest))
	}
	plain, metered := instantiate(t, rt, guest), instantiate(t, rt, out)

	t.Run("answers like the original", func(t *testing.T) {
		for _, c := range []struct {
			export string
			arg    uint64
		}{
			{"json_round_trips", 1}, {"json_round_trips", 50}, {"hashes", 200}, {"sorts", 20}, {"recovers", 2}, {"recovers", 9},
		} {
			want, err := plain.ExportedFunction(c.export).Call(ctx, c.arg)
			if err != nil {
				t.Fatal(err)
			}
			got, err := metered.ExportedFunction(c.export).Call(ctx, c.arg)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s(%d) = %v, %v, want %v", c.export, c.arg, got, err, want)
			}
		}
	})
	t.Run("is ended by one refusal when it spins and the context is cancelled", func(t *testing.T) {
		spinning = true
		if _, err := metered.ExportedFunction("spin").Call(ctx); cause(err) != "unreachable" {
			t.Errorf("got %v, want the trap that ends a refused guest", err)
		}
		if refused != 1 {
			t.Errorf("the host refused %d times, want once: the guest must not run on", refused)
		}
	})
}
