package fs

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// seedVariable chooses where the random parts of the search begin.
const seedVariable = "FS_TEST_CRASH_SEED"

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
	l := &life{t: t, key: k, rec: &recording{base: scratch(t), deaf: deaf}}
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

// search looks at every state that a power loss may leave at any moment of l, which
// began on the disk p with the sight first, and gives the first ones that are wrong.
// also, if not nil, gets each state that is right.
func (l *life) search(rnd *rand.Rand, p *platters, first sight, also func(wreck, []sight)) (tried int, wrong []string) {
	l.t.Helper()
	seen := map[string]bool{}
	at := -1 // the last step that was over
	for n := 0; n <= len(l.rec.changes) && len(wrong) < 5; n++ {
		if n > 0 {
			p.apply(l.rec.changes[n-1])
		}
		for at+1 < len(l.steps) && l.steps[at+1].end <= n {
			at++
		}
		may, name := []sight{first}, "before the first step"
		if at >= 0 {
			may, name = []sight{l.steps[at].after}, "after "+l.steps[at].name
		}
		if at+1 < len(l.steps) && l.steps[at+1].begin < n {
			may, name = append(may, l.steps[at+1].after), "in "+l.steps[at+1].name
		}
		p.wrecks(rnd, func(w wreck) {
			sum := w.sum()
			id := fmt.Sprintf("%x %d", sum, at)
			if seen[id] || len(wrong) >= 5 {
				return
			}
			seen[id] = true
			tried++
			if why := l.reopen(w, may); why != "" {
				wrong = append(wrong, fmt.Sprintf("state %d, change %d of %d, step %d, %s: %s", tried, n, len(l.rec.changes), at, name, why))
			} else if also != nil {
				also(w, may)
			}
		})
	}
	return tried, wrong
}

// reopen says what is wrong with a store in the state w, or "". It must be one of
// the sights in may, and go on from there.
func (l *life) reopen(w wreck, may []sight) string {
	t := l.t
	ctx := t.Context()
	dir, err := os.MkdirTemp(l.rec.base, "wreck-")
	wantKind(t, "make a folder", err, nil)
	defer func() { wantKind(t, "clear", os.RemoveAll(dir), nil) }()
	w.write(t, dir)
	// A clock that was set back must not give a birth again (S-12).
	s, err := Open(Config{Dir: filepath.Join(dir, "data", "store"), Clock: func() time.Time { return time.Unix(1000, 0) }})
	if err != nil {
		return fmt.Sprintf("open: %v", err)
	}
	defer func() { wantKind(t, "close", s.Close(), nil) }()
	got, err := see(t, s, l.key, 0)
	if err != nil {
		return fmt.Sprintf("read: %v", err)
	}
	found := -1
	for i, m := range may {
		if got.absent == m.absent && got.record == m.record && got.signals == m.signals {
			found = i
		}
	}
	if found < 0 {
		return fmt.Sprintf("got %+v, want one of %+v", got, may)
	}
	if got.absent {
		ack, err := s.Create(ctx, l.key, commit(store.Mark{}, "new"))
		if err != nil {
			return fmt.Sprintf("create: %v", err)
		}
		if ack.Mark.Birth <= may[found].birth {
			return fmt.Sprintf("the birth %v is not after the one before, %v", ack.Mark.Birth, may[found].birth)
		}
		return ""
	}
	rep, err := s.Check(ctx, l.key)
	if err != nil || len(rep.Findings) > 0 {
		return fmt.Sprintf("check: got %v, %v", rep.Findings, err)
	}
	return goOn(t, s, l.key, got)
}

// goOn owns the record, commits and releases, and reads all of it again.
func goOn(t *testing.T, s *Store, k store.Key, before sight) string {
	ctx := t.Context()
	rec, err := s.Load(ctx, k)
	if err != nil {
		return fmt.Sprintf("load again: %v", err)
	}
	f := store.Fence{}
	if !k.Kind.Shared() {
		if f, rec, err = s.Acquire(ctx, k, store.Claim{Owner: "next", Run: uuid.NewString(), Seen: rec.Mark}); err != nil {
			return fmt.Sprintf("acquire: %v", err)
		}
	}
	c := commit(rec.Mark, "next", "next entry")
	ack, err := s.Commit(ctx, k, f, c)
	if err != nil {
		return fmt.Sprintf("commit: %v", err)
	}
	if !k.Kind.Shared() {
		if err := s.Release(ctx, k, f); err != nil {
			return fmt.Sprintf("release: %v", err)
		}
	}
	other, err := Open(Config{Dir: s.desc.Location})
	if err != nil {
		return fmt.Sprintf("open again: %v", err)
	}
	defer func() { wantKind(t, "close", other.Close(), nil) }()
	after, err := see(t, other, k, 0)
	if err != nil {
		return fmt.Sprintf("read again: %v", err)
	}
	_, log, _ := strings.Cut(before.record, "\n")
	want := fmt.Sprintf("%v %q last %s ", ack.Mark, "next", c.ID)
	if head, rest, _ := strings.Cut(after.record, "\n"); !strings.HasPrefix(head, want) || rest != log+fmt.Sprintf("%d %d %q\n", ack.LogLength, ack.Mark.Revision, "next entry") {
		return fmt.Sprintf("after one more commit: got %s\n%s, want %s and the log before with one entry more", head, rest, want)
	}
	if rep, err := other.Check(ctx, k); err != nil || len(rep.Findings) > 0 {
		return fmt.Sprintf("check again: got %v, %v", rep.Findings, err)
	}
	return ""
}

func crashSeed(t *testing.T) uint64 {
	t.Helper()
	v := os.Getenv(seedVariable)
	if v == "" {
		return 1
	}
	return must[uint64](t)(strconv.ParseUint(v, 10, 64))
}

func TestAPowerLossAtAnyMomentLeavesWholeCommitsAndAllAcknowledgedOnes(t *testing.T) {
	for name, live := range lives {
		t.Run(name, func(t *testing.T) {
			seed := crashSeed(t)
			rnd := rand.New(rand.NewPCG(seed, 0))
			l := live(t, nil)
			var again []aftermath
			kinds := map[string]bool{}
			tried, wrong := l.search(rnd, newPlatters(thorough), sight{absent: true}, func(w wreck, may []sight) {
				if kind := w.kind(); !may[0].absent && !kinds[kind] {
					kinds[kind] = true
					again = append(again, aftermath{w, may})
				}
			})
			rnd.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			again = again[:min(len(again), mostAgain)]
			twice := 0
			for _, a := range again {
				n, bad := a.again(t, l.key, rnd)
				twice += n
				wrong = append(wrong, bad...)
			}
			for _, w := range wrong {
				t.Errorf("seed %d: %s", seed, w)
			}
			t.Logf("%d steps, %d changes on the disk: %d states reopened; from %d of them %d states after a second power loss (%s=%d)",
				len(l.steps), len(l.rec.changes), tried, len(again), twice, seedVariable, seed)
		})
	}
}

// mostAgain is how many states, each of another kind, lose power again while they recover.
const mostAgain = 6

// aftermath is a state after a power loss, and what may be seen in it.
type aftermath struct {
	w   wreck
	may []sight
}

// kind says which files are there, and whether a journal ends blank: states of one
// kind recover in much the same way.
func (w wreck) kind() string {
	var names []string
	for name, b := range w {
		name = filepath.Base(name)
		if b == nil {
			continue
		}
		for _, prefix := range []string{"owner-", signalPrefix, tornPrefix, disk.TempPrefix} {
			if strings.HasPrefix(name, prefix) {
				name = prefix
			}
		}
		if strings.HasPrefix(name, "journal-") {
			name += fmt.Sprint(isBlank(b[max(0, len(b)-2):]), strings.Count(string(b), format.HeaderStart), len(b)%sector == 0)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// again recovers from a power loss, and loses power at any moment of that.
func (a aftermath) again(t *testing.T, k store.Key, rnd *rand.Rand) (tried int, wrong []string) {
	base := scratch(t)
	a.w.write(t, base)
	l := &life{t: t, key: k, rec: &recording{base: base}}
	s, err := open(Config{Dir: filepath.Join(base, "data", "store")}, l.rec)
	wantKind(t, "open", err, nil)
	l.s, s.ahead = s, 2<<10
	first := must[sight](t)(see(t, s, k, a.may[0].birth))
	if first.absent { // a deletion that was under way is done
		wantKind(t, "close", s.Close(), nil)
		return 0, nil
	}
	rec := must[store.Record](t)(s.Load(t.Context(), k))
	l.mark = rec.Mark
	if !k.Kind.Shared() {
		l.acquire(claim("next"))
	}
	l.commit(700, "next")
	if !k.Kind.Shared() {
		l.release()
	}
	wantKind(t, "close", s.Close(), nil)
	return l.search(rnd, a.w.platters(), first, nil)
}

// platters is a disk that holds w, all of it flushed.
func (w wreck) platters() *platters {
	p := newPlatters(brisk)
	for _, name := range slices.Sorted(maps.Keys(w)) {
		f := p.folder(filepath.Dir(name))
		var x any = newFolder()
		if b := w[name]; b != nil {
			x = &inode{durable: b, now: bytes.Clone(b)}
		}
		f.durable[filepath.Base(name)], f.now[filepath.Base(name)] = x, x
	}
	return p
}

// A store that leaves a flush out is caught, whichever it is: so the search sees
// what it is there for.
func TestThePowerLossSearchMissesNoFlush(t *testing.T) {
	for name, deaf := range map[string]func(disk.Change) bool{
		"no flush of any file": func(c disk.Change) bool { return c.Kind == disk.Synced },
		"no flush of journals": func(c disk.Change) bool {
			return c.Kind == disk.Synced && strings.HasPrefix(filepath.Base(c.File.Name()), "journal-")
		},
		"no flush of what is put in place whole": func(c disk.Change) bool {
			return c.Kind == disk.Synced && strings.HasPrefix(filepath.Base(c.File.Name()), disk.TempPrefix)
		},
		"no flush of names": func(c disk.Change) bool { return c.Kind == disk.SyncedDir },
		"no flush of the store's own name": func(c disk.Change) bool {
			return c.Kind == disk.SyncedDir && filepath.Base(c.Path) == "data"
		},
		"no flush of a kind's name": func(c disk.Change) bool {
			return c.Kind == disk.SyncedDir && filepath.Base(c.Path) == "store"
		},
		"no flush of names in a record": func(c disk.Change) bool {
			return c.Kind == disk.SyncedDir && len(filepath.Base(c.Path)) == 64
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lives["a session"](t, deaf)
			tried, wrong := l.search(rand.New(rand.NewPCG(crashSeed(t), 0)), newPlatters(thorough), sight{absent: true}, nil)
			if len(wrong) == 0 {
				t.Errorf("%d states were reopened and all of them were right, want a wrong one", tried)
			}
		})
	}
}
