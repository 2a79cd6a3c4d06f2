package fs

import "github.com/loophost/loophost/backends/fs/internal/disk"

// counter counts the bytes that are read of journals.
type counter struct{ n int64 }

type countedFile struct {
	disk.File
	c *counter
}

func (c *counter) wrap(f disk.File) disk.File { return countedFile{f, c} }

func (f countedFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	f.c.n += int64(n)
	return n, err
}
