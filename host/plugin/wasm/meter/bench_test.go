package meter_test

import (
	"context"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// BenchmarkGoGuest runs the same work plain and metered, in turns so that a busy
// machine hits both, and reports how much more time the metered one took.
func BenchmarkGoGuest(b *testing.B) {
	ctx := context.Background()
	var asked int
	rt := newRuntime(b, 1024, func(ctx context.Context, _ int64) int64 {
		if asked++; ctx.Err() != nil {
			return meter.Refuse
		}
		return meter.Quantum
	})
	guest := goGuest(b)
	plain, metered := instantiate(b, rt, guest), instantiate(b, rt, rewrite(b, guest))
	for _, work := range []struct {
		export string
		n      uint64
	}{{"json_round_trips", 20}, {"hashes", 100}, {"sorts", 20}} {
		b.Run(work.export, func(b *testing.B) {
			run := func(mod api.Module) time.Duration {
				start := time.Now()
				if _, err := mod.ExportedFunction(work.export).Call(ctx, work.n); err != nil {
					b.Fatal(err)
				}
				return time.Since(start)
			}
			run(plain)
			run(metered)
			var floor, cost time.Duration
			asked = 0
			for b.Loop() {
				floor += run(plain)
				cost += run(metered)
			}
			b.ReportMetric(float64(cost)/float64(floor), "metered/plain")
			b.ReportMetric(float64(asked)/cost.Seconds()/1000, "refills/ms")
		})
	}
}

// BenchmarkRewrite measures the pass itself over a Go guest.
func BenchmarkRewrite(b *testing.B) {
	guest := goGuest(b)
	b.SetBytes(int64(len(guest)))
	var out []byte
	for b.Loop() {
		out = rewrite(b, guest)
	}
	b.ReportMetric(float64(len(out))/float64(len(guest)), "bytes-out/in")
}
