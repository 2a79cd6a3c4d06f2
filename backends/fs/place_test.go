package fs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

func TestAnyIDIsStoredAndListedBackExactly(t *testing.T) {
	ctx := t.Context()
	s := openStore(t, scratch(t))
	ids := []string{
		"a", "A", "..", ".", "../x", "/", "a/b", `a\b`, "\x00", "a\x00b", "\n", " ", "con", "NUL", "aux.txt", "é", "e\u0301", "\ufffd", "\u2028",
		"<&>", "\"", "日本", strings.Repeat("/", 256), strings.Repeat("é", 128), "-rf", "~", "*", "id.json",
	}
	want := map[string]string{}
	for _, id := range ids {
		must[store.Ack](t)(s.Create(ctx, store.SessionKey(id), commit(store.Mark{}, "of "+id)))
		want[id] = "of " + id
	}
	got := map[string]string{}
	q := store.Query{Kind: store.KindSession, Limit: 3}
	for {
		page := must[store.ListPage](t)(s.List(ctx, q))
		for _, i := range page.Items {
			wantKind(t, "listed", i.Err, nil)
			got[i.Record.Key.ID] = string(i.Record.Head)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("listed records differ (-want +got):\n%s", d)
	}
	for _, id := range []string{"", "\xff", strings.Repeat("x", 257)} {
		_, err := s.Create(ctx, store.SessionKey(id), commit(store.Mark{}, "x"))
		wantKind(t, "an id of "+id, err, store.ErrInvalidID)
	}
	if page := must[store.ListPage](t)(s.List(ctx, store.Query{Kind: store.KindScope})); len(page.Items) != 0 {
		t.Errorf("another kind lists %+v, want nothing", page.Items)
	}
}

func TestPayloadsComeBackByteForByte(t *testing.T) {
	ctx, dir := t.Context(), scratch(t)
	s := openStore(t, dir)
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	c := store.Commit{ID: uuid.NewString(), Head: []byte(`{"n":9007199254740993,"u":"\u0000","h":"<&>"}`), Entries: [][]byte{
		all, {}, []byte("\n"), []byte("{\n}"), []byte("1e1000"), []byte(`"\ud800"`), []byte(" {} "), []byte("\xff\xfe"), []byte(`"YQ=="`), []byte("{}\r"), all[:10],
	}}
	must[store.Ack](t)(s.Create(ctx, key, c))
	wantKind(t, "close", s.Close(), nil)
	s = openStore(t, dir)
	if rec := must[store.Record](t)(s.Load(ctx, key)); string(rec.Head) != string(c.Head) {
		t.Errorf("got head %q, want %q", rec.Head, c.Head)
	}
	for i, e := range must[store.LogPage](t)(s.ReadLog(ctx, key, 1, 0)).Entries {
		if string(e.Data) != string(c.Entries[i]) {
			t.Errorf("entry %d: got %q, want %q", i, e.Data, c.Entries[i])
		}
	}
}

func TestFoldersAndFilesAreTheOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := openStore(t, dir)
	last := must[store.Ack](t)(s.Create(t.Context(), key, commit(store.Mark{}, "1")))
	f, _ := acquire(t, s, key, claim("me"))
	for range 70 {
		last = must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(last.Mark, "n")))
	}
	wantKind(t, "signal", s.Signal(t.Context(), key, store.Signal{Kind: store.SignalStop, Run: f.Run}), nil)
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: got mode %v, want %v", path, got, want)
		}
		return nil
	})
	wantKind(t, "walk", err, nil)
	if files < 6 { // id, lock, journal, index, owner, signal
		t.Errorf("got %d files, want at least 6", files)
	}
}

func TestALinkOutOfTheRootIsNotFollowed(t *testing.T) {
	ctx, outside := t.Context(), t.TempDir()
	for _, name := range []string{"session", "session/" + format.Folder(key)[:2], folderPath(key), folderPath(key) + "/lock-1", folderPath(key) + "/journal-1.jsonl"} {
		dir := scratch(t)
		s := openStore(t, dir)
		wantKind(t, "mkdir", os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), nil)
		wantKind(t, "link", os.Symlink(filepath.Join(outside, "target"), filepath.Join(dir, name)), nil)
		wantKind(t, "target", os.MkdirAll(filepath.Join(outside, "target"), 0o700), nil)
		_, err := s.Create(ctx, key, commit(store.Mark{}, "1"))
		if name == folderPath(key)+"/journal-1.jsonl" {
			// A rename puts the journal in the link's place; a link is never written through.
			if err != nil && !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: got %v, want unavailable or a journal in the link's place", name, err)
			}
		} else {
			wantKind(t, name, err, store.ErrUnavailable)
		}
		if left := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(outside, "target"))); len(left) > 0 {
			t.Errorf("%s: %v was written outside", name, left)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	wantKind(t, "link", os.Symlink(scratch(t), link), nil)
	s := openStore(t, link)
	must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "1")))
}

func TestAFolderThatCantBeUsedGivesOneClearError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	wantKind(t, "write", os.WriteFile(file, nil, 0o600), nil)
	for name, dir := range map[string]string{"no name": "", "a file": file, "below a file": file + "/x", "a special folder": "/proc/self"} {
		_, err := Open(Config{Dir: dir})
		if k := store.KindOf(err); k != store.ErrUnavailable && k != store.ErrUnsupported {
			t.Errorf("%s: got %v, want unavailable or unsupported", name, err)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %q, want one line", name, err)
		}
	}
}

func TestOnlyKnownFilesystemsArePromisedAnything(t *testing.T) {
	for _, c := range []struct {
		m      disk.Medium
		insist bool
		want   store.Level
		err    error
	}{
		{disk.Medium{Type: "ext4", Level: store.LevelPower, Known: true}, false, store.LevelPower, nil},
		{disk.Medium{Type: "tmpfs", Level: store.LevelProcess, Known: true}, false, store.LevelProcess, nil},
		{disk.Medium{Type: "tmpfs", Level: store.LevelProcess, Known: true}, true, store.LevelProcess, nil},
		{disk.Medium{Type: "nfs", Known: true}, false, store.LevelNone, store.ErrUnsupported},
		{disk.Medium{Type: "nfs", Known: true}, true, store.LevelProcess, nil},
		{disk.Medium{Type: "type 0x1234"}, false, store.LevelNone, store.ErrUnsupported},
		{disk.Medium{Type: "type 0x1234"}, true, store.LevelProcess, nil},
	} {
		level, how, err := promise(c.m, c.insist)
		if level != c.want || !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
			t.Errorf("%+v insist %v: got %v, %v, want %v, %v", c.m, c.insist, level, err, c.want, c.err)
		}
		if err != nil {
			how = err.Error()
		}
		if !strings.Contains(how, c.m.Type) {
			t.Errorf("%+v: %q does not name the type", c.m, how)
		}
	}
}

func TestMoreIsRequiredThanTheFolderReaches(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := commit(store.Mark{}, "1")
	c.Require = store.Durability{Level: store.LevelPower, Replicas: 1}
	_, err := s.Create(t.Context(), key, c)
	wantKind(t, "a create that needs a replica", err, store.ErrNotDurable)
	_, err = s.Load(t.Context(), key)
	wantKind(t, "a load", err, store.ErrNotFound)
}

// hold takes the commit lock through another handle, as a stopped process would keep it.
func hold(t *testing.T, dir string, k store.Key) *record {
	t.Helper()
	r := newRecord(openStore(t, dir), k)
	wantKind(t, "take the commit lock", r.begin(t.Context(), time.Minute), nil)
	t.Cleanup(func() { wantKind(t, "close", r.close(), nil) })
	return r
}

func TestReadersAndSignalsDoNotWaitForTheCommitLock(t *testing.T) {
	ctx := t.Context()
	s, first := newRecordHere(t)
	f, _ := acquire(t, s, key, claim("me"))
	hold(t, s.desc.Location, key)
	other := openStore(t, s.desc.Location)
	if rec := must[store.Record](t)(other.Load(ctx, key)); rec.Mark != first.Mark || rec.Holder == nil {
		t.Errorf("got %+v, want the record with its holder", rec)
	}
	must[store.LogPage](t)(other.ReadLog(ctx, key, 1, 0))
	wantKind(t, "renew", s.Renew(ctx, key, f, 0), nil)
	wantKind(t, "signal", other.Signal(ctx, key, store.Signal{Kind: store.SignalCancel, Run: f.Run}), nil)
	_, _, err := other.Acquire(ctx, key, claim("b"))
	wantKind(t, "an acquire beside the live owner", err, store.ErrBusy)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = s.Commit(short, key, f, commit(first.Mark, "2"))
	wantKind(t, "a commit that waits until its context ends", err, context.DeadlineExceeded)
}

func newRecordHere(t *testing.T) (*Store, store.Ack) {
	t.Helper()
	s := openStore(t, scratch(t))
	return s, must[store.Ack](t)(s.Create(t.Context(), key, commit(store.Mark{}, "0", "e")))
}

func TestWhoeverIsGonePastDoesNotReportSuccess(t *testing.T) {
	ctx := t.Context()
	s, first := newRecordHere(t)
	f, _ := acquire(t, s, key, claim("me"))
	slow := hold(t, s.desc.Location, key) // has read the state, and stops
	g, _ := acquire(t, s, key, force(claim("other")))
	second := must[store.Ack](t)(s.Commit(ctx, key, g, commit(first.Mark, "new owner")))
	late := commit(first.Mark, "late")
	_, err := slow.commit(f, late) // wakes, and still believes in its fence
	wantKind(t, "the commit of the one gone past", err, store.ErrUnknownOutcome)
	_, err = slow.s.Resolve(ctx, key, f, late.ID)
	wantKind(t, "its resolution", err, store.ErrFenced)
	rec := must[store.Record](t)(openStore(t, s.desc.Location).Load(ctx, key))
	if rec.Mark != second.Mark || rec.Fence != g {
		t.Errorf("got %+v under %+v, want the new owner's %+v", rec.Mark, rec.Fence, second.Mark)
	}
}

func TestAWatchSendsSignalsPostedThroughAnotherHandle(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, _ := newRecordHere(t)
	f, _ := acquire(t, s, key, claim("me"))
	ch := must[<-chan store.Signal](t)(s.WatchSignals(ctx, key, f))
	sig := store.Signal{Kind: store.SignalStop, Run: f.Run, Reason: "enough", Time: time.Unix(5, 0).UTC()}
	wantKind(t, "signal", openStore(t, s.desc.Location).Signal(ctx, key, sig), nil)
	if got := <-ch; !cmp.Equal(got, sig) {
		t.Errorf("watched %+v, want %+v", got, sig)
	}
	cancel()
	if _, open := <-ch; open {
		t.Error("the watch is open after its context ended, want it closed")
	}
	_, err := s.WatchSignals(t.Context(), key, store.Fence{})
	wantKind(t, "a watch without a fence", err, store.ErrFenced)
}

func TestAClosedStoreAnswersUnavailable(t *testing.T) {
	s, _ := newRecordHere(t)
	ch := must[<-chan store.Signal](t)(func() (<-chan store.Signal, error) {
		f, _ := acquire(t, s, key, claim("me"))
		return s.WatchSignals(t.Context(), key, f)
	}())
	wantKind(t, "close", s.Close(), nil)
	if _, open := <-ch; open {
		t.Error("the watch is open after Close, want it closed")
	}
	_, err := s.Load(t.Context(), key)
	wantKind(t, "load", err, store.ErrUnavailable)
	wantKind(t, "close again", s.Close(), nil)
}

func TestManyRecordsDoNotKeepManyFilesOpen(t *testing.T) {
	s := openStore(t, scratch(t))
	for range 3 * idleRecords {
		must[store.Ack](t)(s.Create(t.Context(), store.SessionKey(uuid.NewString()), commit(store.Mark{}, "1")))
	}
	if n := len(s.records); n > idleRecords+1 {
		t.Errorf("got %d records open, want at most %d", n, idleRecords+1)
	}
}

func TestAnImportOfTheLargestCommitComesBack(t *testing.T) {
	ctx, dir := t.Context(), scratch(t)
	s := openStore(t, dir)
	c := store.Commit{ID: uuid.NewString(), Head: []byte("{}")}
	for i := range 4 {
		c.Entries = append(c.Entries, []byte(strings.Repeat(string(rune('a'+i)), store.MaxEntryBytes-1)))
	}
	ack := must[store.Ack](t)(s.Create(ctx, key, c))
	f, _ := acquire(t, s, key, claim("me"))
	wantKind(t, "release", s.Release(ctx, key, f), nil)
	s = openStore(t, dir)
	if rec := must[store.Record](t)(s.Load(ctx, key)); rec.Mark != ack.Mark || rec.LogLength != 4 {
		t.Errorf("got %+v with %d entries, want %+v with 4", rec.Mark, rec.LogLength, ack.Mark)
	}
	for i := range c.Entries {
		page := must[store.LogPage](t)(s.ReadLog(ctx, key, uint64(i+1), 0))
		if len(page.Entries) != 1 || string(page.Entries[0].Data) != string(c.Entries[i]) {
			t.Errorf("page %d has %d entries or other bytes, want one entry (8 MiB and at least one)", i, len(page.Entries))
		}
	}
	f, _ = acquire(t, s, key, claim("me"))
	c.ID, c.After = uuid.NewString(), ack.Mark
	must[store.Ack](t)(s.Commit(ctx, key, f, c))
	c.ID, c.Entries = uuid.NewString(), append(c.Entries, []byte("over the limit"))
	_, err := s.Commit(ctx, key, f, c)
	wantKind(t, "a commit over the limit", err, store.ErrTooLarge)
}

func TestAFolderTakenAwayUnderAHandleIsNotWrittenTo(t *testing.T) {
	ctx := t.Context()
	s, first := newRecordHere(t)
	f, _ := acquire(t, s, key, claim("me"))
	folder := filepath.Join(s.desc.Location, folderPath(key))
	wantKind(t, "remove", os.RemoveAll(folder), nil)
	_, err := s.Commit(ctx, key, f, commit(first.Mark, "3"))
	wantKind(t, "a commit to a removed folder", err, store.ErrNotFound)
	_, err = s.Load(ctx, key)
	wantKind(t, "a load", err, store.ErrNotFound)
}
