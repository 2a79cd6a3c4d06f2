package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/loophost/loophost/pluginapi"
)

// kept is what lies in a cache entry: the files as they were when their checksums
// were taken.
type kept struct {
	dir     string
	sums    string // a line for each file, sorted: hex SHA-256, a space, the relative path
	outline []byte // content of outlineFile; nil: there is none
	files   map[string]os.FileInfo
}

// verify reads an entry. nil and no error: it is not there. An error says that it is
// there and damaged.
func (e cacheEntry) verify() (*kept, error) {
	want, err := os.ReadFile(filepath.Join(e.dir, sumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(e.dir); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, errors.New("its list of checksums is missing")
	}
	if err != nil {
		return nil, err
	}
	k, err := readEntry(e.dir)
	if err != nil {
		return nil, err
	}
	if k.sums != string(want) {
		return nil, errors.New("checksums differ")
	}
	return k, nil
}

// readEntry reads every file of dir once, the outline into memory.
func readEntry(dir string) (*kept, error) {
	k := &kept{dir: dir, files: map[string]os.FileInfo{}}
	var lines []string
	err := eachFile(dir, func(rel string) error {
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(rel)))
		if err != nil {
			return err
		}
		defer f.Close()
		if k.files[rel], err = f.Stat(); err != nil {
			return err
		}
		var sum []byte
		if rel == outlineFile {
			if k.outline, err = readWhole(f, k.files[rel].Size()); err != nil {
				return err
			}
			whole := sha256.Sum256(k.outline)
			sum = whole[:]
		} else if sum, err = sumFile(f, k.files[rel].Size()); err != nil {
			return err
		}
		lines = append(lines, hex.EncodeToString(sum)+" "+rel+"\n")
		return nil
	})
	sort.Strings(lines)
	k.sums = strings.Join(lines, "")
	return k, err
}

// maxOutline bounds what is read of an outline; those of modules of the default size
// are smaller.
const maxOutline = 2 * pluginapi.MaxModuleBytes

// readWhole reads a file of a known size without growing a buffer for it.
func readWhole(f io.Reader, size int64) ([]byte, error) {
	if size > maxOutline {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are taken", outlineFile, size, maxOutline)
	}
	b := make([]byte, size)
	_, err := io.ReadFull(f, b)
	return b, err
}

// eachFile calls do with the path of every file below dir but the list of
// checksums, relative to dir and with slashes.
func eachFile(dir string, do func(rel string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == sumsFile {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", rel)
		}
		return do(filepath.ToSlash(rel))
	})
}

// unchanged tells whether the files are still those of verify. The engine writes what
// it does not find, so a new file means that it did not use the ones that are there:
// it has compiled what it was given, and that was an outline.
func (k *kept) unchanged() error {
	seen := 0
	err := eachFile(k.dir, func(rel string) error {
		seen++
		then := k.files[rel]
		now, err := os.Stat(filepath.Join(k.dir, filepath.FromSlash(rel)))
		if err != nil {
			return err
		}
		if then == nil || !os.SameFile(then, now) || then.Size() != now.Size() || !then.ModTime().Equal(now.ModTime()) {
			return fmt.Errorf("the engine did not take it: %s is not the file that was verified", rel)
		}
		return nil
	})
	if err == nil && seen != len(k.files) {
		err = fmt.Errorf("the engine did not take it: %d of %d files are left", seen, len(k.files))
	}
	return err
}

// machineCode is the path of the only file that the engine wrote below dir.
func machineCode(dir string) (string, error) {
	var found []string
	err := eachFile(dir, func(rel string) error {
		if rel != outlineFile {
			found = append(found, rel)
		}
		return nil
	})
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("the engine wrote %d files, want one", len(found))
	}
	if err != nil {
		return "", err
	}
	return filepath.FromSlash(found[0]), nil
}
