package fs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/host/store"
)

// seedVariable chooses where the random parts of the search begin.
const seedVariable = "FS_TEST_CRASH_SEED"

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
			tried, wrong := l.search(rnd, newPlatters(l.effort), sight{absent: true}, func(w wreck, may []sight) {
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

// A store that leaves a flush out is caught, whichever it is: so the search sees
// what it is there for.
func TestThePowerLossSearchMissesNoFlush(t *testing.T) {
	for name, deaf := range map[string]func(disk.Change) bool{
		"no flush of any file":      func(c disk.Change) bool { return c.Kind == disk.Synced },
		"no flush of a frame alone": func(c disk.Change) bool { return c.Kind == disk.SyncedPart },
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

// A frame is made durable alone. What a failed write of another handle left behind it
// must be gone before: nobody tells the writer of the next frame.
func TestNothingOfAFailedWriteComesBackBehindTheNextFrame(t *testing.T) {
	l := newLife(t, store.Key{Kind: store.KindScope, ID: "shared"}, nil)
	l.create("0")
	l.commit(1)
	f := &faults{fail: "short write"}
	failing, err := open(Config{Dir: l.s.desc.Location}, l.rec)
	wantKind(t, "open", err, nil)
	defer func() { wantKind(t, "close", failing.Close(), nil) }()
	failing.wrap = func(file disk.File) disk.File { return &faultyFile{File: file, f: f} }
	f.after = 2 // the first writes the last frame, which is another's, once more
	l.do("a long commit that fails", func() {
		_, err := failing.Commit(t.Context(), l.key, store.Fence{}, commit(l.mark, strings.Repeat("x", 4_000)))
		wantKind(t, "a long commit", err, store.ErrUnavailable)
	})
	l.commit(1)
	tried, wrong := l.search(rand.New(rand.NewPCG(crashSeed(t), 0)), newPlatters(thorough), sight{absent: true}, nil)
	for _, w := range wrong {
		t.Errorf("of %d states: %s", tried, w)
	}
}

// Space that another handle wrote ahead and could not flush is flushed before a frame
// goes into it: a frame is made durable alone, and a file that ends with it was cut short.
func TestSpaceThatAnotherHandleWroteAheadIsFlushedBeforeItIsUsed(t *testing.T) {
	l := newLife(t, store.Key{Kind: store.KindScope, ID: "shared"}, nil)
	l.create("0")
	l.commit(1)
	f := &faults{fail: "flush"}
	failing, err := open(Config{Dir: l.s.desc.Location}, l.rec)
	wantKind(t, "open", err, nil)
	defer func() { wantKind(t, "close", failing.Close(), nil) }()
	failing.wrap = func(file disk.File) disk.File { return &faultyFile{File: file, f: f} }
	f.after = 2 // the first is of the last frame, which is another's
	l.do("a commit whose space is not flushed", func() {
		_, err := failing.Commit(t.Context(), l.key, store.Fence{}, commit(l.mark, strings.Repeat("x", stepShared)))
		wantKind(t, "a commit beyond the space", err, store.ErrUnavailable)
	})
	l.commit(stepShared)
	tried, wrong := l.search(rand.New(rand.NewPCG(crashSeed(t), 0)), newPlatters(brisk), sight{absent: true}, nil)
	for _, w := range wrong {
		t.Errorf("of %d states: %.300s", tried, w)
	}
}
