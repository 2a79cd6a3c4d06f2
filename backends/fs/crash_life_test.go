package fs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// life is a scenario: what is done to one record, and after each step what a
// reader sees of it.
type life struct {
	t     *testing.T
	s     *Store
	key   store.Key
	rec   *recording
	fence store.Fence
	mark  store.Mark
	steps []stage
	birth store.Birth // of the record as it is or was last

	effort effort
}

// stage is what was done between two changes of the recording, and what is true then.
type stage struct {
	name       string
	begin, end int
	after      sight
}

// sight is all that a reader sees of a record.
type sight struct {
	absent  bool        // or deleted
	birth   store.Birth // of the record, or of the last one that was here
	record  string      // mark, head, log, fence, generation, last commit
	signals string
}

func see(t testing.TB, s *Store, k store.Key, birth store.Birth) (sight, error) {
	t.Helper()
	rec, err := s.Load(t.Context(), k)
	if errors.Is(err, store.ErrNotFound) {
		return sight{absent: true, birth: birth}, nil
	}
	if err != nil {
		return sight{}, err
	}
	out := sight{birth: rec.Mark.Birth}
	var b strings.Builder
	fmt.Fprintf(&b, "%v %q last %s fence %v generation %s released %t\n", rec.Mark, rec.Head, rec.LastCommitID, rec.Fence, rec.Generation, rec.Released)
	for from := uint64(1); from <= rec.LogLength; {
		page, err := s.ReadLog(t.Context(), k, from, 0)
		if err != nil {
			return sight{}, err
		}
		if len(page.Entries) == 0 {
			return sight{}, fmt.Errorf("entry %d of %d is missing", from, rec.LogLength)
		}
		for _, e := range page.Entries {
			fmt.Fprintf(&b, "%d %d %q\n", e.Seq, e.Revision, e.Data)
			from = e.Seq + 1
		}
	}
	out.record = b.String()
	for _, sig := range rec.Signals {
		out.signals += fmt.Sprintf("%s %s %q %s\n", sig.Kind, sig.Run, sig.Reason, sig.Time)
	}
	return out, nil
}

// newLife opens a store in a folder two levels below base. The space ahead is
// small, so that commits of all sizes cross its end.
func newLife(t *testing.T, k store.Key, deaf func(disk.Change) bool) *life {
	t.Helper()
	l := &life{t: t, key: k, rec: &recording{base: scratch(t), deaf: deaf}, effort: thorough}
	l.do("open", func() {
		s, err := open(Config{Dir: filepath.Join(l.rec.base, "data", "store")}, l.rec)
		wantKind(t, "open", err, nil)
		t.Cleanup(func() { wantKind(t, "close", s.Close(), nil) })
		s.ahead = 2 << 10
		l.s = s
	})
	return l
}

// do makes one step.
func (l *life) do(name string, act func()) {
	l.t.Helper()
	begin := l.rec.count()
	act()
	seen := must[sight](l.t)(see(l.t, l.s, l.key, l.birth))
	l.birth = seen.birth
	l.steps = append(l.steps, stage{name, begin, l.rec.count(), seen})
}

func (l *life) create(head string, entries ...string) {
	l.t.Helper()
	l.do("create", func() {
		l.mark = must[store.Ack](l.t)(l.s.Create(l.t.Context(), l.key, commit(store.Mark{}, head, entries...))).Mark
	})
}

func (l *life) acquire(c store.Claim) {
	l.t.Helper()
	l.do("acquire", func() { l.fence, _ = acquire(l.t, l.s, l.key, c) })
}

func (l *life) commit(size int, entries ...string) {
	l.t.Helper()
	head := fmt.Sprintf(`{"n":%d,"fill":%q}`, len(l.steps), strings.Repeat("x", size))
	l.do(fmt.Sprintf("commit of %d bytes", size), func() {
		l.mark = must[store.Ack](l.t)(l.s.Commit(l.t.Context(), l.key, l.fence, commit(l.mark, head, entries...))).Mark
	})
}

// commitTo makes a commit whose frame ends so many bytes behind a sector's border.
func (l *life) commitTo(share int) {
	l.t.Helper()
	made := func(fill int) store.Commit { return commit(l.mark, strconv.Quote(strings.Repeat("x", fill))) }
	r := l.s.records[l.key]
	m := r.commitMeta(made(0), l.fence)
	m.Time = r.time()
	h, _, err := r.st.frame(format.Commit, m, parts(made(0))...)
	wantKind(l.t, "try the frame", err, nil)
	fill := (share - int(h.End())) % sector
	if fill < 0 {
		fill += sector
	}
	l.do(fmt.Sprintf("commit to %d bytes behind a border", share), func() {
		l.mark = must[store.Ack](l.t)(l.s.Commit(l.t.Context(), l.key, l.fence, made(fill))).Mark
	})
	if got := (int(r.st.end)%sector + sector - share) % sector; got != 0 {
		l.t.Fatalf("the frame ends at byte %d, want %d behind a border", r.st.end, share)
	}
}

func (l *life) resolve(id string) {
	l.t.Helper()
	l.do("resolve", func() {
		f := l.fence
		if l.key.Kind.Shared() {
			f = store.Fence{Birth: l.mark.Birth}
		}
		l.mark = must[store.Outcome](l.t)(l.s.Resolve(l.t.Context(), l.key, f, id)).Ack.Mark
	})
}

func (l *life) signal(k store.SignalKind) {
	l.t.Helper()
	l.do("signal "+string(k), func() {
		wantKind(l.t, "signal", l.s.Signal(l.t.Context(), l.key, store.Signal{Kind: k, Run: l.fence.Run, Reason: "enough", Time: time.Unix(1, 0)}), nil)
	})
}

func (l *life) release() {
	l.t.Helper()
	l.do("release", func() { wantKind(l.t, "release", l.s.Release(l.t.Context(), l.key, l.fence), nil) })
}

func (l *life) delete() {
	l.t.Helper()
	l.do("delete", func() {
		f := l.fence
		if l.key.Kind.Shared() {
			f = store.Fence{Birth: l.mark.Birth}
		}
		wantKind(l.t, "delete", l.s.Delete(l.t.Context(), l.key, f), nil)
	})
}

// lives are the scenarios.
var lives = map[string]func(*testing.T, func(disk.Change) bool) *life{
	"a session": func(t *testing.T, deaf func(disk.Change) bool) *life {
		l := newLife(t, key, deaf)
		l.create("{}", "first")
		l.acquire(claim("a"))
		l.commit(10, "one", "\xff\n\x00")
		l.commit(700)
		l.commit(1400, strings.Repeat("entry ", 300), "three")
		l.resolve(uuid.NewString())
		l.signal(store.SignalStop)
		l.commit(1, "four")
		l.release()
		l.acquire(claim("b"))
		l.commit(300, "five")
		l.acquire(force(claim("c"))) // a take-over
		l.signal(store.SignalCancel)
		l.commit(900)
		l.delete()
		l.create("again", "other")
		l.acquire(claim("d"))
		l.commit(5, "six")
		l.release()
		l.acquire(claim("e"))
		l.delete()
		return l
	},
	"a session whose commit lock is gone past": func(t *testing.T, deaf func(disk.Change) bool) *life {
		l := newLife(t, key, deaf)
		l.create("{}", "first")
		l.acquire(claim("a"))
		l.commit(100, "one")
		lock := must[*os.File](t)(os.Open(filepath.Join(l.rec.base, "data", "store", folderPath(key), lockName(1))))
		defer func() { wantKind(t, "close", lock.Close(), nil) }()
		if ok, err := disk.TryLock(lock); !ok || err != nil {
			t.Fatalf("hold the commit lock: got %v, %v", ok, err)
		}
		l.acquire(force(claim("b")))
		l.commit(600, "two")
		l.release()
		l.acquire(claim("c"))
		l.commit(5)
		return l
	},
	"a session whose frames end around the borders of sectors": func(t *testing.T, deaf func(disk.Change) bool) *life {
		l := newLife(t, key, deaf)
		l.create("{}")
		l.acquire(claim("a"))
		for share := -9; share <= 9; share++ {
			l.commitTo(share)
		}
		return l
	},
	"a long session": func(t *testing.T, deaf func(disk.Change) bool) *life {
		l := newLife(t, key, deaf)
		l.effort = brisk // its commits are all alike; it is about the index
		l.create("{}")
		l.acquire(claim("a"))
		for range indexEvery + 4 {
			l.commit(1)
		}
		l.release()
		l.acquire(claim("b"))
		l.commit(1)
		l.delete()
		l.create("again")
		return l
	},
	"a shared record": func(t *testing.T, deaf func(disk.Change) bool) *life {
		l := newLife(t, store.Key{Kind: store.KindScope, ID: "shared"}, deaf)
		l.create("{}", "first")
		l.commit(10, "one")
		l.commit(9000, "two")
		l.commit(9000)
		l.resolve(uuid.NewString())
		l.commit(1, "three")
		l.delete()
		l.create("again")
		l.commit(1)
		return l
	},
}
