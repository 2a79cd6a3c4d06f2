package fs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loophost/loophost/host/store"
)

func TestAFullDiskIsStillRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	wantKind(t, "mkdir", os.Mkdir(dir, 0o700), nil)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Logf("no small filesystem can be mounted (%v); what stands in for it is that a full disk's errors pass", err)
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
			wantKind(t, "full", passFull(&os.PathError{Err: errno}), nil)
		}
		return
	}
	defer func() { wantKind(t, "unmount", syscall.Unmount(dir, 0), nil) }()
	s, err := Open(Config{Dir: dir})
	wantKind(t, "open", err, nil)
	first := must[store.Ack](t)(s.Create(t.Context(), key, commit(store.Mark{}, "1", "entry")))
	wantKind(t, "close", s.Close(), nil)
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want the disk full", err)
	}
	s, err = Open(Config{Dir: dir})
	wantKind(t, "open on the full disk", err, nil)
	defer func() { wantKind(t, "close", s.Close(), nil) }()
	if rec := must[store.Record](t)(s.Load(t.Context(), key)); rec.Mark != first.Mark {
		t.Errorf("got %+v, want %+v", rec.Mark, first.Mark)
	}
	if page := must[store.LogPage](t)(s.ReadLog(t.Context(), key, 1, 0)); len(page.Entries) != 1 {
		t.Errorf("got %d entries, want 1", len(page.Entries))
	}
	_, _, err = s.Acquire(t.Context(), key, claim("me"))
	wantKind(t, "an acquire on the full disk", err, store.ErrUnavailable)
}

func TestAPlaceThatCantBeAStoreIsNamedForWhatItIs(t *testing.T) {
	dangling, circle := filepath.Join(t.TempDir(), "dangling"), filepath.Join(t.TempDir(), "circle")
	wantKind(t, "link", os.Symlink("nowhere", dangling), nil)
	wantKind(t, "link", os.Symlink("circle", circle), nil)
	for _, c := range []struct {
		dir, says string
		kind      error
	}{
		{"/proc/self", "on proc", store.ErrUnsupported},
		{"/proc", "on proc", store.ErrUnsupported},
		{dangling, "symbolic link that leads to no folder", store.ErrUnavailable},
		{circle, "symbolic link that leads to no folder", store.ErrUnavailable},
	} {
		_, err := Open(Config{Dir: c.dir})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %v that says %q", c.dir, err, c.kind, c.says)
		}
	}
	_, err := Open(Config{Dir: "/proc/self", Insist: true})
	wantKind(t, "insisting where no file can be made", err, store.ErrUnavailable)
}
