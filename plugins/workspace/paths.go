package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// clean is a path of the model as one relative to the workspace; "." is the
// workspace itself. "/workspace/…", as the folder is called in here, is fine, too.
func clean(p string) (string, error) {
	if strings.ContainsRune(p, 0) {
		return "", errors.New("the path holds a NUL character")
	}
	rel := p
	if strings.HasPrefix(p, "/") {
		below, ok := strings.CutPrefix(path.Clean(p)+"/", "/workspace/")
		if !ok {
			return "", outside(p)
		}
		rel = below
	}
	rel = path.Clean(rel)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", outside(p)
	}
	return rel, nil
}

func outside(p string) error {
	return errors.New(p + " is outside the workspace; give a path relative to the workspace, such as docs/notes.txt")
}

// cleanFile is clean for a path that must name a file.
func cleanFile(p string) (string, error) {
	if p == "" {
		return "", errors.New("the argument path is missing or empty")
	}
	rel, err := clean(p)
	if err == nil && (rel == "." || strings.HasSuffix(p, "/")) {
		err = errors.New(p + " is a folder; name a file")
	}
	return rel, err
}

// explain says what went wrong with a path, for the model.
func explain(p string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New(p + " does not exist; list_files shows what there is")
	case errors.Is(err, fs.ErrPermission):
		return errors.New(p + " may not be used: permission denied, or it leads out of the workspace")
	case errors.Is(err, syscall.ENOTDIR):
		return errors.New(p + ": a part of the path is a file, not a folder")
	case errors.Is(err, syscall.EISDIR):
		return errors.New(p + " is a folder")
	}
	return errors.New(p + ": " + cause(err))
}

// cause is an error without the operation and path that package os puts around it.
func cause(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	} else if le, ok := errors.AsType[*os.LinkError](err); ok {
		err = le.Err
	}
	return err.Error()
}
