package fs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/host/store"
)

// queueLife does to a queue what can be done to it, and keeps what is true after each step.
type queueLife struct {
	rec   *recording
	steps []queueStage
}

type queueStage struct {
	name       string
	begin, end int
	after      string
}

func newQueueLife(t *testing.T, deaf func(disk.Change) bool) *queueLife {
	t.Helper()
	l := &queueLife{rec: &recording{base: scratch(t), deaf: deaf}}
	s, err := open(Config{Dir: filepath.Join(l.rec.base, "data", "store")}, l.rec)
	wantKind(t, "open", err, nil)
	defer func() { wantKind(t, "close", s.Close(), nil) }()
	do := func(name string, act func() error) {
		t.Helper()
		begin := l.rec.count()
		wantKind(t, name, act(), nil)
		l.steps = append(l.steps, queueStage{name, begin, l.rec.count(), must[string](t)(contents(t, s))})
	}
	enqueue := func(id string, size int) {
		do("enqueue "+id, func() error {
			return s.Enqueue(t.Context(), dispatches, store.Item{ID: id, Data: []byte(strings.Repeat(id, size))})
		})
	}
	var held []store.Leased
	take := func(max int) {
		do(fmt.Sprint("lease ", max), func() (err error) {
			held, err = s.Lease(t.Context(), dispatches, "w", time.Hour, max)
			return err
		})
	}
	enqueue("a", 10)
	enqueue("b", 900)
	enqueue("c", 2000)
	take(2)
	do("extend", func() error { return s.Extend(t.Context(), dispatches, held[0].Token, 2*time.Hour) })
	do("done", func() error { return s.Done(t.Context(), dispatches, held[0].Token) })
	do("return", func() error { return s.Return(t.Context(), dispatches, held[1].Token) })
	take(1)
	do("write the journal anew", func() error {
		return s.onQueue(t.Context(), "compact", dispatches, func(q *queue) error {
			if err := q.take(t.Context()); err != nil {
				return err
			}
			defer func() { wantKind(t, "unlock", disk.Unlock(q.lock), nil) }()
			return q.compact()
		})
	})
	enqueue("d", 30)
	return l
}

// search reopens every state that a power loss may leave at any moment of l.
func (l *queueLife) search(t *testing.T, rnd *rand.Rand) (tried int, wrong []string) {
	t.Helper()
	p := newPlatters(brisk)
	seen := map[string]bool{}
	at := -1
	for n := 0; n <= len(l.rec.changes) && len(wrong) < 3; n++ {
		if n > 0 {
			p.apply(l.rec.changes[n-1])
		}
		for at+1 < len(l.steps) && l.steps[at+1].end <= n {
			at++
		}
		may, name := []string{" | "}, "before the first step"
		if at >= 0 {
			may, name = []string{l.steps[at].after}, "after "+l.steps[at].name
		}
		if at+1 < len(l.steps) && l.steps[at+1].begin < n {
			may, name = append(may, l.steps[at+1].after), "in "+l.steps[at+1].name
		}
		p.wrecks(rnd, func(w wreck) {
			id := fmt.Sprintf("%x %d", w.sum(), at)
			if seen[id] || len(wrong) >= 3 {
				return
			}
			seen[id] = true
			tried++
			if why := reopenQueue(t, l.rec.base, w, may); why != "" {
				wrong = append(wrong, fmt.Sprintf("change %d of %d, %s: %s", n, len(l.rec.changes), name, why))
			}
		})
	}
	return tried, wrong
}

func reopenQueue(t *testing.T, base string, w wreck, may []string) string {
	t.Helper()
	dir, err := os.MkdirTemp(base, "wreck-")
	wantKind(t, "make a folder", err, nil)
	defer func() { wantKind(t, "clear", os.RemoveAll(dir), nil) }()
	w.write(t, dir)
	s, err := Open(Config{Dir: filepath.Join(dir, "data", "store")})
	if err != nil {
		return fmt.Sprintf("open: %v", err)
	}
	defer func() { wantKind(t, "close", s.Close(), nil) }()
	got, err := contents(t, s)
	if err != nil || !slices.Contains(may, got) {
		return fmt.Sprintf("got %q, %v, want one of %q", got, err, may)
	}
	if err := s.Enqueue(t.Context(), dispatches, store.Item{ID: "next"}); err != nil {
		return fmt.Sprintf("enqueue: %v", err)
	}
	other, err := Open(Config{Dir: s.desc.Location})
	if err != nil {
		return fmt.Sprintf("open again: %v", err)
	}
	defer func() { wantKind(t, "close", other.Close(), nil) }()
	after, err := contents(t, other)
	if want := strings.TrimSuffix(got, " ") + " next*0"; err != nil || after != want {
		return fmt.Sprintf("after one more item: got %q, %v, want %q", after, err, want)
	}
	return ""
}

func TestAPowerLossAtAnyMomentLeavesAQueueWithAllThatWasAcknowledged(t *testing.T) {
	seed := crashSeed(t)
	l := newQueueLife(t, nil)
	tried, wrong := l.search(t, rand.New(rand.NewPCG(seed, 0)))
	for _, w := range wrong {
		t.Errorf("seed %d: %s", seed, w)
	}
	t.Logf("%d steps, %d changes on the disk: %d states reopened (%s=%d)", len(l.steps), len(l.rec.changes), tried, seedVariable, seed)
}

// A process may be killed after it put a new journal in place and before it flushed that
// name. Whoever writes next flushes it first, or a power loss brings the old one back.
func TestANewQueueJournalOfAKilledProcessIsFlushedByTheNext(t *testing.T) {
	base := scratch(t)
	dir := filepath.Join(base, "store")
	s := openStore(t, dir)
	add(t, s, "a", "b")
	rec := &recording{base: base}
	other, err := open(Config{Dir: dir}, rec)
	wantKind(t, "open", err, nil)
	defer func() { wantKind(t, "close", other.Close(), nil) }()
	add(t, other, "c")
	journal := must[[]byte](t)(os.ReadFile(queueJournal(dir)))
	wantKind(t, "write", os.WriteFile(queueJournal(dir)+".new", journal, 0o600), nil)
	wantKind(t, "put in place", os.Rename(queueJournal(dir)+".new", queueJournal(dir)), nil)
	before := rec.count()
	add(t, other, "d")
	var done []string
	for _, c := range rec.changes[before:] {
		done = append(done, string(c.Kind))
	}
	if got, want := strings.Join(done, " "), "opened syncedDir wrote synced"; got != want {
		t.Errorf("the next change does %q, want %q", got, want)
	}
	if got, err := contents(t, s); err != nil || got != " | a*0 b*0 c*0 d*0" {
		t.Errorf("got %q, %v, want all four", got, err)
	}
}

// A queue that leaves a flush out is caught, whichever it is.
func TestThePowerLossSearchOfAQueueMissesNoFlush(t *testing.T) {
	synced := func(end string) func(disk.Change) bool {
		return func(c disk.Change) bool {
			return c.Kind == disk.SyncedDir && strings.HasSuffix(c.Path, end)
		}
	}
	for name, deaf := range map[string]func(disk.Change) bool{
		"no flush of the journal": func(c disk.Change) bool {
			return c.Kind == disk.Synced && filepath.Base(c.File.Name()) == queueJournalName
		},
		"no flush of a new journal": func(c disk.Change) bool {
			return c.Kind == disk.Synced && strings.HasPrefix(filepath.Base(c.File.Name()), disk.TempPrefix+queueJournalName)
		},
		"no flush of the queue's name":   synced(queuesName),
		"no flush of the queues' name":   synced("/store"),
		"no flush of the names in there": synced("/" + dispatches),
	} {
		t.Run(name, func(t *testing.T) {
			if tried, wrong := newQueueLife(t, deaf).search(t, rand.New(rand.NewPCG(crashSeed(t), 0))); len(wrong) == 0 {
				t.Errorf("%d states were reopened and all of them were right, want a wrong one", tried)
			}
		})
	}
}
