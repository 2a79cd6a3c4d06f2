//go:build unix

package wasm

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/tetratelabs/wazero/experimental"
)

// newLinear reserves address space for most bytes and takes memory for what is
// used only: a Go guest needs half of what it takes on the Go heap, growing
// copies nothing, and freed memory is back with the system at once.
func newLinear(most uint64) experimental.LinearMemory {
	page := uint64(os.Getpagesize())
	most = (most + page - 1) &^ (page - 1)
	if most == 0 || most > 1<<32 {
		return &slab{}
	}
	b, err := unix.Mmap(-1, 0, int(most), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return &slab{} // no address space left; the heap may still do
	}
	return &mapped{all: b, page: page}
}

// mapped is linear memory of its own mapping. The address never changes.
type mapped struct {
	all  []byte
	open uint64 // bytes from the start that can be used; whole pages
	page uint64
}

// Reallocate opens more of the reserved space; the kernel hands it out zeroed.
func (m *mapped) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	want := (size + m.page - 1) &^ (m.page - 1)
	if want > m.open {
		if err := unix.Mprotect(m.all[m.open:want], unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return nil
		}
		m.open = want
	}
	return m.all[:size:m.open]
}

// Free unmaps.
func (m *mapped) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all) // fails only for a range that isn't ours
		m.all = nil
	}
}
