package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

const dispatches = "dispatch"

func add(t testing.TB, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		wantKind(t, "enqueue "+id, s.Enqueue(t.Context(), dispatches, store.Item{ID: id, Data: []byte("data of " + id)}), nil)
	}
}

// lease takes one item, which must be there.
func lease(t testing.TB, s *Store, ttl time.Duration) store.Leased {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := must[[]store.Leased](t)(s.Lease(ctx, dispatches, "w", ttl, 1))
	if len(got) != 1 {
		t.Fatalf("lease of one: got %d items, want 1", len(got))
	}
	return got[0]
}

// contents are a queue's items as a handle sees them.
func contents(t testing.TB, s *Store) (string, error) {
	t.Helper()
	var leased, waiting []string
	err := s.onQueue(t.Context(), "look", dispatches, func(q *queue) error {
		if err := q.look(t.Context()); err != nil {
			return err
		}
		q.st.All(func(u *ledger.Unit[place]) {
			text := fmt.Sprintf("%s*%d", u.ID, u.Delivery)
			if u.Token != "" {
				leased = append(leased, text+" at "+u.Worker)
			} else {
				waiting = append(waiting, text)
			}
		})
		return nil
	})
	slices.Sort(leased)
	return strings.Join(leased, " ") + " | " + strings.Join(waiting, " "), err
}

func queueJournal(dir string) string {
	return filepath.Join(dir, queuesName, dispatches, queueJournalName)
}

// What a killed writer leaves of its line, whatever it is, is set aside; nobody was told
// of that change (S-7).
func TestAnUnfinishedQueueChangeIsSetAside(t *testing.T) {
	dir := scratch(t)
	s := openStore(t, dir)
	add(t, s, "a")
	whole := must[[]byte](t)(os.ReadFile(queueJournal(dir)))
	want := must[string](t)(contents(t, s))
	add(t, s, "b")
	all := must[[]byte](t)(os.ReadFile(queueJournal(dir)))
	for cut := len(whole) + 1; cut < len(all); cut++ {
		wantKind(t, "cut", os.WriteFile(queueJournal(dir), all[:cut], 0o600), nil)
		other := openStore(t, dir)
		if got, err := contents(t, other); err != nil || got != want {
			t.Fatalf("cut at byte %d of %d: got %q, %v, want %q", cut, len(all), got, err, want)
		}
		add(t, other, "c")
		if got, err := contents(t, other); err != nil || got != want+" c*0" {
			t.Fatalf("one more item after a cut at byte %d: got %q, %v, want %q", cut, got, err, want+" c*0")
		}
		torn := must[[]string](t)(filepath.Glob(filepath.Join(filepath.Dir(queueJournal(dir)), "torn-*")))
		if len(torn) != 1 {
			t.Fatalf("cut at byte %d: got %d files set aside, want 1", cut, len(torn))
		}
		if got := must[[]byte](t)(os.ReadFile(torn[0])); !bytes.Equal(got, all[len(whole):cut]) {
			t.Errorf("set aside: got %q, want %q", got, all[len(whole):cut])
		}
		wantKind(t, "remove", os.Remove(torn[0]), nil)
	}
	// The first handle, which saw the item that is gone, sees what is there now, though
	// the journal is as long as it was.
	add(t, s, "c")
	if got, err := contents(t, s); err != nil || got != want+" c*0" {
		t.Errorf("the handle from before: got %q, %v, want %q", got, err, want+" c*0")
	}
}

func TestADamagedQueueIsCorruptForThoseToWhoWait(t *testing.T) {
	dir := scratch(t)
	s := openStore(t, dir)
	add(t, s, "a", "b", "c")
	lease(t, s, time.Hour)
	whole := must[[]byte](t)(os.ReadFile(queueJournal(dir)))
	for _, at := range []int{0, 30, bytes.IndexByte(whole, '\n'), bytes.IndexByte(whole, '\n') + 40} {
		b := bytes.Clone(whole)
		b[at] ^= 1
		wantKind(t, "damage", os.WriteFile(queueJournal(dir), b, 0o600), nil)
		other := openStore(t, dir)
		_, err := other.Queued(t.Context(), dispatches)
		wantKind(t, fmt.Sprintf("count with byte %d changed", at), err, store.ErrCorrupt)
		_, err = other.Lease(t.Context(), dispatches, "w", time.Hour, 1)
		wantKind(t, fmt.Sprintf("lease with byte %d changed", at), err, store.ErrCorrupt)
		wantKind(t, "enqueue", other.Enqueue(t.Context(), dispatches, store.Item{ID: "d"}), store.ErrCorrupt)
		if got := must[[]byte](t)(os.ReadFile(queueJournal(dir))); !bytes.Equal(got, b) {
			t.Errorf("the damaged journal was changed")
		}
	}
	// What the error says to do helps, under open handles too.
	wantKind(t, "move away", os.Rename(queueJournal(dir), filepath.Join(dir, "damaged")), nil)
	add(t, s, "d")
	if l := lease(t, openStore(t, dir), time.Hour); l.ID != "d" {
		t.Errorf("after the journal was moved away: got %q, want d", l.ID)
	}
}

// A change costs the same whatever waits: one write, one flush.
func TestAQueueChangeWritesOnceAndFlushesOnce(t *testing.T) {
	c := costs{}
	s, err := open(Config{Dir: scratch(t)}, c)
	wantKind(t, "open", err, nil)
	defer func() { wantKind(t, "close", s.Close(), nil) }()
	add(t, s, "first")
	lease(t, s, time.Hour) // makes the file that says that this handle lives
	for _, waiting := range []int{1, 400} {
		for n := range waiting {
			add(t, s, fmt.Sprint(waiting, " ", n))
		}
		var l store.Leased
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"enqueue", func() { add(t, s, fmt.Sprint("new ", waiting)) }},
			{"lease", func() { l = lease(t, s, time.Hour) }},
			{"extend", func() { wantKind(t, "extend", s.Extend(t.Context(), dispatches, l.Token, time.Hour), nil) }},
			{"return", func() { wantKind(t, "return", s.Return(t.Context(), dispatches, l.Token), nil) }},
			{"lease again", func() { l = lease(t, s, time.Hour) }},
			{"done", func() { wantKind(t, "done", s.Done(t.Context(), dispatches, l.Token), nil) }},
		} {
			clear(c)
			step.do()
			if c[string(disk.Wrote)] != 1 || c[string(disk.Synced)] != 1 || len(c) != 2 {
				t.Errorf("%s with %d waiting costs %v, want one write and one flush", step.name, waiting, c)
			}
		}
	}
}

// What is past does not stay: the journal is written anew, and other handles follow.
func TestAQueueJournalIsWrittenAnewWhenMostOfItIsPast(t *testing.T) {
	dir := scratch(t)
	s, other := openStore(t, dir), openStore(t, dir)
	add(t, s, "stays", "leased", "returned")
	stays := lease(t, other, time.Hour)
	wantKind(t, "return", s.Return(t.Context(), dispatches, stays.Token), nil)
	held := lease(t, other, time.Hour)
	shrunk, largest := false, int64(0)
	data := bytes.Repeat([]byte("x"), store.MaxItemBytes)
	for n := range 40 {
		wantKind(t, "enqueue", s.Enqueue(t.Context(), dispatches, store.Item{ID: fmt.Sprint(n), Data: data}), nil)
		for {
			l := lease(t, s, time.Hour)
			if l.ID == fmt.Sprint(n) {
				wantKind(t, "done", s.Done(t.Context(), dispatches, l.Token), nil)
				break
			}
			wantKind(t, "return", s.Return(t.Context(), dispatches, l.Token), nil)
		}
		info := must[os.FileInfo](t)(os.Stat(queueJournal(dir)))
		shrunk = shrunk || info.Size() < largest
		largest = max(largest, info.Size())
	}
	if !shrunk || largest > queueSlack+4*store.MaxItemBytes {
		t.Errorf("got a journal of up to %d bytes, shrunk: %t; want it written anew soon after %d", largest, shrunk, queueSlack)
	}
	mine, err := contents(t, s)
	wantKind(t, "look", err, nil)
	if got, err := contents(t, other); err != nil || got != mine || !strings.Contains(got, "leased*1 at w |") {
		t.Errorf("the other handle: got %q, %v, want %q with the leased item", got, err, mine)
	}
	if got, err := contents(t, openStore(t, dir)); err != nil || got != mine {
		t.Errorf("a new handle: got %q, %v, want %q", got, err, mine)
	}
	wantKind(t, "done after it was written anew", s.Done(t.Context(), dispatches, held.Token), nil)
}

// A write or flush that fails leaves the queue as it was, or with the change, and usable.
func TestAFailingQueueWriteOrFlushLosesNothing(t *testing.T) {
	for _, fail := range []string{"write", "short write", "flush"} {
		for n := 1; ; n++ {
			s := openStore(t, scratch(t))
			f := &faults{fail: fail, after: n}
			s.wrap = func(file disk.File) disk.File { return &faultyFile{File: file, f: f} }
			do := func(what string, act func() error) {
				t.Helper()
				err := act()
				if err == nil {
					return
				}
				want := store.ErrUnavailable
				if fail == "flush" {
					want = store.ErrUnknownOutcome
				}
				wantKind(t, fmt.Sprintf("%s, whose %s fails", what, fail), err, want)
				wantKind(t, what+", again", act(), nil)
			}
			enqueue := func(id string) func() error {
				return func() error {
					return s.Enqueue(t.Context(), dispatches, store.Item{ID: id, Data: []byte("data of " + id)})
				}
			}
			do("enqueue", enqueue("a"))
			do("enqueue", enqueue("b"))
			var l store.Leased
			do("lease", func() error {
				got, err := s.Lease(t.Context(), dispatches, "w", time.Hour, 1)
				if err == nil {
					l = got[0]
				}
				return err
			})
			do("extend", func() error { return s.Extend(t.Context(), dispatches, l.Token, time.Hour) })
			do("done", func() error { return s.Done(t.Context(), dispatches, l.Token) })
			if got, err := contents(t, openStore(t, s.desc.Location)); err != nil || got != " | b*0" {
				t.Errorf("%s %d: got %q, %v, want b alone", fail, n, got, err)
			}
			if !f.spent {
				break
			}
		}
	}
}

// What a killed process was told is there, and whoever comes next goes on.
func TestAKilledProcessLosesNoQueuedItem(t *testing.T) {
	dir := scratch(t)
	s := openStore(t, dir)
	_, err := s.Create(t.Context(), key, commit(store.Mark{}, "{}")) // the helper owns a record
	wantKind(t, "create", err, nil)
	for round := range 3 {
		p := startProcess(t, dir)
		p.say("enqueue " + fmt.Sprint(round))
		told := ""
		for range 5 + 3*round {
			told = p.read("enqueued")
		}
		p.kill()
		var last int
		if _, err := fmt.Sscan(told, &last); err != nil {
			t.Fatal(err)
		}
		for n := range last + 1 {
			l := lease(t, s, time.Hour)
			if want := fmt.Sprintf("%d-%d", round, n); l.ID != want {
				t.Fatalf("after the kill: got %q, want %q", l.ID, want)
			}
			wantKind(t, "done", s.Done(t.Context(), dispatches, l.Token), nil)
		}
		// More may have been on its way.
		for b := must[store.Backlog](t)(s.Queued(t.Context(), dispatches)); b.Waiting > 0; b.Waiting-- {
			wantKind(t, "done", s.Done(t.Context(), dispatches, lease(t, s, time.Hour).Token), nil)
		}
	}
}

// A worker that is killed loses what it holds at once, not at the end of the lease, and
// one that lives keeps it.
func TestAKilledWorkerLosesItsLeaseAtOnce(t *testing.T) {
	dir := scratch(t)
	s := openStore(t, dir)
	_, err := s.Create(t.Context(), key, commit(store.Mark{}, "{}")) // the helper owns a record
	wantKind(t, "create", err, nil)
	add(t, s, "killed", "alive")
	old := filepath.Join(filepath.Dir(queueJournal(dir)), holderName("of-a-killed-process"))
	wantKind(t, "leave a file", os.WriteFile(old, nil, 0o600), nil)
	p := startProcess(t, dir)
	p.say("lease")
	if id := p.read("leased"); id != "killed" {
		t.Fatalf("the other process leased %q, want the first item", id)
	}
	other := openStore(t, dir)
	alive := lease(t, other, time.Hour)
	p.kill()
	l := lease(t, s, time.Hour)
	if l.ID != "killed" || l.Delivery != 2 {
		t.Errorf("got %q at delivery %d, want what the killed process held, at 2", l.ID, l.Delivery)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*holderEvery)
	defer cancel()
	_, err = s.Lease(ctx, dispatches, "w", time.Hour, 1)
	wantKind(t, "a lease of what a living handle holds", err, context.DeadlineExceeded)
	wantKind(t, "done by the one that lives", other.Done(t.Context(), dispatches, alive.Token), nil)
	wantKind(t, "done", s.Done(t.Context(), dispatches, l.Token), nil)
	files := must[[]string](t)(filepath.Glob(filepath.Join(filepath.Dir(queueJournal(dir)), "holder-*")))
	if len(files) != 2 {
		t.Errorf("got %d files of holders, want those of the two that live", len(files))
	}
}

// An old store has no folder for queues; looking makes none.
func TestLookingAtAQueueMakesNothing(t *testing.T) {
	dir := scratch(t)
	s := openStore(t, dir)
	if b := must[store.Backlog](t)(s.Queued(t.Context(), dispatches)); b != (store.Backlog{}) {
		t.Errorf("got %+v, want none", b)
	}
	wantKind(t, "done", s.Done(t.Context(), dispatches, "t"), store.ErrFenced)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := s.Lease(ctx, dispatches, "w", time.Hour, 1)
	wantKind(t, "lease", err, context.DeadlineExceeded)
	if names := must[[]os.DirEntry](t)(os.ReadDir(dir)); len(names) != 0 {
		t.Errorf("got %v in the folder, want nothing", names)
	}
}

// FuzzQueueJournal reads any bytes as a queue's journal: every answer is an error of a
// kind, or a queue that goes on.
func FuzzQueueJournal(f *testing.F) {
	line := func(l format.QueueLine, before uint32) ([]byte, uint32) {
		b, sum, err := l.Encode(before)
		if err != nil {
			f.Fatal(err)
		}
		return b, sum
	}
	one, sum := line(format.QueueLine{Do: format.QueueAdd, Items: []format.QueueItem{{ID: "a"}}, Data: []byte("x")}, 0)
	two, sum := line(format.QueueLine{Do: format.QueueLease, Items: []format.QueueItem{{ID: "a", Token: "t"}}, Worker: "w", Until: time.Unix(1, 0).UTC()}, sum)
	three, _ := line(format.QueueLine{Do: format.QueueDone, Token: "t"}, sum)
	stray, _ := line(format.QueueLine{Do: format.QueueReturn, Token: "t"}, 0)
	f.Add([]byte{})
	f.Add(one)
	f.Add(slices.Concat(one, two, three))
	f.Add(slices.Concat(one, two[:len(two)/2]))
	f.Add(slices.Concat(one, three))
	f.Add(stray)
	f.Fuzz(func(t *testing.T, journal []byte) {
		dir := scratch(t)
		s := openStore(t, dir)
		add(t, s, "made")
		wantKind(t, "write", os.WriteFile(queueJournal(dir), journal, 0o600), nil)
		err := s.Enqueue(t.Context(), dispatches, store.Item{ID: "next"})
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("enqueue: got %v, want success or damage", err)
			}
			return
		}
		other, err := contents(t, openStore(t, dir))
		if mine := must[string](t)(contents(t, s)); err != nil || mine != other || !strings.HasSuffix(mine, "next*0") && !strings.Contains(mine, "next*") {
			t.Errorf("got %q, and %q, %v from the beginning, want the same with the new item", mine, other, err)
		}
	})
}
