package wasm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// diskCache keeps machine code between processes: one folder per digest, with a
// list of the SHA-256 of every file in it (sumFile). The engine's own checksum does
// not cover the function offsets, and a wrong offset is a jump into nowhere.
type diskCache struct{ root string }

const (
	sumsFile = "sums"
	// outlineFile is the outline of a metered module.
	outlineFile = "outline.wasm"
	buildMark   = ".build-"
	// buildFormat changes when the same digest gives other code (a new metering pass,
	// other features) or other checksums, and when a module that has an entry might be
	// refused now (tighter bounds): what has an entry is not counted again.
	buildFormat = "7"
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

// cacheEntry is the place of one module's machine code, which may not be there.
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

// begin makes a folder to build in.
func (e cacheEntry) begin() (string, error) {
	return os.MkdirTemp(e.root, buildMark)
}

// commit gives a built folder the entry's name. What was there before is damaged,
// or another process was faster with the same bytes; either way it goes.
func (e cacheEntry) commit(built string) error {
	k, err := readEntry(built)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(built, sumsFile), []byte(k.sums), 0o600); err != nil {
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
