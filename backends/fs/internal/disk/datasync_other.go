//go:build !linux

package disk

import (
	"errors"
	"os"
)

// Sync is the strongest flush that a system without fdatasync offers; on macOS
// it also empties the drive's cache.
func datasync(f *os.File) error { return f.Sync() }

// writeThrough answers errors.ErrUnsupported.
func writeThrough(*os.File, []byte, int64) (int, error) { return 0, errors.ErrUnsupported }
