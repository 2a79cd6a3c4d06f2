package wasm

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	experimental "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// rootFS is the workspace as a guest sees it: an os.Root, which no path and no
// symbolic link leads out of. Guests make no symbolic links, since others may
// follow those with less care; files that can block (pipes, devices, sockets) are
// not opened.
type rootFS struct {
	experimental.UnimplementedFS
	in   *instance
	root *os.Root
	open int // files; used on the guest's goroutine
}

// maxOpenFiles bounds an instance's open files, so that a guest can't use up the
// host's.
const maxOpenFiles = 128

// errno translates. Paths that lead out have no number of their own: they are
// forbidden.
func errno(err error) experimental.Errno {
	if err == nil {
		return 0
	}
	var number syscall.Errno
	switch {
	case errors.As(err, &number), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrClosed), errors.Is(err, fs.ErrInvalid):
		return experimental.UnwrapOSError(err)
	}
	return experimental.EACCES
}

// inRoot is the path for os.Root.
func inRoot(path string) string {
	path = strings.TrimPrefix(path, "/")
	if path == "" {
		return "."
	}
	return path
}

// over reports whether the call has ended; then nothing is done for it any more.
func (f *rootFS) over() bool {
	select {
	case <-f.in.stopped:
		return true
	default:
		return false
	}
}

// Modes of what a guest makes, before the umask. WASI has no modes, and the
// engine's own choice would hide an agent's files from everybody else.
const (
	newFileMode = 0o666
	newDirMode  = 0o777
)

// OpenFile opens a regular file or a directory.
func (f *rootFS) OpenFile(path string, flag experimental.Oflag, _ fs.FileMode) (experimental.File, experimental.Errno) {
	if f.over() {
		return nil, experimental.EINTR
	}
	if f.open >= maxOpenFiles {
		return nil, experimental.ENOTSUP // there is no number for "too many open files" here
	}
	path = inRoot(path)
	if flag&experimental.O_NOFOLLOW != 0 {
		if st, err := f.root.Lstat(path); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			return nil, experimental.ELOOP
		}
	}
	st, err := f.root.Stat(path)
	exists := err == nil
	if exists && !st.Mode().IsRegular() && !st.IsDir() {
		return nil, experimental.EACCES
	}
	if exists && !st.IsDir() && flag&experimental.O_DIRECTORY != 0 {
		return nil, experimental.ENOTDIR
	}
	if exists && st.IsDir() {
		if writes(flag) {
			return nil, experimental.EISDIR
		}
		flag &^= experimental.O_CREAT
	}
	file, err := f.root.OpenFile(path, osFlag(flag), newFileMode)
	if err != nil {
		return nil, errno(err)
	}
	// What was checked may have been replaced since.
	if st, err = file.Stat(); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		err = fs.ErrPermission
	}
	if err != nil {
		return nil, errno(errors.Join(err, file.Close()))
	}
	f.open++
	return &rootFile{fs: f, path: path, file: file, dir: st.IsDir(), flag: flag}, 0
}

func writes(flag experimental.Oflag) bool {
	return flag&(experimental.O_RDWR|experimental.O_WRONLY|experimental.O_TRUNC) != 0
}

func osFlag(flag experimental.Oflag) int {
	out := os.O_RDONLY
	switch {
	case flag&experimental.O_RDWR != 0:
		out = os.O_RDWR
	case flag&experimental.O_WRONLY != 0:
		out = os.O_WRONLY
	}
	for _, f := range []struct {
		guest experimental.Oflag
		os    int
	}{
		{experimental.O_APPEND, os.O_APPEND},
		{experimental.O_CREAT, os.O_CREATE},
		{experimental.O_EXCL, os.O_EXCL},
		{experimental.O_SYNC, os.O_SYNC},
		{experimental.O_DSYNC, os.O_SYNC},
		{experimental.O_RSYNC, os.O_SYNC},
		{experimental.O_TRUNC, os.O_TRUNC},
	} {
		if flag&f.guest != 0 {
			out |= f.os
		}
	}
	return out | nonblock
}

// Stat follows links within the workspace.
func (f *rootFS) Stat(path string) (sys.Stat_t, experimental.Errno) {
	st, err := f.root.Stat(inRoot(path))
	if err != nil {
		return sys.Stat_t{}, errno(err)
	}
	return sys.NewStat_t(st), 0
}

// Lstat does not follow the last link.
func (f *rootFS) Lstat(path string) (sys.Stat_t, experimental.Errno) {
	st, err := f.root.Lstat(inRoot(path))
	if err != nil {
		return sys.Stat_t{}, errno(err)
	}
	return sys.NewStat_t(st), 0
}

// Mkdir makes a directory.
func (f *rootFS) Mkdir(path string, _ fs.FileMode) experimental.Errno {
	return f.change(func() error { return f.root.Mkdir(inRoot(path), newDirMode) })
}

// Chmod changes permission bits; set-user-id and the like can't be set.
func (f *rootFS) Chmod(path string, perm fs.FileMode) experimental.Errno {
	return f.change(func() error { return f.root.Chmod(inRoot(path), perm.Perm()) })
}

// Rename moves within the workspace. A regular file that takes the place of
// another takes over its mode, since a guest that writes atomically can't.
func (f *rootFS) Rename(from, to string) experimental.Errno {
	return f.change(func() error {
		from, to := inRoot(from), inRoot(to)
		source, err := f.root.Lstat(from)
		if err != nil {
			return err
		}
		if old, err := f.root.Lstat(to); err == nil && old.Mode().IsRegular() && source.Mode().IsRegular() {
			if err := f.root.Chmod(from, old.Mode().Perm()); err != nil {
				return err
			}
		}
		return f.root.Rename(from, to)
	})
}

// Rmdir removes an empty directory.
func (f *rootFS) Rmdir(path string) experimental.Errno {
	return f.change(func() error {
		st, err := f.root.Lstat(inRoot(path))
		if err == nil && !st.IsDir() {
			return syscall.ENOTDIR
		}
		if err != nil {
			return err
		}
		return f.root.Remove(inRoot(path))
	})
}

// Unlink removes what is not a directory.
func (f *rootFS) Unlink(path string) experimental.Errno {
	return f.change(func() error {
		st, err := f.root.Lstat(inRoot(path))
		if err == nil && st.IsDir() {
			return syscall.EISDIR
		}
		if err != nil {
			return err
		}
		return f.root.Remove(inRoot(path))
	})
}

// Link makes a hard link within the workspace.
func (f *rootFS) Link(from, to string) experimental.Errno {
	return f.change(func() error { return f.root.Link(inRoot(from), inRoot(to)) })
}

// Symlink is refused.
func (f *rootFS) Symlink(string, string) experimental.Errno { return experimental.EPERM }

// Readlink reads a link; where it leads is not checked until it is followed.
func (f *rootFS) Readlink(path string) (string, experimental.Errno) {
	to, err := f.root.Readlink(inRoot(path))
	return to, errno(err)
}

// Utimens sets access and modification times.
func (f *rootFS) Utimens(path string, atim, mtim int64) experimental.Errno {
	return f.change(func() error { return f.root.Chtimes(inRoot(path), timeOf(atim), timeOf(mtim)) })
}

// timeOf is the zero time, which os leaves as it is, for "omit".
func timeOf(ns int64) time.Time {
	if ns == experimental.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// change does something to the workspace unless the call is over: a guest that
// nobody waits for any more leaves no traces.
func (f *rootFS) change(do func() error) experimental.Errno {
	if f.over() {
		return experimental.EINTR
	}
	return errno(do())
}
