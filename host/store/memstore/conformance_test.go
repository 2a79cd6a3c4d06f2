package memstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

// harness opens handles onto one Memory and moves its clock.
type harness struct {
	memory *memstore.Memory
	ahead  *atomic.Int64 // how far the store's clock is ahead of the machine's, in ns
}

func (h harness) Open(context.Context) (store.Store, error) { return h.memory.Open(), nil }

func (h harness) Environment(context.Context) (conformance.Environment, error) {
	return conformance.Environment{Name: "memory of the test process"}, nil
}

func (h harness) AdvanceLeases(d time.Duration) { h.ahead.Add(int64(d)) }

func newHarness() harness {
	ahead := new(atomic.Int64)
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	return harness{memstore.NewWith(memstore.Config{Clock: clock}), ahead}
}

func TestConformance(t *testing.T) { conformance.Run(t, newHarness()) }

func BenchmarkStore(b *testing.B) { conformance.Bench(b, newHarness()) }
