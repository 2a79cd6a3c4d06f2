package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	benchmark "github.com/loophost/loophost/internal/bench"
	"github.com/loophost/loophost/pluginapi"
)

// BenchmarkRounds measures rounds of whole loops, the provider in WebAssembly,
// with no hook and with one after-round hook in WebAssembly. The floor makes as
// many appends with one fdatasync each as the loop makes commits, of as many bytes,
// to one file for each session; x-floor is the time of the rounds by its time, and
// of-floor its inverse: rounds per second ÷ (floor's commits per second ÷ commits
// per round). On memory there is no such floor; there it is the same loops again,
// with a provider and a hook that cost nothing.
func BenchmarkRounds(b *testing.B) {
	plugins := loadPlugins(b)
	for _, backend := range []string{"fs", "memory"} {
		for _, hooks := range []int{0, 1} {
			for _, sessions := range []int{1, 16, 64} {
				b.Run(fmt.Sprintf("%s/hooks=%d/sessions=%d", backend, hooks, sessions), func(b *testing.B) {
					benchRounds(b, backend, plugins, hooks, sessions)
				})
			}
		}
	}
}

func benchRounds(b *testing.B, backend string, with benched, hooks, sessions int) {
	// As many as one loop may have of answers without tools: in a short loop the
	// commits of its start and its end would be a good part of what is measured.
	const rounds = loop.MaxIterations
	r := newBenchRig(b, backend)
	spec := with.spec(hooks, rounds)
	commits, size := perRound(b, spec)
	ours := r.loops("ours", spec, sessions)
	steps := rounds * sessions
	cpu, floorCPU := processorTime(b, steps, ""), processorTime(b, steps, "floor-")
	if backend == "memory" {
		bare := r.loops("bare", native.spec(hooks, rounds), sessions)
		benchmark.Turns(b, steps, func() error { return errors.Join(ours.open(), bare.open()) }, cpu(ours.run), floorCPU(bare.run))
		return
	}
	floor := appends(b, sessions, size)
	benchmark.Turns(b, steps, ours.open, cpu(ours.run), floorCPU(func(steps int) error { return floor(int(float64(steps) * commits)) }))
	b.ReportMetric(commits, "commits/round")
}

// processorTime reports the processor time of a step, the system's part included,
// as the median over the turns of the side that it wraps. Other work on the machine
// changes it much less than the time that passes. side is "" or "floor-".
func processorTime(b *testing.B, steps int, side string) func(benchmark.Side) benchmark.Side {
	b.Helper()
	var each []float64
	b.Cleanup(func() { b.ReportMetric(benchmark.Median(each), side+"cpu-µs/step") })
	return func(side benchmark.Side) benchmark.Side {
		return func(n int) error {
			before := processorUsed(b)
			err := side(n)
			each = append(each, float64(processorUsed(b)-before)/float64(time.Microsecond)/float64(steps))
			return err
		}
	}
}

func processorUsed(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRoundAge is the 10,000th round of a session, after ten loops, beside the
// 10th round of another.
func BenchmarkRoundAge(b *testing.B) {
	plugins := loadPlugins(b)
	var copied bytes.Buffer
	aged(b, &copied)
	for _, backend := range []string{"fs", "memory"} {
		b.Run(backend, func(b *testing.B) {
			const rounds = 100
			r := newBenchRig(b, backend)
			if err := func() error {
				_, err := r.host.Import(b.Context(), bytes.NewReader(copied.Bytes()), "old-0")
				return err
			}(); err != nil {
				b.Fatal(err)
			}
			spec := plugins.spec(1, rounds)
			old, young := r.loops("old", spec, 1), r.loops("young", spec, 1)
			old.same = true
			benchmark.Turns(b, rounds, func() error { return errors.Join(old.open(), young.open()) }, old.run, young.run)
		})
	}
}

// aged writes a session of 10,000 rounds, each with a tool call.
func aged(b *testing.B, to *bytes.Buffer) {
	b.Helper()
	const perLoop = 1_000
	r := newBenchRig(b, "memory")
	calls := new(atomic.Int64)
	p := plugin.FuncProvider{Name: "aging", Fn: func(context.Context, plugin.Session, *plugin.Request, func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
		if calls.Add(1)%perLoop == 0 {
			return &pluginapi.ProviderResult{Message: say(benchAnswer), Finish: pluginapi.FinishStop}, nil
		}
		return &pluginapi.ProviderResult{Message: useTool("echo", `{"a":"few words"}`), Finish: pluginapi.FinishToolCalls}, nil
	}}
	spec := host.RunSpec{Objective: "grow old", Iterations: 1, Rounds: perLoop, Provider: p, Tools: []plugin.Tool{echoTool(new(atomic.Int64))}}
	for range 10 {
		l := r.loops("old", spec, 1)
		l.same = true
		if err := errors.Join(l.open(), l.run(0), l.close()); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.host.Export(b.Context(), "old-0", to); err != nil {
		b.Fatal(err)
	}
}
