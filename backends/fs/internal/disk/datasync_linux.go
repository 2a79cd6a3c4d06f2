package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writeThrough writes and flushes b in one system call, and says how many bytes are
// known to be written. The call is one of Linux 4.7; a sandbox that does not know it
// may answer EPERM. Either is errors.ErrUnsupported, and nothing was written.
func writeThrough(f *os.File, b []byte, off int64) (written int, err error) {
	for written < len(b) {
		n, err := unix.Pwritev2(int(f.Fd()), [][]byte{b[written:]}, off+int64(written), unix.RWF_DSYNC)
		switch {
		case errors.Is(err, unix.EINTR):
		case written == 0 && errors.Is(err, unix.EPERM):
			return 0, errors.ErrUnsupported
		case err != nil:
			return written, err
		}
		written += max(n, 0)
	}
	return written, nil
}
