package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzClean checks that no path leads out of the workspace by its letters.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", ".", "a/b", "../a", "/workspace", "/workspace/../x", "/workspace//a/./b/", "a/../../b", "/workspacex", "...", "a\x00b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		rel, err := clean(p)
		if err == nil && (!filepath.IsLocal(rel) || strings.ContainsRune(rel, 0)) {
			t.Fatalf("%q becomes %q", p, rel)
		}
	})
}

// FuzzCut checks that reading on from note to note gives the whole text.
func FuzzCut(f *testing.F) {
	f.Add("a\nb\r\n\nc", 1)
	f.Add("", 1)
	f.Add("\n\n", 2)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 1 || limit > maxLines {
			return
		}
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		for offset := 1; offset <= len(lines); offset += limit {
			got, err := cut("f", text, offset, limit)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Join(lines[offset-1:min(offset-1+limit, len(lines))], "")
			if len(want) <= maxOutput && !strings.HasPrefix(got, want) {
				t.Fatalf("%q from %d, %d lines: got %q, want it to begin with %q", text, offset, limit, got, want)
			}
		}
	})
}
