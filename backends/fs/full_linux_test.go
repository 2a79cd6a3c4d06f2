package fs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loophost/loophost/host/store"
)

// fillUp commits until the store has no more room, and checks what is left.
func fillUp(t *testing.T, s *Store, room int) (store.Ack, error) {
	t.Helper()
	ctx := t.Context()
	last := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "0")))
	f, _ := acquire(t, s, key, claim("me"))
	head := strings.Repeat("x", 10<<10)
	for range room/len(head) + 1 {
		ack, err := s.Commit(ctx, key, f, commit(last.Mark, head, head))
		if err != nil {
			return last, err
		}
		last = ack
	}
	t.Fatalf("%d bytes were written into %d", room, room)
	return last, nil
}

func afterFull(t *testing.T, s *Store, last store.Ack, err error, want syscall.Errno) {
	t.Helper()
	var path *fs.PathError
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, want) || !errors.As(err, &path) || !strings.Contains(path.Path, "journal-1.jsonl") {
		t.Errorf("got %v, want %v with %v, naming the journal", err, store.ErrUnavailable, want)
	}
	if rec := must[store.Record](t)(s.Load(t.Context(), key)); rec.Mark != last.Mark {
		t.Errorf("got %+v after the failed commit, want the last whole one, %+v", rec.Mark, last.Mark)
	}
	if rep := must[store.CheckReport](t)(s.Check(t.Context(), key)); len(rep.Findings)+len(rep.SetAside) > 0 {
		t.Errorf("got %+v, want nothing half written", rep)
	}
}

func TestAFullDiskKeepsTheLastWholeCommit(t *testing.T) {
	const room = 1 << 20
	dir := filepath.Join(t.TempDir(), "small")
	wantKind(t, "mkdir", os.Mkdir(dir, 0o700), nil)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		// Not allowed here: the next test meets the same with a limit of the process.
		t.Logf("no small filesystem can be mounted (%v); the limit on the file's size stands in for it", err)
		limitedInProcess(t)
		return
	}
	defer func() { wantKind(t, "unmount", syscall.Unmount(dir, 0), nil) }()
	s, err := Open(Config{Dir: dir})
	wantKind(t, "open", err, nil)
	defer func() { wantKind(t, "close", s.Close(), nil) }()
	if d := must[store.Description](t)(s.Describe(t.Context())); d.Durability.Level != store.LevelProcess || !strings.Contains(d.Probe, "tmpfs") {
		t.Errorf("got durability %v because %q, want process because of tmpfs", d.Durability, d.Probe)
	}
	last, err := fillUp(t, s, room)
	afterFull(t, s, last, err, syscall.ENOSPC)
	_, err = s.Create(t.Context(), store.SessionKey("another"), commit(store.Mark{}, strings.Repeat("x", room/2)))
	wantKind(t, "a create on the full disk", err, store.ErrUnavailable)
	_, err = s.Load(t.Context(), store.SessionKey("another"))
	wantKind(t, "a load of what was not created", err, store.ErrNotFound)
}

func TestALimitOnTheFileSizeKeepsTheLastWholeCommit(t *testing.T) { limitedInProcess(t) }

// limitedInProcess lets another process run into a limit of its file size.
func limitedInProcess(t *testing.T) {
	t.Helper()
	s, _ := newRecordIn(t)
	p := startProcess(t, s.desc.Location, "sh", "-c", `ulimit -f 600; exec "$0"`)
	p.say("loop")
	for p.out.Scan() && strings.HasPrefix(p.out.Text(), "acked") {
	}
	if want := "ended " + store.ErrUnavailable.Error(); p.out.Text() != want {
		t.Fatalf("the other process says %q, want %q", p.out.Text(), want)
	}
	rep := must[store.CheckReport](t)(s.Check(t.Context(), key))
	if len(rep.Findings)+len(rep.SetAside) > 0 || rep.Revision < 100 {
		t.Errorf("got %+v, want hundreds of whole commits and nothing half written", rep)
	}
}

func TestAReadOnlyRemountGivesOneClearError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ro")
	wantKind(t, "mkdir", os.Mkdir(dir, 0o700), nil)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Logf("nothing can be mounted (%v); a folder without write permission stands in for it where permissions count", err)
		return
	}
	defer func() { wantKind(t, "unmount", syscall.Unmount(dir, syscall.MNT_DETACH), nil) }()
	s, err := Open(Config{Dir: dir})
	wantKind(t, "open", err, nil)
	first := must[store.Ack](t)(s.Create(t.Context(), key, commit(store.Mark{}, "1")))
	wantKind(t, "close", s.Close(), nil)
	wantKind(t, "remount", syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""), nil)
	_, err = Open(Config{Dir: dir})
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, syscall.EROFS) {
		t.Errorf("an open of a read-only folder: got %v, want %v with %v", err, store.ErrUnavailable, syscall.EROFS)
	}
	wantKind(t, "remount", syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, ""), nil)
	s = openStore(t, dir)
	wantKind(t, "remount", syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""), nil)
	if rec := must[store.Record](t)(s.Load(t.Context(), key)); rec.Mark != first.Mark {
		t.Errorf("a load after the read-only remount: got %+v, want %+v", rec.Mark, first.Mark)
	}
	_, _, err = s.Acquire(t.Context(), key, claim("me"))
	wantKind(t, "an acquire after the read-only remount", err, store.ErrUnavailable)
}
