package main

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

const (
	// maxOutput bounds an answer, so that one call can't fill the model's context.
	maxOutput = 64 << 10
	// maxFile bounds a file that is read or written: it is held in memory as a whole.
	maxFile = 8 << 20
)

// errBinary: the file holds no text.
var errBinary = errors.New("binary")

// errLarge: the file is over maxFile.
var errLarge = errors.New("large")

// text reads a file that must be text of at most maxFile bytes: no NUL, valid UTF-8.
func (w *workspace) text(rel string) ([]byte, error) {
	f, err := w.root.Open(rel)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxFile:
		return nil, errLarge
	case bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b):
		return nil, errBinary
	}
	return b, nil
}

// explainText is explain for the errors of text.
func explainText(p string, err error) error {
	switch {
	case errors.Is(err, errBinary):
		return errors.New(p + " is a binary file; this tool is for text (UTF-8) only")
	case errors.Is(err, errLarge):
		return errors.New(p + " is larger than " + strconv.Itoa(maxFile>>20) + " MiB, which is the limit")
	}
	return explain(p, err)
}

// clip shortens s to at most n bytes, on a character's border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// plural is "1 entry", "2 entries".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
