package fs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/host/store"
)

// faults fails the n-th write or flush of journals, counted from 1; 0: none.
type faults struct {
	fail  string // "write", "short write", "flush", "lost flush"
	after int
	seen  int
	spent bool
}

type faultyFile struct {
	disk.File
	f       *faults
	flushed bool // the one failure of this descriptor was reported
	held    []byte
	at      int64
}

func (f *faults) due(what string) bool {
	if f.after == 0 || f.spent || !strings.HasSuffix(f.fail, what) {
		return false
	}
	f.seen++
	f.spent = f.seen == f.after
	return f.spent
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if f.f.due("write") {
		n := 0
		if f.f.fail == "short write" {
			n = len(b) / 2
			if _, err := f.File.WriteAt(b[:n], off); err != nil {
				return 0, err
			}
		}
		return n, &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	if f.f.fail == "lost flush" && !f.f.spent {
		// Remember what was there, to lose the write as a dropped page does.
		f.held, f.at = make([]byte, len(b)), off
		if n, err := f.File.ReadAt(f.held, off); err != nil {
			f.held = f.held[:n]
		}
	}
	return f.File.WriteAt(b, off)
}

// WriteThrough is a write and a flush, each of which may be the one that fails.
func (f *faultyFile) WriteThrough(b []byte, off int64) error {
	if _, err := f.WriteAt(b, off); err != nil {
		return err
	}
	if err := f.flushFault(); err != nil {
		return err
	}
	return f.File.WriteThrough(b, off)
}

func (f *faultyFile) Flush() error {
	if err := f.flushFault(); err != nil {
		return err
	}
	return f.File.Flush()
}

func (f *faultyFile) flushFault() error {
	if f.f.due("flush") {
		f.flushed = true
		if f.f.fail == "lost flush" {
			if _, err := f.File.WriteAt(f.held, f.at); err != nil {
				return err
			}
		}
		return &fs.PathError{Op: "flush", Path: f.Name(), Err: syscall.EIO}
	}
	if f.flushed {
		return errors.New("flushed again on the descriptor whose flush failed")
	}
	return nil
}

// The i-th write or flush fails, for i = 1, 2, … until a whole life of a record
// meets no failure any more. After each failure the caller does what the error says.
func TestEveryFailingWriteOrFlushLeavesTheLastWholeCommitOrTheNext(t *testing.T) {
	for _, what := range []string{"write", "short write", "flush", "lost flush"} {
		t.Run("a "+what, func(t *testing.T) {
			for i := 1; ; i++ {
				f := &faults{fail: what, after: i}
				lifeWithFault(t, f)
				if !f.spent {
					if i < 4 {
						t.Errorf("only %d operations were tried, want more", i-1)
					}
					return
				}
			}
		})
	}
}

func lifeWithFault(t *testing.T, f *faults) {
	t.Helper()
	ctx := t.Context()
	place := fmt.Sprintf("%s number %d", f.fail, f.after)
	s := openStore(t, scratch(t))
	s.ahead = 1 << 10 // so that commits extend the file too
	s.wrap = func(file disk.File) disk.File { return &faultyFile{File: file, f: f} }
	last := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "0")))
	c := claim("me")
	fence, _, err := s.Acquire(ctx, key, c)
	if err != nil {
		wantFault(t, place+", acquire", err)
		fence, _, err = s.Acquire(ctx, key, c)
		wantKind(t, place+", acquire again", err, nil)
	}
	for n := range 4 {
		c := commit(last.Mark, strings.Repeat("x", 300)+fmt.Sprint(n), "entry")
		ack, err := s.Commit(ctx, key, fence, c)
		if err != nil {
			wantFault(t, fmt.Sprintf("%s, commit %d", place, n), err)
			ack = recover1(t, s, place, fence, c, err)
		}
		if ack.Mark.Revision <= last.Mark.Revision {
			t.Fatalf("%s, commit %d: got revision %d after %d", place, n, ack.Mark.Revision, last.Mark.Revision)
		}
		last = ack
		other := openStore(t, s.desc.Location)
		if rec := must[store.Record](t)(other.Load(ctx, key)); rec.Mark != last.Mark || string(rec.Head) != string(c.Head) {
			t.Fatalf("%s, commit %d: another handle sees %+v, want %+v", place, n, rec.Mark, last.Mark)
		}
		if rep := must[store.CheckReport](t)(other.Check(ctx, key)); len(rep.Findings) > 0 {
			t.Fatalf("%s, commit %d: findings %v", place, n, rep.Findings)
		}
	}
	if err := s.Release(ctx, key, fence); err != nil {
		wantFault(t, place+", release", err)
		if _, _, err := s.Acquire(ctx, key, force(claim("me"))); err != nil {
			t.Fatalf("%s, an acquire after the release failed: %v", place, err)
		}
	}
}

// recover1 does what the error of a commit says.
func recover1(t *testing.T, s *Store, place string, f store.Fence, c store.Commit, err error) store.Ack {
	t.Helper()
	ctx := t.Context()
	if errors.Is(err, store.ErrUnknownOutcome) {
		next := c
		next.ID = uuid.NewString()
		if _, err := s.Commit(ctx, key, f, next); err == nil {
			t.Fatalf("%s: a commit on the unsettled descriptor was accepted", place)
		}
		out := must[store.Outcome](t)(s.Resolve(ctx, key, f, c.ID))
		if out.Applied {
			return out.Ack
		}
		c.After = out.Ack.Mark
		c.ID = uuid.NewString()
	}
	return must[store.Ack](t)(s.Commit(ctx, key, f, c))
}

func wantFault(t *testing.T, what string, err error) {
	t.Helper()
	var path *fs.PathError
	if !errors.As(err, &path) || !strings.Contains(path.Path, "journal-") {
		t.Errorf("%s: got %v, want an error that names the file", what, err)
	}
	if k := store.KindOf(err); k != store.ErrUnavailable && k != store.ErrUnknownOutcome {
		t.Errorf("%s: got kind %v, want unavailable or unknown outcome", what, k)
	}
}

func TestALostFlushOfAnAcknowledgedLookingCommitIsDetected(t *testing.T) {
	ctx := t.Context()
	s := openStore(t, scratch(t))
	first := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "0")))
	fence, _ := acquire(t, s, key, claim("me"))
	second := must[store.Ack](t)(s.Commit(ctx, key, fence, commit(first.Mark, "1")))
	s.mu.Lock()
	r := s.records[key]
	s.mu.Unlock()
	// The disk forgets the last frame, as a drive that lies about flushes does.
	_, err := r.journal.WriteAt(filler(r.st.end-r.st.last), r.st.last)
	wantKind(t, "forget", err, nil)
	_, err = s.Commit(ctx, key, fence, commit(second.Mark, "2"))
	wantKind(t, "a commit on a lost state", err, store.ErrRegressed)
	if rec := must[store.Record](t)(s.Load(ctx, key)); rec.Mark != first.Mark {
		t.Errorf("got %+v, want the state before, %+v", rec.Mark, first.Mark)
	}
}
