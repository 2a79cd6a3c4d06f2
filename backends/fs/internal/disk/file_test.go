package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsWrittenThroughStandsWhereItBelongs(t *testing.T) {
	var got heard
	dir, err := OpenDir(t.TempDir(), &got)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	f, err := dir.OpenFile("file", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte("0123456789"), 0); err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, w := range []struct {
		text string
		off  int64
	}{{"abc", 2}, {"beyond", 12}} {
		if err := f.WriteThrough([]byte(w.text), w.off); err != nil {
			t.Errorf("%q at %d: got %v, want none", w.text, w.off, err)
		}
	}
	if b, err := dir.ReadFile("file"); err != nil || string(b) != "01abc56789\x00\x00beyond" {
		t.Errorf("got %q, %v, want both in their places", b, err)
	}
	// A system without such a call writes and flushes all of the file.
	want := []string{string(Wrote), string(SyncedPart), string(Wrote), string(SyncedPart)}
	if whole := []string{string(Wrote), string(Synced), string(Wrote), string(Synced)}; !slices.Equal(kinds(got), want) && !slices.Equal(kinds(got), whole) {
		t.Errorf("heard %q, want %q or %q", kinds(got), want, whole)
	}
}

// kinds are the changes without their files.
func kinds(h heard) []string {
	out := make([]string, len(h))
	for i, c := range h {
		out[i], _, _ = strings.Cut(c, " ")
	}
	return out
}

func TestAWriteThroughThatFailsNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // for reading
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var perr *fs.PathError
	if err := (OSFile{File: f}).WriteThrough([]byte("x"), 0); !errors.As(err, &perr) || perr.Path != path {
		t.Errorf("got %v, want an error that names %s", err, path)
	}
}
