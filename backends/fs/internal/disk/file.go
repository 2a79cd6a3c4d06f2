package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// File is an open journal. Tests put a failing one in its place.
type File interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	// WriteThrough writes b at off; once it returns nil, b is durable, and the file's
	// size with it, but not what was written elsewhere in the file. After an error a
	// part of b may stand in the file, or all of it, durable or not.
	WriteThrough(b []byte, off int64) error
	// Flush makes all written data durable, and the file's size with it.
	Flush() error
	// Size is the file's length. It moves the descriptor's offset: nothing here
	// reads by it, and it costs nothing, while a stat makes the next flush slower.
	Size() (int64, error)
	Name() string
	Close() error
}

// OSFile is a File of the operating system.
type OSFile struct {
	*os.File
	rec Recorder
}

// Write writes where the file stands.
func (f OSFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.wrote(b[:n], InOrder)
	return n, err
}

// ReadFrom writes what r gives where the file stands.
func (f OSFile) ReadFrom(r io.Reader) (int64, error) {
	if f.rec == nil {
		return f.File.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{f}, r)
}

// WriteAt implements File.
func (f OSFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	f.wrote(b[:n], off)
	return n, err
}

// WriteThrough implements File. Where the system can, it is one system call.
func (f OSFile) WriteThrough(b []byte, off int64) error {
	n, err := writeThrough(f.File, b, off)
	if errors.Is(err, errors.ErrUnsupported) {
		if _, err := f.WriteAt(b, off); err != nil {
			return err
		}
		return f.Flush()
	}
	f.wrote(b[:n], off)
	if err != nil {
		return &fs.PathError{Op: "write through", Path: f.Name(), Err: err}
	}
	record(f.rec, Change{Kind: SyncedPart, File: f.File, Off: off, Data: b})
	return nil
}

func (f OSFile) wrote(b []byte, off int64) {
	if len(b) > 0 {
		record(f.rec, Change{Kind: Wrote, File: f.File, Off: off, Data: b})
	}
}

// Truncate implements File.
func (f OSFile) Truncate(size int64) error {
	err := f.File.Truncate(size)
	if err == nil {
		record(f.rec, Change{Kind: Truncated, File: f.File, Off: size})
	}
	return err
}

// Sync makes the file durable, its metadata too.
func (f OSFile) Sync() error { return f.synced(f.File.Sync()) }

// Flush implements File.
func (f OSFile) Flush() error {
	if err := datasync(f.File); err != nil {
		return f.synced(&fs.PathError{Op: "flush", Path: f.Name(), Err: err})
	}
	return f.synced(nil)
}

func (f OSFile) synced(err error) error {
	if err == nil {
		record(f.rec, Change{Kind: Synced, File: f.File})
	}
	return err
}

// Size implements File.
func (f OSFile) Size() (int64, error) { return f.Seek(0, io.SeekEnd) }
