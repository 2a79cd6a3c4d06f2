package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/google/uuid"
)

// File is an open journal. Tests put a failing one in its place.
type File interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	// Flush makes written data durable, and the file's size with it.
	Flush() error
	// Size is the file's length. It moves the descriptor's offset: nothing here
	// reads by it, and it costs nothing, while a stat makes the next flush slower.
	Size() (int64, error)
	Name() string
	Close() error
}

// OSFile is a File of the operating system.
type OSFile struct{ *os.File }

// Flush implements File.
func (f OSFile) Flush() error {
	if err := datasync(f.File); err != nil {
		return &fs.PathError{Op: "flush", Path: f.Name(), Err: err}
	}
	return nil
}

// Size implements File.
func (f OSFile) Size() (int64, error) { return f.Seek(0, io.SeekEnd) }

// TempPrefix is how the names of unfinished files begin.
const TempPrefix = ".tmp-"

// WriteAtomic puts data under name, whole and durable, or changes nothing that
// a reader of name sees. It also syncs the folder.
func WriteAtomic(root *os.Root, name string, data []byte) error {
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	tmp := TempPrefix + id.String()
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
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
		err = root.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	return SyncDir(root)
}

// SyncDir makes the names in a folder durable.
func SyncDir(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	err = d.Sync()
	if closed := d.Close(); err == nil {
		err = closed
	}
	return err
}
