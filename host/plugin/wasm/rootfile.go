package wasm

import (
	"errors"
	"io"
	"io/fs"
	"os"

	experimental "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// rootFile is an open file or directory of a rootFS.
type rootFile struct {
	experimental.UnimplementedFile
	fs   *rootFS
	path string
	file *os.File
	dir  bool
	flag experimental.Oflag
	done bool
}

// IsDir reports whether it is a directory.
func (f *rootFile) IsDir() (bool, experimental.Errno) { return f.dir, 0 }

// Dev is the device number.
func (f *rootFile) Dev() (uint64, experimental.Errno) {
	st, e := f.Stat()
	return st.Dev, e
}

// Ino is the inode number.
func (f *rootFile) Ino() (sys.Inode, experimental.Errno) {
	st, e := f.Stat()
	return st.Ino, e
}

// IsAppend reports whether writes go to the end.
func (f *rootFile) IsAppend() bool { return f.flag&experimental.O_APPEND != 0 }

// SetAppend opens the same file once more, since the system can't change that of an open one everywhere.
func (f *rootFile) SetAppend(enable bool) experimental.Errno {
	if f.dir {
		return experimental.EISDIR
	}
	flag := f.flag &^ (experimental.O_CREAT | experimental.O_EXCL | experimental.O_TRUNC | experimental.O_APPEND)
	if enable {
		flag |= experimental.O_APPEND
	}
	old, err := f.file.Stat()
	if err != nil {
		return errno(err)
	}
	at, err := f.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return errno(err)
	}
	file, err := f.fs.root.OpenFile(f.path, osFlag(flag), 0)
	if err != nil {
		return errno(err)
	}
	now, err := file.Stat()
	if err == nil && !os.SameFile(old, now) {
		err = fs.ErrNotExist
	}
	if err == nil {
		_, err = file.Seek(at, io.SeekStart)
	}
	if err != nil {
		return errno(errors.Join(err, file.Close()))
	}
	err = f.file.Close()
	f.file, f.flag = file, flag
	return errno(err)
}

// Stat describes it.
func (f *rootFile) Stat() (sys.Stat_t, experimental.Errno) {
	st, err := f.file.Stat()
	if err != nil {
		return sys.Stat_t{}, errno(err)
	}
	return sys.NewStat_t(st), 0
}

// transfer makes read and write results those of wazero: the end of a file is no error.
func (f *rootFile) transfer(n int, err error) (int, experimental.Errno) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, errno(err)
}

// ready is 0 for a file that can be read and written now.
func (f *rootFile) ready() experimental.Errno {
	switch {
	case f.dir:
		return experimental.EISDIR
	case f.fs.over():
		return experimental.EINTR
	}
	return 0
}

// Read reads from the current position.
func (f *rootFile) Read(b []byte) (int, experimental.Errno) {
	if e := f.ready(); e != 0 {
		return 0, e
	}
	return f.transfer(f.file.Read(b))
}

// Pread reads at an offset.
func (f *rootFile) Pread(b []byte, off int64) (int, experimental.Errno) {
	if e := f.ready(); e != 0 {
		return 0, e
	}
	if off < 0 {
		return 0, experimental.EINVAL
	}
	return f.transfer(f.file.ReadAt(b, off))
}

// Write writes at the current position, or the end.
func (f *rootFile) Write(b []byte) (int, experimental.Errno) {
	if e := f.ready(); e != 0 {
		return 0, e
	}
	return f.transfer(f.file.Write(b))
}

// Pwrite writes at an offset.
func (f *rootFile) Pwrite(b []byte, off int64) (int, experimental.Errno) {
	if e := f.ready(); e != 0 {
		return 0, e
	}
	if off < 0 || f.IsAppend() {
		return 0, experimental.EINVAL
	}
	return f.transfer(f.file.WriteAt(b, off))
}

// position is an offset in a file, in bytes. It has a name because vet takes every
// Seek of an int64 for io.Seeker's.
type position = int64

// Seek moves the position; of a directory, only to its start.
func (f *rootFile) Seek(off position, whence int) (int64, experimental.Errno) {
	if whence < io.SeekStart || whence > io.SeekEnd || (f.dir && (off != 0 || whence != io.SeekStart)) {
		return 0, experimental.EINVAL
	}
	at, err := f.file.Seek(off, whence)
	return at, errno(err)
}

// Readdir lists up to n entries; n ≤ 0: all that are left.
func (f *rootFile) Readdir(n int) ([]experimental.Dirent, experimental.Errno) {
	if !f.dir {
		return nil, experimental.ENOTDIR
	}
	infos, err := f.file.Readdir(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	out := make([]experimental.Dirent, 0, len(infos))
	for _, i := range infos {
		st := sys.NewStat_t(i)
		out = append(out, experimental.Dirent{Ino: st.Ino, Name: i.Name(), Type: i.Mode().Type()})
	}
	return out, errno(err)
}

// Truncate sets the size.
func (f *rootFile) Truncate(size int64) experimental.Errno {
	if e := f.ready(); e != 0 {
		return e
	}
	if size < 0 {
		return experimental.EINVAL
	}
	return errno(f.file.Truncate(size))
}

// Sync makes data and metadata durable.
func (f *rootFile) Sync() experimental.Errno { return errno(f.file.Sync()) }

// Datasync does the same.
func (f *rootFile) Datasync() experimental.Errno { return f.Sync() }

// Utimens sets access and modification times, by path: the standard library can't by descriptor.
func (f *rootFile) Utimens(atim, mtim int64) experimental.Errno {
	return f.fs.Utimens(f.path, atim, mtim)
}

// Close closes it.
func (f *rootFile) Close() experimental.Errno {
	if f.done {
		return 0
	}
	f.done = true
	f.fs.open--
	return errno(f.file.Close())
}
