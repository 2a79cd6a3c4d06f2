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
	"time"
)

// diskCache keeps machine code between processes: one folder per digest, with a
// list of the SHA-256 of every file in it. The engine's own checksum does not
// cover the function offsets, and a wrong offset is a jump into nowhere.
type diskCache struct{ root string }

const (
	sumsFile = "sums"
	// moduleFile is the module as it was compiled, of a metered one.
	moduleFile = "metered.wasm"
	buildMark  = ".build-"
	// buildFormat changes when the same digest gives other code: a new metering pass, other features.
	buildFormat = "4"
	staleBuild  = time.Hour
)

func openDiskCache(dir string) (*diskCache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	st, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if st.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, fmt.Errorf("others can write to it, and it can't be changed: %w", err)
		}
	}
	d := &diskCache{root: dir}
	return d, d.sweep(time.Now())
}

// sweep removes what crashed processes left behind.
func (d *diskCache) sweep(now time.Time) error {
	entries, err := os.ReadDir(d.root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), buildMark) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > staleBuild {
			if err := os.RemoveAll(filepath.Join(d.root, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

type cacheEntry struct {
	root string
	dir  string
}

func (d *diskCache) entry(digest string, metered bool) cacheEntry {
	mode := "closing"
	if metered {
		mode = "metered"
	}
	name := strings.TrimPrefix(digest, "sha256:") + "-" + mode + "-" + buildFormat
	return cacheEntry{root: d.root, dir: filepath.Join(d.root, name)}
}

// verify reports whether the entry is there and whole; an error says that it is
// there and damaged.
func (e cacheEntry) verify() (bool, error) {
	want, err := os.ReadFile(filepath.Join(e.dir, sumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(e.dir); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, errors.New("its list of checksums is missing")
	}
	if err != nil {
		return false, err
	}
	got, err := sums(e.dir)
	if err != nil {
		return false, err
	}
	if got != string(want) {
		return false, errors.New("checksums differ")
	}
	return true, nil
}

// module is the metered module of an entry that verify found whole.
func (e cacheEntry) module() ([]byte, error) { return os.ReadFile(filepath.Join(e.dir, moduleFile)) }

// keepModule puts the metered module into a folder of begin.
func (e cacheEntry) keepModule(built string, code []byte) error {
	return os.WriteFile(filepath.Join(built, moduleFile), code, 0o600)
}

// begin makes a folder to build in.
func (e cacheEntry) begin() (string, error) {
	return os.MkdirTemp(e.root, buildMark)
}

// commit gives a built folder the entry's name. What was there before is damaged,
// or another process was faster with the same bytes; either way it goes.
func (e cacheEntry) commit(built string) error {
	list, err := sums(built)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(built, sumsFile), []byte(list), 0o600); err != nil {
		return err
	}
	if _, err := os.Lstat(e.dir); err == nil {
		old, err := e.begin()
		if err != nil {
			return err
		}
		if err := os.Rename(e.dir, filepath.Join(old, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		e.drop(old)
	}
	return os.Rename(built, e.dir)
}

// drop removes a folder of begin; what can't be removed now is swept later.
func (e cacheEntry) drop(built string) { _ = os.RemoveAll(built) }

// sums lists the files of dir, one a line: hex SHA-256, a space, the relative path.
func sums(dir string) (string, error) {
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == sumsFile {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		lines = append(lines, hex.EncodeToString(h.Sum(nil))+" "+filepath.ToSlash(rel)+"\n")
		return nil
	})
	sort.Strings(lines)
	return strings.Join(lines, ""), err
}
