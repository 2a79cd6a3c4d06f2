package meter_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// inTurns runs the same export plain and metered, one after the other so that a
// busy machine hits both, and reports the ratio of the medians.
func inTurns(b *testing.B, wasm []byte, work map[string][]uint64) {
	ctx := context.Background()
	var asked int
	rt := newRuntime(b, 1024, func(ctx context.Context, _ int64) int64 {
		if asked++; ctx.Err() != nil {
			return meter.Refuse
		}
		return meter.Quantum
	})
	plain, metered := instantiate(b, rt, wasm), instantiate(b, rt, rewrite(b, wasm))
	for export, args := range work {
		b.Run(export, func(b *testing.B) {
			run := func(mod api.Module) time.Duration {
				start := time.Now()
				if _, err := mod.ExportedFunction(export).Call(ctx, args...); err != nil {
					b.Fatal(err)
				}
				return time.Since(start)
			}
			run(plain)
			run(metered)
			var floor, cost []time.Duration
			asked = 0
			for b.Loop() {
				floor = append(floor, run(plain))
				cost = append(cost, run(metered))
			}
			b.ReportMetric(float64(median(cost))/float64(median(floor)), "metered/plain")
			refills := float64(max(asked, 1)) / float64(len(cost))
			b.ReportMetric(float64(median(cost))/1e3/refills, "µs/refill")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkGoGuest is what plugins do.
func BenchmarkGoGuest(b *testing.B) {
	inTurns(b, goGuest(b), map[string][]uint64{"json_round_trips": {20}, "hashes": {100}, "sorts": {20}})
}

// BenchmarkWorstCase is code of nothing but checks: a loop that counts to ten
// million, and a tree of two million calls that do nothing else.
func BenchmarkWorstCase(b *testing.B) {
	count := sized(cat(op(1, 1, i32), constI32(10_000_000), op(localSet, 0, loop, void),
		op(localGet, 0), constI32(-1), op(0x6a, localTee, 0, brIf, 0, end, end)))
	b.Run("loop", func(b *testing.B) { inTurns(b, program(count), map[string][]uint64{"f0": nil}) })
	b.Run("calls", func(b *testing.B) { inTurns(b, program(tree(20)...), map[string][]uint64{"f0": nil}) })
}

// BenchmarkRewrite measures the pass itself over a Go guest, and how much longer
// the engine takes to compile what comes out.
func BenchmarkRewrite(b *testing.B) {
	guest := goGuest(b)
	out := rewrite(b, guest)
	b.Run("rewrite", func(b *testing.B) {
		b.SetBytes(int64(len(guest)))
		for b.Loop() {
			rewrite(b, guest)
		}
		b.ReportMetric(float64(len(out))/float64(len(guest)), "bytes-out/in")
	})
	b.Run("compile", func(b *testing.B) {
		compile := func(wasm []byte) time.Duration {
			ctx := context.Background()
			rt := wazero.NewRuntime(ctx)
			start := time.Now()
			if _, err := rt.CompileModule(ctx, wasm); err != nil {
				b.Fatal(err)
			}
			took := time.Since(start)
			if err := rt.Close(ctx); err != nil {
				b.Fatal(err)
			}
			return took
		}
		var floor, cost []time.Duration
		for b.Loop() {
			floor = append(floor, compile(guest))
			cost = append(cost, compile(out))
		}
		b.ReportMetric(float64(median(cost))/float64(median(floor)), "metered/plain")
	})
}
