//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SightOf is what Look sees of the open file f.
func SightOf(f *os.File) (Sight, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstat(int(f.Fd()), &st)
		if err == nil {
			return sight(&st), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return Sight{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
		}
	}
}

func sight(st *unix.Stat_t) Sight {
	return Sight{Device: uint64(st.Dev), Inode: uint64(st.Ino), Size: st.Size}
}

func look(dir *os.File, name string) (Sight, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			return sight(&st), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return Sight{}, &os.PathError{Op: "stat", Path: dir.Name() + "/" + name, Err: err}
		}
	}
}
