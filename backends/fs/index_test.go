package fs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// writeLong puts a record of n commits into a store's folder at once, as n
// commits one after the other would have left it, and gives its folder.
func writeLong(t testing.TB, s *Store, n int, payload int) (folder string, last store.Mark) {
	t.Helper()
	ctx := t.Context()
	must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "0", "0")))
	f, _, err := s.Acquire(ctx, key, claim("me"))
	wantKind(t, "acquire", err, nil)
	r := s.records[key]
	st := r.st
	var journal, index []byte
	entry := fmt.Appendf(nil, "%q", strings.Repeat("e", payload))
	for i := 2; i <= n; i++ {
		m := format.Meta{Commit: uuid.NewString(), Content: "x", Level: "power", Fence: &f}
		h, b, err := st.frame(format.Commit, m, []byte("{}"), entry)
		wantKind(t, "frame", err, nil)
		if st.sinceIndex >= indexEvery {
			index = st.indexLine(key).AppendTo(index)
			st.sinceIndex = 0
		}
		wantKind(t, "apply", st.apply(key, h, m, [][]byte{[]byte("{}"), entry}), nil)
		journal = append(journal, b...)
	}
	folder = filepath.Join(s.desc.Location, folderPath(key))
	_, err = r.journal.WriteAt(append(journal, filler(step)...), r.st.end)
	wantKind(t, "write", err, nil)
	wantKind(t, "write", os.WriteFile(filepath.Join(folder, indexName(1)), index, 0o600), nil)
	return folder, st.mark()
}

// counting counts what is read of a journal.
func bytesRead(t testing.TB, s *Store, do func()) int64 {
	t.Helper()
	c := &counter{}
	s.wrap = c.wrap
	do()
	return c.n
}

func TestALongRecordIsOpenedAndPagedWithoutReadingItAll(t *testing.T) {
	ctx, dir := t.Context(), scratch(t)
	s := openStore(t, dir)
	const n = 5000
	folder, last := writeLong(t, s, n, 1000)
	info := must[os.FileInfo](t)(os.Stat(filepath.Join(folder, "journal-1.jsonl")))
	some := info.Size() / 8
	for _, c := range []struct {
		name string
		do   func(*Store)
	}{
		{"load", func(s *Store) {
			if rec := must[store.Record](t)(s.Load(ctx, key)); rec.Mark != last || rec.LogLength != n || rec.Fence.IsZero() {
				t.Errorf("got %+v, want %+v with %d entries and the fence", rec, last, n)
			}
		}},
		{"the newest page", func(s *Store) {
			page := must[store.LogPage](t)(s.ReadLog(ctx, key, n-9, 0))
			if len(page.Entries) != 10 || page.Entries[0].Seq != n-9 || page.Entries[9].Revision != n {
				t.Errorf("got %d entries from %+v, want 10 from %d", len(page.Entries), page.Entries[0], n-9)
			}
		}},
		{"a page in the middle", func(s *Store) {
			page := must[store.LogPage](t)(s.ReadLog(ctx, key, 2500, 5))
			if len(page.Entries) != 5 || page.Entries[0].Seq != 2500 || page.Entries[0].Revision != 2500 {
				t.Errorf("got %+v, want 5 entries from 2500", page.Entries)
			}
		}},
	} {
		s := openStore(t, dir)
		if got := bytesRead(t, s, func() { c.do(s) }); got == 0 || got > some {
			t.Errorf("%s: read %d of %d bytes, want at most %d", c.name, got, info.Size(), some)
		}
	}
	s = openStore(t, dir)
	if rep := must[store.CheckReport](t)(s.Check(ctx, key)); len(rep.Findings) > 0 || rep.Commits != n || rep.Entries != n {
		t.Errorf("got %+v, want %d whole commits and entries", rep, n)
	}
}

func TestADamagedIndexIsNeverTrusted(t *testing.T) {
	ctx, dir := t.Context(), scratch(t)
	s := openStore(t, dir)
	const n = 400
	folder, last := writeLong(t, s, n, 10)
	name := filepath.Join(folder, indexName(1))
	whole := must[[]byte](t)(os.ReadFile(name))
	lines := len(whole) / format.LineLen
	if lines < 4 {
		t.Fatalf("got %d index entries for %d commits, want more", lines, n)
	}
	swapped := append(append([]byte{}, whole[format.LineLen:]...), whole[:format.LineLen]...)
	other := format.IndexLine{At: 100, Rev: 390, Log: 390, Birth: last.Birth, Key: format.KeySum(key)}.AppendTo(nil)
	for what, b := range map[string][]byte{
		"missing": nil, "empty": {}, "zeros": make([]byte, len(whole)), "cut": whole[:len(whole)-7], "in another order": swapped,
		"with a flipped bit at the end": flip(whole, len(whole)-60), "with a flipped bit at the front": flip(whole, 9),
		"with an entry that points nowhere": append(bytes.Clone(whole), other...),
	} {
		wantKind(t, "remove", os.Remove(name), nil)
		if b != nil {
			wantKind(t, "write", os.WriteFile(name, b, 0o600), nil)
		} else {
			wantKind(t, "write", os.WriteFile(name, nil, 0o600), nil)
		}
		s := openStore(t, dir)
		if rec := must[store.Record](t)(s.Load(ctx, key)); rec.Mark != last || rec.LogLength != n {
			t.Errorf("%s: got %+v, want %+v", what, rec, last)
		}
		for _, from := range []uint64{1, 70, 200, n} {
			page := must[store.LogPage](t)(s.ReadLog(ctx, key, from, 3))
			if len(page.Entries) == 0 || page.Entries[0].Seq != from || page.Entries[0].Revision != from {
				t.Errorf("%s: the page from %d begins with %+v", what, from, page.Entries)
			}
		}
	}
	wantKind(t, "remove", os.Remove(name), nil)
	other2 := openStore(t, dir)
	f, rec := acquire(t, other2, key, force(claim("next")))
	if got := must[[]byte](t)(os.ReadFile(name)); !bytes.Equal(got, whole) {
		t.Errorf("a missing index: got %d bytes rebuilt, want the %d that were there", len(got), len(whole))
	}
	seen := store.Mark{Birth: last.Birth, Revision: 137}
	for _, chain := range []string{"", "not it"} {
		seen.Chain = chain
		_, _, err := other2.Acquire(ctx, key, store.Claim{Owner: "x", Run: f.Run, Force: true, Seen: seen})
		if want := chain != ""; errors.Is(err, store.ErrRegressed) != want {
			t.Errorf("an acquire that saw chain %q at 137: got %v", chain, err)
		}
	}
	if rec.Mark != last {
		t.Errorf("got %+v, want %+v", rec.Mark, last)
	}
}

func flip(b []byte, i int) []byte {
	out := bytes.Clone(b)
	out[i] ^= 1
	return out
}

func TestAHundredThousandCommitsOpenInMilliseconds(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	ctx, dir := t.Context(), scratch(t)
	_, last := writeLong(t, openStore(t, dir), n, 200)
	best := time.Hour
	for range 5 {
		s := openStore(t, dir)
		start := time.Now()
		rec := must[store.Record](t)(s.Load(ctx, key))
		best = min(best, time.Since(start))
		if rec.Mark != last {
			t.Fatalf("got %+v, want %+v", rec.Mark, last)
		}
	}
	t.Logf("opened in %v", best)
	if best > 100*time.Millisecond {
		t.Errorf("the fastest of 5 openings took %v, want a few milliseconds", best)
	}
}
