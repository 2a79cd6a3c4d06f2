package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isOurs reports whether a file of package bundled is a built one.
func isOurs(name string) bool {
	return name == "SHA256SUMS" || strings.HasSuffix(name, ".wasm.gz") || strings.HasSuffix(name, ".json")
}

// write puts the built files into folder and removes those that no plugin has any more.
func (f files) write(folder string) error {
	there, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range there {
		if _, built := f[e.Name()]; isOurs(e.Name()) && !built {
			if err := os.Remove(filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := os.WriteFile(filepath.Join(folder, name), f[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare says how the files in folder differ from the built ones.
func (f files) compare(folder string) error {
	there, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var wrong []error
	for _, e := range there {
		if _, built := f[e.Name()]; isOurs(e.Name()) && !built {
			wrong = append(wrong, fmt.Errorf("%s belongs to no plugin", e.Name()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		got, err := os.ReadFile(filepath.Join(folder, name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			wrong = append(wrong, fmt.Errorf("%s is missing", name))
		case err != nil:
			wrong = append(wrong, err)
		case !same(got, f[name]):
			wrong = append(wrong, fmt.Errorf("%s is not what its source builds", name))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w\nrun go generate ./plugins/bundled and commit the result", errors.Join(wrong...))
	}
	return nil
}

// same reports whether two files hold the same bytes, packed or not: another
// version of the packer than the one that was used is no difference.
func same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := unpack(a)
	y, errY := unpack(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
