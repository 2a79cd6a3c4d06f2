package fs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// sample is a record with its folder's files in memory, and the states that it went through.
type sample struct {
	folder string
	files  map[string][]byte
	heads  map[store.Mark]string // what each acknowledged state holds
	last   store.Ack
	fence  store.Fence
}

// newSample makes a record with a few commits; released or as after a crash.
func newSample(t *testing.T, k store.Key, released bool) sample {
	t.Helper()
	ctx, dir := t.Context(), scratch(t)
	s := openStore(t, dir)
	s.ahead = 4 << 10
	sm := sample{folder: filepath.Join(dir, folderPath(k)), files: map[string][]byte{}, heads: map[store.Mark]string{}}
	sm.last = must[store.Ack](t)(s.Create(ctx, k, commit(store.Mark{}, "1", "entry")))
	sm.heads[sm.last.Mark] = "1"
	if !k.Kind.Shared() {
		sm.fence, _ = acquire(t, s, k, claim("me"))
	}
	for _, head := range []string{`{"n":2}`, "three\n", `"` + strings.Repeat("4", 900) + `"`} {
		sm.last = must[store.Ack](t)(s.Commit(ctx, k, sm.fence, commit(sm.last.Mark, head, head)))
		sm.heads[sm.last.Mark] = head
	}
	if released {
		wantKind(t, "release", s.Release(ctx, k, sm.fence), nil)
	}
	wantKind(t, "close", s.Close(), nil)
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(sm.folder)) {
		sm.files[e.Name()] = must[[]byte](t)(os.ReadFile(filepath.Join(sm.folder, e.Name())))
	}
	return sm
}

// with is a store that holds the sample with one file changed. Nothing is flushed for it.
func (sm sample) with(t *testing.T, k store.Key, name string, content []byte) *Store {
	t.Helper()
	dir := scratch(t)
	folder := filepath.Join(dir, folderPath(k))
	wantKind(t, "mkdir", os.MkdirAll(folder, 0o700), nil)
	for n, b := range sm.files {
		if n == name {
			b = content
		}
		wantKind(t, "write", os.WriteFile(filepath.Join(folder, n), b, 0o600), nil)
	}
	return openStore(t, dir)
}

// scratch is a folder in memory where there is one: these tests make thousands of stores.
func scratch(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err != nil {
		return t.TempDir()
	}
	dir := must[string](t)(os.MkdirTemp("/dev/shm", "fs-test-"))
	t.Cleanup(func() { wantKind(t, "remove", os.RemoveAll(dir), nil) })
	return dir
}

// verify says what is wrong with the answers of a damaged store, or "". Deep
// also asks for the log and for a commit.
func (sm sample) verify(t *testing.T, s *Store, k store.Key, deep bool) (wrong string, kind error) {
	t.Helper()
	ctx := t.Context()
	rec, err := s.Load(ctx, k)
	kind = store.KindOf(err)
	if err != nil && kind == nil {
		return "an error of no kind: " + err.Error(), kind
	}
	if kind == nil && rec.Mark != sm.last.Mark {
		return "it is called whole and is not in its last state", kind
	}
	if rec.Mark.Revision > 0 {
		if head, known := sm.heads[rec.Mark]; !known || head != string(rec.Head) {
			return "it shows a state that was never acknowledged", kind
		}
	}
	if !deep {
		return "", kind
	}
	page, err := s.ReadLog(ctx, k, 1, 0)
	if err == nil && kind != nil {
		return "its log is called whole", kind
	}
	for i, e := range page.Entries {
		want := []string{"entry", `{"n":2}`, "three\n", `"` + strings.Repeat("4", 900) + `"`}[i]
		if string(e.Data) != want || e.Seq != uint64(i+1) || e.Revision != uint64(i+1) {
			return "its log has an entry that was never written", kind
		}
	}
	if kind != nil {
		if _, err := s.Commit(ctx, k, sm.fence, commit(sm.last.Mark, "more")); err == nil {
			return "it accepts a commit", kind
		}
	}
	return "", kind
}

func TestEveryFlippedByteOfAJournalIsCorruption(t *testing.T) {
	for _, c := range []struct {
		name     string
		key      store.Key
		released bool
	}{
		{"of a released record", key, true},
		{"of a record in use", key, false},
		{"of a shared record", store.Key{Kind: store.KindScope, ID: "scope"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			sm := newSample(t, c.key, c.released)
			const name = "journal-1.jsonl"
			whole := sm.files[name]
			end := len(bytes.TrimRight(whole, "\n")) + 1
			s := sm.with(t, c.key, name, whole)
			path := filepath.Join(s.desc.Location, folderPath(c.key), name)
			f := must[*os.File](t)(os.OpenFile(path, os.O_RDWR, 0))
			defer func() { wantKind(t, "close", f.Close(), nil) }()
			flips := []byte{1, 0x80, 0xff, 0x20}
			for i := range end {
				flip := flips[i%len(flips)]
				_, err := f.WriteAt([]byte{whole[i] ^ flip}, int64(i))
				wantKind(t, "flip", err, nil)
				forgetAll(s)
				wrong, kind := sm.verify(t, s, c.key, i%16 == 0)
				if !errors.Is(kind, store.ErrCorrupt) || wrong != "" {
					t.Fatalf("byte %d of %d xor %#x: got %v, want %v; %s", i, end, flip, kind, store.ErrCorrupt, wrong)
				}
				_, err = f.WriteAt(whole[i:i+1], int64(i))
				wantKind(t, "restore", err, nil)
			}
			forgetAll(s)
			if wrong, kind := sm.verify(t, s, c.key, true); kind != nil || wrong != "" {
				t.Errorf("restored: got %v, want a whole record; %s", kind, wrong)
			}
		})
	}
}

// forgetAll makes a handle read everything anew, as one just opened would.
func forgetAll(s *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		s.drop(r)
	}
}

func TestEveryTruncationOfAJournalIsCorruption(t *testing.T) {
	for _, released := range []bool{true, false} {
		sm := newSample(t, key, released)
		const name = "journal-1.jsonl"
		whole := sm.files[name]
		end := len(bytes.TrimRight(whole, "\n")) + 1
		s := sm.with(t, key, name, whole)
		path := filepath.Join(s.desc.Location, folderPath(key), name)
		for length := end; length >= 0; length-- {
			if length == len(whole) {
				continue // released: not cut at all
			}
			wantKind(t, "cut", os.Truncate(path, int64(length)), nil)
			forgetAll(s)
			wrong, kind := sm.verify(t, s, key, length%16 == 0)
			if !errors.Is(kind, store.ErrCorrupt) || wrong != "" {
				t.Errorf("released %v, cut to %d of %d: got %v, want %v; %s", released, length, end, kind, store.ErrCorrupt, wrong)
			}
		}
	}
}

func TestEveryFlippedByteOfTheOtherFilesIsFoundOrHarmless(t *testing.T) {
	sm := newSample(t, key, true)
	for _, c := range []struct {
		name  string
		load  error
		check bool // Check must find it
	}{
		{"released-1.json", store.ErrCorrupt, true},
		{idName, nil, false}, // a flip may change the letter case of a JSON key, which changes nothing
	} {
		whole := sm.files[c.name]
		if len(whole) == 0 {
			t.Fatalf("the sample has no %s: %v", c.name, sm.files)
		}
		s := sm.with(t, key, c.name, whole)
		for i := range whole {
			b := bytes.Clone(whole)
			b[i] ^= 1
			wantKind(t, "write", os.WriteFile(filepath.Join(s.desc.Location, folderPath(key), c.name), b, 0o600), nil)
			forgetAll(s)
			wrong, kind := sm.verify(t, s, key, true)
			if !errors.Is(kind, c.load) || wrong != "" {
				t.Errorf("%s, byte %d: got %v, want %v; %s", c.name, i, kind, c.load, wrong)
			}
			rep := must[store.CheckReport](t)(s.Check(t.Context(), key))
			k, err := format.ParseKey(b, format.Folder(key))
			if found := len(rep.Findings) > 0; found != (c.check || err != nil || k != key) && c.name != idName {
				t.Errorf("%s, byte %d: findings %v", c.name, i, rep.Findings)
			} else if c.name == idName && found != (err != nil) {
				t.Errorf("%s, byte %d: findings %v, want them only if the id is another", c.name, i, rep.Findings)
			}
		}
	}
}

// tear gives the journal as a power loss in the write of its last frame could
// leave it: the sectors of keep are on the disk, the others are still filler.
func tear(whole []byte, from, end int, keep func(sector int) bool) []byte {
	b := bytes.Clone(whole)
	for off := from; off < end; off++ {
		if !keep(off/sector - from/sector) {
			b[off] = format.Filler
		}
	}
	return b
}

func TestATornWriteIsSetAsideAndTheLastWholeCommitIsTheState(t *testing.T) {
	sm := newSample(t, key, false)
	const name = "journal-1.jsonl"
	whole := sm.files[name]
	end := len(bytes.TrimRight(whole, "\n")) + 1
	from := bytes.LastIndex(whole, []byte(format.HeaderStart))
	sectors := (end-1)/sector - from/sector + 1
	torn, harsh := 0, 0
	for mask := range 1 << sectors {
		if mask == 1<<sectors-1 {
			continue // all there
		}
		b := tear(whole, from, end, func(s int) bool { return mask>>s&1 == 1 })
		s := sm.with(t, key, name, b)
		ctx := t.Context()
		rec, err := s.Load(ctx, key)
		if errors.Is(err, store.ErrCorrupt) {
			harsh++ // too little is missing to be sure; an operator decides
			continue
		}
		wantKind(t, "load", err, nil)
		if rec.Mark.Revision != sm.last.Mark.Revision-1 || string(rec.Head) != "three\n" {
			t.Fatalf("sectors %b: got revision %d with head %q, want %d with %q", mask, rec.Mark.Revision, rec.Head, sm.last.Mark.Revision-1, "three\n")
		}
		_, _, err = s.Acquire(ctx, key, store.Claim{Owner: "x", Run: sm.fence.Run, Seen: sm.last.Mark})
		wantKind(t, "an acquire that saw the lost commit", err, store.ErrRegressed)
		used := len(bytes.TrimRight(b[from:end], "\n"))
		if used == 0 {
			continue // nothing to set aside
		}
		torn++
		rep := must[store.CheckReport](t)(s.Check(ctx, key))
		if len(rep.Findings) != 0 || len(rep.SetAside) != 1 {
			t.Errorf("sectors %b, before the next write: got %+v, want one torn tail and no findings", mask, rep)
		}
		f, rec := acquire(t, s, key, claim("next"))
		next := must[store.Ack](t)(s.Commit(ctx, key, f, commit(rec.Mark, "next")))
		rep = must[store.CheckReport](t)(s.Check(ctx, key))
		if len(rep.Findings) != 0 || len(rep.SetAside) != 1 {
			t.Fatalf("sectors %b, after the next write: got %+v, want one torn tail and no findings", mask, rep)
		}
		kept := must[[]byte](t)(os.ReadFile(rep.SetAside[0]))
		if d := cmp.Diff(b[from:from+used], kept); d != "" {
			t.Errorf("sectors %b: the kept tail differs (-want +got):\n%s", mask, d)
		}
		again := openStore(t, s.desc.Location)
		if rec := must[store.Record](t)(again.Load(ctx, key)); rec.Mark != next.Mark {
			t.Errorf("sectors %b: reopened at %+v, want %+v", mask, rec.Mark, next.Mark)
		}
	}
	if torn == 0 || harsh > torn/4 {
		t.Errorf("of the torn tails %d were set aside and %d called corrupt, want nearly all set aside", torn, harsh)
	}
}

func TestATornTailIsCorruptionAfterACleanRelease(t *testing.T) {
	for name, tail := range map[string]string{
		"short":                  format.HeaderStart,
		"with sectors of filler": format.HeaderStart + strings.Repeat("\n", 3*sector) + "x",
	} {
		sm := newSample(t, key, true)
		const journal = "journal-1.jsonl"
		s := sm.with(t, key, journal, append(bytes.Clone(sm.files[journal]), tail...))
		if wrong, kind := sm.verify(t, s, key, true); !errors.Is(kind, store.ErrCorrupt) || wrong != "" {
			t.Errorf("%s: got %v, want %v; %s", name, kind, store.ErrCorrupt, wrong)
		}
	}
}

func TestATornFrameWithAWholeOneBehindItIsCorruption(t *testing.T) {
	sm := newSample(t, key, false)
	const name = "journal-1.jsonl"
	whole := sm.files[name]
	last := bytes.LastIndex(whole, []byte(format.HeaderStart))
	from := bytes.LastIndex(whole[:last], []byte(format.HeaderStart))
	for _, lost := range []int{0, 1} {
		b := tear(whole, from, last, func(s int) bool { return s != lost })
		s := sm.with(t, key, name, b)
		if wrong, kind := sm.verify(t, s, key, true); !errors.Is(kind, store.ErrCorrupt) || wrong != "" {
			t.Errorf("sector %d lost: got %v, want %v; %s", lost, kind, store.ErrCorrupt, wrong)
		}
	}
}

func TestASwappedFrameBreaksTheChain(t *testing.T) {
	sm := newSample(t, key, false)
	other := newSample(t, key, false)
	const name = "journal-1.jsonl"
	a, b := sm.files[name], bytes.Clone(other.files[name])
	from := bytes.LastIndex(b, []byte(format.HeaderStart))
	if at := bytes.LastIndex(a, []byte(format.HeaderStart)); at != from {
		t.Fatalf("the samples' last frames begin at %d and %d, want the same place", at, from)
	}
	copy(a[from:], b[from:])
	s := sm.with(t, key, name, a)
	_, err := s.Load(t.Context(), key)
	wantKind(t, "load of a journal whose last, whole frame is another journal's", err, store.ErrCorrupt)
}

func TestADamagedRecordIsListedWithItsError(t *testing.T) {
	sm := newSample(t, key, true)
	b := bytes.Clone(sm.files["journal-1.jsonl"])
	b[len(b)/2] ^= 1
	s := sm.with(t, key, "journal-1.jsonl", b)
	must[store.Ack](t)(s.Create(t.Context(), store.SessionKey("whole"), commit(store.Mark{}, "1")))
	page := must[store.ListPage](t)(s.List(t.Context(), store.Query{Kind: store.KindSession}))
	got := map[string]error{}
	for _, i := range page.Items {
		got[i.Record.Key.ID] = store.KindOf(i.Err)
	}
	if d := cmp.Diff(map[string]string{"whole": "", key.ID: store.ErrCorrupt.Error()}, text(got)); d != "" {
		t.Errorf("listed errors differ (-want +got):\n%s", d)
	}
}

func text(in map[string]error) map[string]string {
	out := map[string]string{}
	for k, err := range in {
		out[k] = ""
		if err != nil {
			out[k] = err.Error()
		}
	}
	return out
}
