package fs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// FuzzJournal reads any bytes as a record's journal: every answer is a state
// whose chain holds, or an error of a kind.
func FuzzJournal(f *testing.F) {
	var st state
	m := format.Meta{Key: &key, Birth: 1, Commit: "c", Content: "x", Level: "power"}
	h, b, err := st.frame(format.Create, m, []byte("{}"), []byte("1"))
	if err != nil {
		f.Fatal(err)
	}
	if err := st.apply(key, h, m, [][]byte{[]byte("{}"), []byte("1")}); err != nil {
		f.Fatal(err)
	}
	fence := store.Fence{Birth: 1, Generation: "g", Owner: "o", Run: "r"}
	_, next, err := st.frame(format.Acquire, format.Meta{Fence: &fence})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(b)
	f.Add(append(append(b[:len(b):len(b)], next...), filler(600)...))
	f.Add(append(b[:len(b):len(b)], next[:100]...))
	f.Fuzz(func(t *testing.T, journal []byte) {
		dir := scratch(t)
		folder := filepath.Join(dir, folderPath(key))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, journalName(1)), journal, 0o600); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, dir)
		rec, err := s.Load(t.Context(), key)
		if err != nil && store.KindOf(err) == nil {
			t.Errorf("load: got %v, want an error of a kind", err)
		}
		if err == nil && rec.Mark.Revision == 0 {
			t.Errorf("load: got %+v without an error", rec)
		}
		if _, err := s.ReadLog(t.Context(), key, 1, 0); err != nil && store.KindOf(err) == nil {
			t.Errorf("readlog: got %v, want an error of a kind", err)
		}
		if _, err := s.Check(t.Context(), key); err != nil && store.KindOf(err) == nil {
			t.Errorf("check: got %v, want an error of a kind", err)
		}
		_, _, err = s.Acquire(t.Context(), key, claim("me"))
		if err != nil && store.KindOf(err) == nil {
			t.Errorf("acquire: got %v, want an error of a kind", err)
		}
	})
}
