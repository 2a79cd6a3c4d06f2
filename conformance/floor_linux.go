package conformance

import (
	"os"

	"golang.org/x/sys/unix"
)

const flushName = "fdatasync"

// flush writes f's data to the disk, without metadata that reading doesn't need.
func flush(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
