//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package disk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Supported says that this system has the locks that the backend needs.
const Supported = true

// TryLock takes the exclusive lock of f's open file description, or answers
// false when another description holds it. It never waits.
func TryLock(f *os.File) (bool, error) { return try(f, unix.LOCK_EX) }

// Locked reports whether another description holds the exclusive lock of f. Two
// that ask at once do not see each other.
func Locked(f *os.File) (bool, error) {
	ok, err := try(f, unix.LOCK_SH)
	if ok {
		err = Unlock(f)
	}
	return !ok && err == nil, err
}

// Unlock gives the lock back.
func Unlock(f *os.File) error {
	if err := flock(f, unix.LOCK_UN); err != nil {
		return &fs.PathError{Op: "unlock", Path: f.Name(), Err: err}
	}
	return nil
}

func try(f *os.File, how int) (bool, error) {
	err := flock(f, how|unix.LOCK_NB)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	default:
		return false, &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
