package fs

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/host/store"
)

// platter is what of one journal a power loss leaves. A flush takes over what
// its own descriptor wrote since the flush before. A failed one takes over
// nothing, and what it should have taken is never tried again: so do kernels
// that mark pages clean after an error.
type platter struct {
	path    string
	durable []byte
	fail    int // so many flushes fail, once they are due
	due     bool
}

type platterFile struct {
	disk.File
	p       *platter
	written [][2]int64
}

func (p *platter) wrap(f disk.File) disk.File {
	p.path = f.Name()
	return &platterFile{File: f, p: p}
}

func (f *platterFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	f.written = append(f.written, [2]int64{off, off + int64(n)})
	return n, err
}

func (f *platterFile) WriteThrough(b []byte, off int64) error {
	before := f.written
	f.written = nil
	if _, err := f.WriteAt(b, off); err != nil {
		return err
	}
	err := f.Flush()
	f.written = before // is as durable as it was
	return err
}

func (f *platterFile) Flush() error {
	written := f.written
	f.written = nil
	if f.p.due && f.p.fail > 0 {
		f.p.fail--
		return &fs.PathError{Op: "flush", Path: f.Name(), Err: syscall.EIO}
	}
	for _, w := range written {
		if grow := w[1] - int64(len(f.p.durable)); grow > 0 {
			f.p.durable = append(f.p.durable, make([]byte, grow)...)
		}
		if _, err := f.File.ReadAt(f.p.durable[w[0]:w[1]], w[0]); err != nil {
			return err
		}
	}
	return nil
}

func TestWhatIsSettledAfterFailedFlushesSurvivesPowerLoss(t *testing.T) {
	for fail := 1; fail <= 3; fail++ {
		for _, how := range []string{"resolve", "the same commit again after an acquire", "another owner"} {
			t.Run(fmt.Sprintf("%d failures, %s", fail, how), func(t *testing.T) { settleAndLosePower(t, fail, how) })
		}
	}
}

func settleAndLosePower(t *testing.T, fail int, how string) {
	ctx := t.Context()
	s := openStore(t, scratch(t))
	p := &platter{fail: fail}
	first := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "0")))
	s.wrap = p.wrap
	f, _ := acquire(t, s, key, claim("me"))
	p.durable = must[[]byte](t)(os.ReadFile(p.path)) // all of it was flushed
	p.due = true
	c := commit(first.Mark, "1", "entry")
	_, err := s.Commit(ctx, key, f, c)
	wantKind(t, "the commit whose flush fails", err, store.ErrUnknownOutcome)
	var got store.Mark
	for try := 1; ; try++ {
		if got, err = settleBy(t, s, how, f, c); err == nil {
			break
		}
		if k := store.KindOf(err); k != store.ErrUnknownOutcome && k != store.ErrUnavailable {
			t.Fatalf("settling while flushes fail: got %v, want unknown outcome or unavailable", err)
		}
		if try > fail {
			t.Fatalf("%d flushes failed, and try %d still says %v", fail, try, err)
		}
	}
	if got.Revision != 2 {
		t.Errorf("settled at revision %d, want 2", got.Revision)
	}
	wantKind(t, "close", s.Close(), nil)
	wantKind(t, "power loss", os.WriteFile(p.path, p.durable, 0o600), nil)
	after := openStore(t, s.desc.Location)
	if rec := must[store.Record](t)(after.Load(ctx, key)); rec.Mark != got {
		t.Errorf("after the power loss: got %+v, want the settled %+v", rec.Mark, got)
	}
}

func settleBy(t *testing.T, s *Store, how string, f store.Fence, c store.Commit) (store.Mark, error) {
	t.Helper()
	ctx := t.Context()
	switch how {
	case "resolve":
		out, err := s.Resolve(ctx, key, f, c.ID)
		if err == nil && !out.Applied {
			t.Errorf("got %+v, want the commit, which everybody can read, applied", out)
		}
		return out.Ack.Mark, err
	case "another owner":
		_, rec, err := s.Acquire(ctx, key, force(claim("other")))
		return rec.Mark, err
	default:
		if _, _, err := s.Acquire(ctx, key, force(claim("other"))); err != nil {
			return store.Mark{}, err
		}
		ack, err := s.Commit(ctx, key, f, c)
		return ack.Mark, err
	}
}

func TestACommitAppliedLongAgoIsNeverResolvedAsNever(t *testing.T) {
	ctx := t.Context()
	s, first := newRecordHere(t)
	f, _ := acquire(t, s, key, claim("me"))
	old := commit(first.Mark, "old")
	want := must[store.Ack](t)(s.Commit(ctx, key, f, old))
	lost := uuid.NewString()
	out := must[store.Outcome](t)(s.Resolve(ctx, key, f, lost))
	last := out.Ack.Mark
	revived := commit(last, "revived")
	revived.ID = lost
	_, err := s.Commit(ctx, key, f, revived)
	wantKind(t, "the id that was resolved as never, on the new state", err, store.ErrCommitIDReused)
	for range 3 * rememberedCommits {
		last = must[store.Ack](t)(s.Commit(ctx, key, f, commit(last, "n"))).Mark
	}
	for name, s := range map[string]*Store{"the same handle": s, "another handle": openStore(t, s.desc.Location)} {
		if out := must[store.Outcome](t)(s.Resolve(ctx, key, f, old.ID)); !out.Applied || out.Ack.Mark != want.Mark || out.Ack.LogLength != want.LogLength {
			t.Errorf("%s: got %+v, want it applied as %+v", name, out, want)
		}
		if out := must[store.Outcome](t)(s.Resolve(ctx, key, f, lost)); out.Applied || out.Ack.Mark != last {
			t.Errorf("%s: got %+v, want it never applied and the record where it was, %+v", name, out, last)
		}
	}
}
