package disk

import (
	"fmt"
	"os"

	"github.com/loophost/loophost/host/store"
	"golang.org/x/sys/unix"
)

// Numbers of filesystem types that x/sys does not name (statfs(2)).
const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
	vboxMagic     = 0x786f4256
)

// media lists what is known of each type. Network and user-space filesystems
// may lose a lock when a server restarts, or answer a flush before the data is safe.
var media = map[uint32]Medium{
	unix.EXT4_SUPER_MAGIC:      {Type: "ext4", Level: store.LevelPower}, // ext2 and ext3 have the same number
	unix.XFS_SUPER_MAGIC:       {Type: "xfs", Level: store.LevelPower},
	unix.BTRFS_SUPER_MAGIC:     {Type: "btrfs", Level: store.LevelPower},
	unix.OVERLAYFS_SUPER_MAGIC: {Type: "overlayfs", Level: store.LevelPower},
	unix.F2FS_SUPER_MAGIC:      {Type: "f2fs", Level: store.LevelPower},
	zfsMagic:                   {Type: "zfs", Level: store.LevelPower},
	bcachefsMagic:              {Type: "bcachefs", Level: store.LevelPower},
	unix.TMPFS_MAGIC:           {Type: "tmpfs", Level: store.LevelProcess},
	unix.RAMFS_MAGIC:           {Type: "ramfs", Level: store.LevelProcess},
	unix.NFS_SUPER_MAGIC:       {Type: "nfs"},
	unix.SMB_SUPER_MAGIC:       {Type: "smb"},
	unix.CIFS_SUPER_MAGIC:      {Type: "cifs"},
	unix.SMB2_SUPER_MAGIC:      {Type: "smb2"},
	unix.FUSE_SUPER_MAGIC:      {Type: "fuse"},
	unix.V9FS_MAGIC:            {Type: "9p"},
	unix.CEPH_SUPER_MAGIC:      {Type: "ceph"},
	unix.AFS_SUPER_MAGIC:       {Type: "afs"},
	unix.AFS_FS_MAGIC:          {Type: "afs"},
	unix.CODA_SUPER_MAGIC:      {Type: "coda"},
	unix.MSDOS_SUPER_MAGIC:     {Type: "fat"},
	unix.EXFAT_SUPER_MAGIC:     {Type: "exfat"},
	unix.ECRYPTFS_SUPER_MAGIC:  {Type: "ecryptfs"},
	vboxMagic:                  {Type: "vboxsf"},
	unix.SQUASHFS_MAGIC:        {Type: "squashfs (read-only)"},
	unix.ISOFS_SUPER_MAGIC:     {Type: "iso9660 (read-only)"},
	unix.DEBUGFS_MAGIC:         {Type: "debugfs"},
	unix.PROC_SUPER_MAGIC:      {Type: "proc"},
	unix.SYSFS_MAGIC:           {Type: "sysfs"},
	unix.CGROUP2_SUPER_MAGIC:   {Type: "cgroup2"},
}

// MediumOf says what the open folder d lies on.
func MediumOf(d *os.File) (Medium, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(d.Fd()), &st); err != nil {
		return Medium{}, &os.PathError{Op: "statfs", Path: d.Name(), Err: err}
	}
	return mediumOf(uint32(st.Type)), nil
}

func mediumOf(number uint32) Medium {
	m, known := media[number]
	if !known {
		return Medium{Type: fmt.Sprintf("type 0x%x", number)}
	}
	m.Known = true
	return m
}
