//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package disk

import (
	"errors"
	"os"
)

// Supported says that this system lacks the locks that the backend needs.
const Supported = false

// TryLock answers errors.ErrUnsupported.
func TryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

// Locked answers errors.ErrUnsupported.
func Locked(*os.File) (bool, error) { return false, errors.ErrUnsupported }

// Unlock answers errors.ErrUnsupported.
func Unlock(*os.File) error { return errors.ErrUnsupported }
