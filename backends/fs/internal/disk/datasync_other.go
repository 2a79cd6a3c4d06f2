//go:build !linux

package disk

import "os"

// Sync is the strongest flush that a system without fdatasync offers; on macOS
// it also empties the drive's cache.
func datasync(f *os.File) error { return f.Sync() }
