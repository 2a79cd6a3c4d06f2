package conformance

import (
	"context"
	"flag"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/host/store"
)

// SeedVariable is the environment variable by which Run takes its seed.
const SeedVariable = "CONFORMANCE_SEED"

// Run runs every case of the given profiles, none: of all, as a subtest: rule, then
// case. A case whose abilities are missing is skipped with the reason, and a run in which no
// case was executed fails. The seed is 1, or what CONFORMANCE_SEED says.
func Run(t *testing.T, h Harness, profiles ...Profile) {
	if len(profiles) == 0 {
		profiles = Profiles()
	}
	o := Options{Profiles: profiles}
	if v := os.Getenv(SeedVariable); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("%s: want a number, got %q", SeedVariable, v)
		}
		o.Seed = seed
	}
	runCases(t, h, o.normal(), Cases(profiles...))
}

func runCases(t *testing.T, h Harness, o Options, cases []Case) {
	ctx := context.Background()
	report, err := newReport(ctx, h, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("store %s, durability %s (%s), environment %s, seed %d", report.Store.Name, report.Store.Durability, report.Store.Probe, report.Environment.Name, o.Seed)
	executed := 0
	for len(cases) > 0 {
		rule := cases[0].Rule()
		n := 1
		for n < len(cases) && cases[n].Rule() == rule {
			n++
		}
		group := cases[:n]
		cases = cases[n:]
		t.Run(rule, func(t *testing.T) {
			for _, c := range group {
				t.Run(strings.TrimPrefix(c.ID, rule+"/"), func(t *testing.T) {
					if runSubtest(t, h, report.Store, o, c) {
						executed++
					}
				})
			}
		})
	}
	// Under -run the testing package filters subtests; then nothing may be left here.
	if executed == 0 && !filtered() {
		t.Error("no case was executed")
	}
}

func runSubtest(t *testing.T, h Harness, d store.Description, o Options, c Case) (executed bool) {
	res := runCase(t.Context(), h, d, o, c)
	for _, n := range res.Notes {
		t.Log("note:", n)
	}
	switch res.Outcome {
	case Skipped:
		t.Skip(res.Reason)
	case Failed:
		t.Errorf("%s: %s\n%s\n(seed %d)", c.ID, c.Sentence, res.Reason, o.Seed)
	}
	return true
}

// filtered reports whether -run or -skip names subtests.
func filtered() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && strings.Contains(f.Value.String(), "/") {
			return true
		}
	}
	return false
}

// floorSteps is how often the floor is measured beside each workload.
const floorSteps = 200

// Bench measures the same workloads on every backend. Beside each that writes, it
// measures the floor with the same number of bytes in the same run, and reports
// how many floors one step costs ("x-floor").
func Bench(b *testing.B, h Harness) {
	ctx := b.Context()
	report, err := newReport(ctx, h, Options{}.normal())
	if err != nil {
		b.Fatal(err)
	}
	floor, err := floorOf(ctx, h)
	if err != nil {
		b.Fatal(err)
	}
	defer floor.Close()
	b.Logf("store %s, durability %s, floor: %s, GOMAXPROCS %d", report.Store.Name, report.Store.Durability, floor.Name, runtime.GOMAXPROCS(0))
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			e := newEnv(h, report.Store, Options{}.normal(), w.name)
			defer e.close(context.Background())
			step, err := w.start(ctx, e, w.bytes)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(w.bytes))
			for b.Loop() {
				if err := step(); err != nil {
					b.Fatal(err)
				}
			}
			if w.bytes > 0 {
				reportFloor(b, floor, w.bytes)
			}
		})
	}
}

// reportFloor measures the floor and reports the ratio to what b measured.
func reportFloor(b *testing.B, floor Floor, bytes int) {
	payload := filled(int64(bytes))
	start := time.Now()
	for range floorSteps {
		if err := floor.Do(payload); err != nil {
			b.Fatal(err)
		}
	}
	least := time.Since(start) / floorSteps
	b.ReportMetric(float64(least.Nanoseconds()), "floor-ns/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(least.Nanoseconds()), "x-floor")
}
