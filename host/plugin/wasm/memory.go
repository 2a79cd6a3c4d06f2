package wasm

import (
	"context"

	"github.com/tetratelabs/wazero/experimental"
)

// withMemory makes an instance's memory ours, so that its limit is per plugin and
// a refused growth is noticed.
func (in *instance) withMemory(ctx context.Context) context.Context {
	in.p.booted.Add(1)
	limit := uint64(in.p.limits.MemoryPages) * pageSize
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		in.memory = &boundedMemory{in: in, limit: limit, mem: newLinear(min(most, limit))}
		return in.memory
	}))
}

// boundedMemory refuses to grow over a limit and says so to the call.
type boundedMemory struct {
	in    *instance
	limit uint64
	mem   experimental.LinearMemory
}

// Reallocate is nil over the limit: the guest sees memory.grow fail.
func (m *boundedMemory) Reallocate(size uint64) []byte {
	if size <= m.limit {
		if b := m.mem.Reallocate(size); b != nil {
			return b
		}
	}
	m.in.call.memoryRefused = true
	return nil
}

// Free gives the memory back; only a guest that is not running has it freed. A
// second time does nothing.
func (m *boundedMemory) Free() { m.mem.Free() }

// slab is linear memory on the Go heap.
type slab struct{ b []byte }

// Reallocate grows by copying.
func (s *slab) Reallocate(size uint64) []byte {
	if s.b != nil && size <= uint64(cap(s.b)) {
		s.b = s.b[:size]
		return s.b
	}
	b := make([]byte, size)
	copy(b, s.b)
	s.b = b
	return b
}

// Free lets the collector have it.
func (s *slab) Free() { s.b = nil }
