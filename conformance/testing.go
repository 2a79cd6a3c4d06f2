package conformance

import (
	"context"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/store"
)

// SeedVariable is the environment variable by which Run takes its seed.
const SeedVariable = "CONFORMANCE_SEED"

// Run runs every case of every profile as a subtest: rule, then case. A case
// whose abilities are missing is skipped with the reason, and a run in which no
// case was executed fails. The seed is 1, or what CONFORMANCE_SEED says.
func Run(t *testing.T, h Harness) {
	o := Options{Profiles: Profiles()}
	if v := os.Getenv(SeedVariable); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("%s: want a number, got %q", SeedVariable, v)
		}
		o.Seed = seed
	}
	runCases(t, h, o.normal(), Cases())
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
