package disk

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

type heard []string

func (h *heard) Record(c Change) { *h = append(*h, string(c.Kind)+" "+filepath.Base(c.Path)) }

func TestAFolderIsMadeAndItsNameIsFlushedInTheOneAbove(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base")
	if err := os.Mkdir(base, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(base, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		want       []string
	}{
		{"two that are not there", "a/b", []string{"made a", "syncedDir base", "made b", "syncedDir a"}},
		{"one that is there is flushed all the same", "a/b", []string{"syncedDir a"}},
		{"one behind a symbolic link", "link/c", []string{"made c", "syncedDir link"}},
	} {
		var got heard
		if err := MakeAll(filepath.Join(base, c.path), &got); err != nil {
			t.Errorf("%s: got %v, want none", c.name, err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"file", "file/below"} {
		if err := MakeAll(filepath.Join(base, path), nil); err == nil {
			t.Errorf("%s, where a file is in the way: got no error, want one", path)
		}
	}
}
