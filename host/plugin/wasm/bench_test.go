package wasm

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// BenchmarkHook measures a warm hook call of a Go guest, and beside it the floor:
// the same guest code called by wazero directly, with the input in place and
// without limits. "floor-ns" is the floor and "x-floor" the ratio, from the
// medians of rounds that alternate, so that a busy machine slows both.
func BenchmarkHook(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			p := load(b, Config{}, Grants{}, nil)
			in := &pluginapi.HookInput{
				Point: pluginapi.BeforeTool, Session: session.Info,
				Document: append(append([]byte(`"`), bytes.Repeat([]byte("1"), size-2)...), '"'),
			}
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			hook := p.Hook()
			call := func() {
				if _, _, err := hook.Run(ctx, session, in); err != nil {
					b.Fatal(err)
				}
			}
			floor := directCalls(b, p, in)
			const round = 200
			var ours, theirs []time.Duration
			n := 0
			for b.Loop() {
				if n++; n%round == 0 {
					b.StopTimer()
					theirs = append(theirs, timed(round, floor))
					ours = append(ours, timed(round, call))
					b.StartTimer()
				}
				call()
			}
			if len(ours) > 0 {
				slices.Sort(ours)
				slices.Sort(theirs)
				o, f := ours[len(ours)/2], theirs[len(theirs)/2]
				b.ReportMetric(float64(f.Nanoseconds())/round, "floor-ns")
				b.ReportMetric(float64(o.Nanoseconds())/round, "median-ns")
				b.ReportMetric(float64(o)/float64(f), "x-floor")
			}
		})
	}
}

func timed(n int, f func()) time.Duration {
	start := time.Now()
	for range n {
		f()
	}
	return time.Since(start)
}

// directCalls calls the guest without lease, goroutine, timer, encoding and decoding.
func directCalls(b *testing.B, p *Plugin, in *pluginapi.HookInput) func() {
	b.Helper()
	i, err := p.start(b.Context(), time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(i.close)
	input := hookInput(in)
	return func() {
		i.call.begin(pluginapi.OpHook, input, p.limits)
		i.stack[0], i.stack[1] = uint64(pluginapi.OpHook), uint64(input.size)
		if err := i.fn.CallWithStack(i.ctx, i.stack[:]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProviderHistory shows that the length of the history is nothing to a
// guest that reads the start of the request only.
func BenchmarkProviderHistory(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n, "messages"), func(b *testing.B) {
			p, err := loadTiny(b, tiny{call: readStart()}, Config{}, Grants{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			m := pluginapi.Message{Role: pluginapi.RoleUser, Text: "a message of the usual length, more or less"}
			req := &plugin.Request{EncodedBytes: int64(n) * int64(len(encode(b, m)))}
			one := encode(b, m)
			for range n {
				req.Messages = append(req.Messages, m)
				req.Encoded = append(req.Encoded, one)
			}
			pr := p.Provider()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := pr.Complete(b.Context(), session, req, func(pluginapi.Chunk) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// readStart reads 64 bytes of the input and answers with a result chunk.
func readStart() []byte {
	result := `{"type":"result","finish":"stop"}   `
	body := join(ic(1024), ic(64), ic(0), callFn(fnInputRead), drop())
	for i := 0; i < len(result); i += 4 {
		word := int32(result[i]) | int32(result[i+1])<<8 | int32(result[i+2])<<16 | int32(result[i+3])<<24
		body = join(body, ic(int32(i)), ic(word), []byte{0x36, 0, 0})
	}
	return join(body, ic(0), ic(int32(len(result))), callFn(fnOutputWrite), ic(0))
}

// BenchmarkFreed measures how long after its deadline a caller is free, for each
// attack that has to be ended by the deadline; "late-ms" is the mean and
// "most-late-ms" the worst. At most 50 ms are promised.
func BenchmarkFreed(b *testing.B) {
	for _, a := range attacks() {
		if a.want != plugin.FaultTimeout {
			continue
		}
		for _, mode := range modes {
			if a.outlasts && !mode.metered {
				continue // no module that may run gets there; see docs/SANDBOX.md
			}
			b.Run(a.name+", "+mode.name, func(b *testing.B) {
				p := a.load(b, mode.metered, nil)
				var sum, worst time.Duration
				n := 0
				for b.Loop() {
					start := time.Now()
					if _, err := hook(b.Context(), p, "", ""); err == nil {
						b.Fatal("no fault")
					}
					late := time.Since(start) - attackLimit
					sum, worst, n = sum+late, max(worst, late), n+1
				}
				b.ReportMetric(sum.Seconds()*1000/float64(n), "late-ms")
				b.ReportMetric(worst.Seconds()*1000, "most-late-ms")
			})
		}
	}
}
