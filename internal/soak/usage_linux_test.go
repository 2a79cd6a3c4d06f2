package soak_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// usage is what the process holds.
type usage struct {
	Goroutines  int
	Descriptors int
	Mappings    int   // a guest's memory is at least one
	RSS         int64 // bytes
}

// measure gives back what nobody uses any more and counts the rest.
func measure(t testing.TB) usage {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return usage{runtime.NumGoroutine(), len(fds), strings.Count(string(maps), "\n"), kb << 10}
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d mappings, %.1f MiB", u.Goroutines, u.Descriptors, u.Mappings, float64(u.RSS)/(1<<20))
}

// startPoller makes the Go runtime open its two descriptors for polling, which a
// process keeps to its end.
func startPoller(t testing.TB) {
	t.Helper()
	r, w, err := os.Pipe()
	if err == nil {
		err = errors.Join(r.Close(), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// descriptors names what is open.
func descriptors(t testing.TB) (names []string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil { // not the one that listed them
			names = append(names, name)
		}
	}
	return names
}
