//go:build !linux

package conformance

import "os"

const flushName = "fsync"

func flush(f *os.File) error { return f.Sync() }
