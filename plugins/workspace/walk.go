package main

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const (
	// maxFolder bounds how many entries of one folder are looked at.
	maxFolder = 10_000
	maxDepth  = 64
	// reserveMS is the time a long walk leaves for its answer.
	reserveMS = 2_000
)

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// walk visits the entries of a folder in order, those of its folders too if deep
// is set, and gives notes about what it left out. It enters neither links nor
// folders named .git. visit returns errEnough to end it.
func (w *workspace) walk(folder string, deep bool, visit func(rel string, e fs.DirEntry) error) (notes []string, err error) {
	err = w.walkFolder(folder, deep, 0, visit, &notes)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return notes, err
}

func (w *workspace) walkFolder(folder string, deep bool, depth int, visit func(string, fs.DirEntry) error, notes *[]string) error {
	entries, more, err := w.entries(folder)
	if err != nil {
		return err
	}
	if more {
		*notes = append(*notes, "truncated: of "+folder+" only "+plural(maxFolder, "entry", "entries")+" of more were looked at")
	}
	for _, e := range entries {
		if left, ok := w.left(); ok && left < reserveMS {
			*notes = append(*notes, "truncated: out of time at "+path.Join(folder, e.Name()))
			return errEnough
		}
		rel := path.Join(folder, e.Name())
		if err := visit(rel, e); err != nil {
			return err
		}
		if !deep || !e.IsDir() || e.Name() == ".git" {
			continue
		}
		if depth == maxDepth {
			*notes = append(*notes, "truncated: "+rel+" is too deep")
			continue
		}
		if err := w.walkFolder(rel, deep, depth+1, visit, notes); errors.Is(err, errEnough) {
			return err
		} else if err != nil {
			*notes = append(*notes, explain(rel, err).Error())
		}
	}
	return nil
}

// entries reads a folder, sorted by name; more: there are others beyond maxFolder.
func (w *workspace) entries(folder string) (list []fs.DirEntry, more bool, err error) {
	f, err := w.root.Open(folder)
	if err != nil {
		return nil, false, err
	}
	list, err = f.ReadDir(maxFolder + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if len(list) > maxFolder {
		list, more = list[:maxFolder], true
	}
	return list, more, err
}
