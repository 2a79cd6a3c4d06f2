package conformance_test

import (
	"context"
	"fmt"
	"regexp"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

// memoryHarness is all that a backend writes to be checked.
type memoryHarness struct{ memory *memstore.Memory }

func (h memoryHarness) Open(context.Context) (store.Store, error) { return h.memory.Open(), nil }

func (h memoryHarness) Environment(context.Context) (conformance.Environment, error) {
	return conformance.Environment{Name: "memory of this process"}, nil
}

func ExampleCheck() {
	report, err := conformance.Check(context.Background(), memoryHarness{memstore.New()}, conformance.Options{
		Seed:  7,
		Match: regexp.MustCompile("^S-12/"), // births of deleted records
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Verdict, report.Profiles[0].Passed, "passed", report.Profiles[0].Failed, "failed")
	// Output: passed 7 passed 0 failed
}

func ExampleNewFaulty() {
	ctx := context.Background()
	faulty := conformance.NewFaulty(memstore.New().Open(), conformance.Fault{Op: conformance.OpCreate, When: conformance.After})
	s := faulty.Store()

	key := store.SessionKey("demo")
	first := store.Commit{ID: "5f0c3a52-7d0b-4a53-9f1e-0d9f3e0a7c11", Head: []byte("{}")}
	_, err := s.Create(ctx, key, first)
	fmt.Println(store.KindOf(err))
	ack, err := s.Create(ctx, key, first) // the same commit again
	fmt.Println(ack.Mark.Revision, err, faulty.Count(conformance.OpCreate))
	// Output:
	// unavailable
	// 1 <nil> 2
}
