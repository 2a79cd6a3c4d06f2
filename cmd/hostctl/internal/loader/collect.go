package loader

import (
	"runtime/debug"
	"sync"
)

const (
	usual   = 100 // GOGC where nobody set it
	patient = 400
)

// collectLess lets the heap grow further before the garbage collector runs: what a
// start from the cache allocates stays, and three collections in its 200 ms found
// nothing to speak of. Where an operator set GOGC, that stands. resume ends it, and
// may be called more than once, by several goroutines: compiling makes garbage by the
// hundred megabytes.
func collectLess() (resume func()) {
	before := debug.SetGCPercent(patient)
	if before != usual {
		debug.SetGCPercent(before)
		return func() {}
	}
	return sync.OnceFunc(func() { debug.SetGCPercent(usual) })
}
