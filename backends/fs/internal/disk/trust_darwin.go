package disk

import (
	"os"

	"github.com/loophost/loophost/host/store"
	"golang.org/x/sys/unix"
)

// MediumOf says what the open folder d lies on.
func MediumOf(d *os.File) (Medium, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(d.Fd()), &st); err != nil {
		return Medium{}, &os.PathError{Op: "statfs", Path: d.Name(), Err: err}
	}
	m := Medium{Type: unix.ByteSliceToString(st.Fstypename[:]), Known: true}
	switch m.Type {
	case "apfs", "hfs":
		m.Level = store.LevelPower
	case "tmpfs":
		m.Level = store.LevelProcess
	case "nfs", "smbfs", "afpfs", "webdav", "osxfuse", "macfuse", "msdos", "exfat":
	default:
		m.Known = false
	}
	return m, nil
}
