package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/uuid"
)

// Dir is an open folder, out of which nothing is followed. Whatever the backend
// changes on the disk goes through a Dir or an OSFile that a Dir opened, so that
// a Recorder hears of all of it.
type Dir struct {
	root *os.Root
	self *os.File // the folder again, for what os.Root has no short way to
	rec  Recorder
}

// OpenDir opens the folder at path. rec may be nil.
func OpenDir(path string, rec Recorder) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return newDir(root, rec)
}

func newDir(root *os.Root, rec Recorder) (*Dir, error) {
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dir{root, self, rec}, nil
}

// MakeAll makes the folder at path, and those above it that are not there (0700),
// and makes their names durable, each in the folder above it. Whoever made the last
// one may not have flushed it yet, so its name is flushed also when it was there;
// then it is no error that the folder above it can't be read or flushed at all.
func MakeAll(path string, rec Recorder) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	above := filepath.Dir(path)
	if isFolder(path) {
		err := syncPath(above, rec)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS) {
			return nil
		}
		return err
	}
	if above != path && !isFolder(above) {
		if err := MakeAll(above, rec); err != nil {
			return err
		}
	}
	err = os.Mkdir(path, 0o700)
	if err == nil {
		record(rec, Change{Kind: Made, Path: path})
	} else if !isFolder(path) { // somebody may have been faster
		return err
	}
	return syncPath(above, rec)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func syncPath(path string, rec Recorder) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(syncOpen(d, path, rec), d.Close())
}

// syncOpen makes the names in the folder d durable.
func syncOpen(d *os.File, path string, rec Recorder) error {
	err := d.Sync()
	if err == nil {
		record(rec, Change{Kind: SyncedDir, Path: path})
	}
	return err
}

// Name is the path by which the folder was opened.
func (d *Dir) Name() string { return d.root.Name() }

func (d *Dir) path(name string) string { return filepath.Join(d.root.Name(), name) }

// Sub opens a folder below d.
func (d *Dir) Sub(name string) (*Dir, error) {
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return newDir(root, d.rec)
}

// Open opens name for reading.
func (d *Dir) Open(name string) (*os.File, error) { return d.root.Open(name) }

// OpenFile opens name as os.OpenFile does; a new file has the mode 0600.
func (d *Dir) OpenFile(name string, flag int) (OSFile, error) {
	f, err := d.root.OpenFile(name, flag, 0o600)
	if err != nil {
		return OSFile{}, err
	}
	out := OSFile{File: f, rec: d.rec}
	record(d.rec, Change{Kind: Opened, Path: d.path(name), Flag: flag, File: f})
	return out, nil
}

// Look says which file stands under name, a single one, and how long it is; of a
// symbolic link that of the link. It is one system call. If there is none, the error
// is fs.ErrNotExist.
func (d *Dir) Look(name string) (Sight, error) { return look(d.self, name) }

// Sight is what Look sees of a file. Two of the same file differ in Size only.
type Sight struct {
	Device, Inode uint64
	Size          int64
}

// Lstat describes name.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

// ReadFile reads the file name.
func (d *Dir) ReadFile(name string) ([]byte, error) { return d.root.ReadFile(name) }

// Names lists the folder name below d, or d itself: ".".
func (d *Dir) Names(name string) ([]string, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// Mkdir makes the folder name (0700). The name is durable after a Sync.
func (d *Dir) Mkdir(name string) error {
	err := d.root.Mkdir(name, 0o700)
	if err == nil {
		record(d.rec, Change{Kind: Made, Path: d.path(name)})
	}
	return err
}

// Remove takes name away. That is durable after a Sync.
func (d *Dir) Remove(name string) error {
	err := d.root.Remove(name)
	if err == nil {
		record(d.rec, Change{Kind: Removed, Path: d.path(name)})
	}
	return err
}

// Rename gives the file from the name to. That is durable after a Sync.
func (d *Dir) Rename(from, to string) error {
	err := d.root.Rename(from, to)
	if err == nil {
		record(d.rec, Change{Kind: Renamed, Path: d.path(from), To: d.path(to)})
	}
	return err
}

// Sync makes the names in the folder name below d durable, or in d itself: ".".
func (d *Dir) Sync(name string) error {
	f, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(syncOpen(f, d.path(name), d.rec), f.Close())
}

// Close closes the folder; files opened in it stay open.
func (d *Dir) Close() error { return errors.Join(d.self.Close(), d.root.Close()) }

// TempPrefix is how the names of unfinished files begin.
const TempPrefix = ".tmp-"

// WriteAtomic puts data under name, whole and durable, or changes nothing that
// a reader of name sees. It also syncs the folder.
func (d *Dir) WriteAtomic(name string, data []byte) error {
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	tmp := TempPrefix + id.String()
	f, err := d.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, d.Remove(tmp))
	}
	return d.Sync(".")
}
