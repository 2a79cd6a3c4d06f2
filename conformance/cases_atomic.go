package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/loophost/loophost/host/store"
)

func atomicCases() []Case {
	return []Case{
		core("S-1/create-then-read", "A created record is there for every handle: head, log, revision 1, unowned.", createThenRead),
		core("S-1/create-twice", "Creating a record that exists is refused and changes nothing.", createTwice),
		core("S-1/commit-applies-whole", "A commit brings its head, all its entries and one revision, for every handle.", commitAppliesWhole),
		core("S-1/commit-without-entries", "A commit without entries replaces the head and leaves the log alone.", commitWithoutEntries),
		core("S-1/only-commits-move-the-revision", "Acquire, renew, signals, reads and release leave head, log and revision alone.", onlyCommitsMove),
		core("S-1/refused-commit-leaves-nothing", "A refused commit leaves neither head nor entry.", refusedLeavesNothing),
		core("S-1/no-half-commit-is-visible", "A reader beside a writer never sees a head without its entries, or entries without their revision.", noHalfCommit),
	}
}

func createThenRead(ctx context.Context, e *Env) error {
	a, b, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	key := e.Key("made")
	c := store.Commit{ID: e.UUID(), Head: []byte(`{"a":1}`), Entries: [][]byte{[]byte("one"), []byte("two")}}
	ack, err := a.Create(ctx, key, c)
	if err != nil {
		return failf("create: want success, got %w", err)
	}
	got, err := look(ctx, b, key)
	if err != nil {
		return err
	}
	r := got.record
	return errors.Join(
		wantEqual("revision of the ack", ack.Mark.Revision, 1),
		wantEqual("log length of the ack", ack.LogLength, 2),
		wantEqual("birth of the ack is set", ack.Mark.Birth > 0, true),
		wantEqual("record absent", got.absent, false),
		wantEqual("key", r.Key, key),
		wantEqual("mark as loaded", r.Mark, ack.Mark),
		wantBytes("head", r.Head, c.Head),
		wantEqual("log length as loaded", r.LogLength, 2),
		wantEqual("last commit id", r.LastCommitID, c.ID),
		wantEqual("fence of a record that was never acquired", r.Fence, store.Fence{}),
		wantEqual("generation of a record that was never acquired", r.Generation, ""),
		wantEqual("holder is nil", r.Holder == nil, true),
		wantEqual("released", r.Released, true),
		sameLog("log", got.log, []store.Entry{{Seq: 1, Revision: 1, Data: []byte("one")}, {Seq: 2, Revision: 1, Data: []byte("two")}}),
	)
}

func createTwice(ctx context.Context, e *Env) error {
	s, b, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("twice"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	_, err = b.Create(ctx, a.key, store.Commit{ID: e.UUID(), Head: []byte("other"), Entries: [][]byte{[]byte("other")}})
	return errors.Join(
		wantKind("create the same key with another commit", err, store.ErrExists),
		expectUntouched(ctx, s, "the refused create", a.key, before),
	)
}

func commitAppliesWhole(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("whole"))
	if err != nil {
		return err
	}
	want, err := a.look(ctx)
	if err != nil {
		return err
	}
	for n := range 4 {
		var entries [][]byte
		for i := range n {
			entries = append(entries, []byte(fmt.Sprintf("commit %d entry %d", n, i)))
		}
		c := a.with([]byte(fmt.Sprintf("head %d", n)), entries...)
		ack, err := a.send(ctx, c)
		if err != nil {
			return failf("commit with %d entries: want success, got %w", n, err)
		}
		want.record.Mark, want.record.Head, want.record.LastCommitID = ack.Mark, c.Head, c.ID
		want.record.Mark.Revision = uint64(n) + 2
		for _, d := range entries {
			want.log = append(want.log, store.Entry{Seq: uint64(len(want.log)) + 1, Revision: ack.Mark.Revision, Data: d})
		}
		want.record.LogLength = uint64(len(want.log))
		got, err := look(ctx, other, a.key)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("after a commit with %d entries", n)
		if err := errors.Join(wantEqual(what+": log length of the ack", ack.LogLength, want.record.LogLength), want.untouched(what, got)); err != nil {
			return err
		}
	}
	return nil
}

func commitWithoutEntries(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("head only"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	if _, err := a.send(ctx, a.with([]byte("new"))); err != nil {
		return failf("commit without entries: want success, got %w", err)
	}
	after, err := a.look(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		wantEqual("revision", after.record.Mark.Revision, before.record.Mark.Revision+1),
		wantBytes("head", after.record.Head, []byte("new")),
		sameLog("log", after.log, before.log),
	)
}

func onlyCommitsMove(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("still"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	steps := []struct {
		name string
		do   func() error
	}{
		{"acquire", func() error { return a.acquire(ctx, e.claim()) }},
		{"renew", func() error { return s.Renew(ctx, a.key, a.fence, 0) }},
		{"stop signal", func() error {
			return other.Signal(ctx, a.key, store.Signal{Kind: store.SignalStop, Run: a.fence.Run})
		}},
		{"load", func() error { _, err := other.Load(ctx, a.key); return err }},
		{"read log", func() error { _, err := other.ReadLog(ctx, a.key, 1, 0); return err }},
		{"list", func() error { _, err := other.List(ctx, store.Query{Kind: a.key.Kind}); return err }},
		{"describe", func() error { _, err := other.Describe(ctx); return err }},
		{"forced acquire", func() error { return a.acquire(ctx, e.force()) }},
		{"resolve of an applied commit", func() error { _, err := s.Resolve(ctx, a.key, a.fence, a.last.ID); return err }},
		{"release", func() error { return s.Release(ctx, a.key, a.fence) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return failf("%s: want success, got %w", step.name, err)
		}
		after, err := a.look(ctx)
		if err != nil {
			return err
		}
		if err := before.same("after "+step.name, after); err != nil {
			return err
		}
	}
	return nil
}

func refusedLeavesNothing(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("refused"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 2); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	stale := a.with([]byte("refused head"), []byte("refused entry 1"), []byte("refused entry 2"))
	stale.After.Revision--
	stale.After.Chain = ""
	_, err = s.Commit(ctx, a.key, a.fence, stale)
	return errors.Join(
		wantKind("commit on an older revision", err, store.ErrConflict),
		expectUntouched(ctx, s, "the refused commit", a.key, before),
		// what follows must not find the refused entries either
		a.advance(ctx, 1),
		logGrewBy(ctx, a, before, 1),
	)
}

func logGrewBy(ctx context.Context, a *actor, before snapshot, n int) error {
	after, err := a.look(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		wantEqual("entries that came with the next commit", len(after.log)-len(before.log), n),
		wantEqual("log length", after.record.LogLength, uint64(len(after.log))),
	)
}

// noHalfCommit writes commits whose head tells how long the log is with them,
// while readers compare.
func noHalfCommit(ctx context.Context, e *Env) error {
	const commits, readers, entry = 60, 2, 3
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	key := e.Key("watched")
	head := func(n int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("%06d ", n)), 50) }
	ack, err := s.Create(ctx, key, store.Commit{ID: e.UUID(), Head: head(0)})
	if err != nil {
		return failf("create: want success, got %w", err)
	}
	a := &actor{e: e, s: s, key: key, mark: ack.Mark}
	if err := a.acquire(ctx, e.claim()); err != nil {
		return err
	}
	var group errgroup.Group
	done := make(chan struct{})
	for range readers {
		r, err := e.Open(ctx)
		if err != nil {
			close(done)
			return errors.Join(err, group.Wait())
		}
		group.Go(func() error {
			for {
				if err := wholeRecord(ctx, r, key); err != nil {
					return err
				}
				select {
				case <-done:
					return nil
				default:
				}
			}
		})
	}
	var writing error
	for n := 1; n <= commits && writing == nil; n++ {
		var entries [][]byte
		for range entry {
			entries = append(entries, []byte(strconv.Itoa(n)))
		}
		if _, err := a.send(ctx, a.with(head(n*entry), entries...)); err != nil {
			writing = failf("commit %d: want success, got %w", n, err)
		}
	}
	close(done)
	return errors.Join(writing, group.Wait(), wholeRecord(ctx, s, key))
}

func wholeRecord(ctx context.Context, s store.Store, key store.Key) error {
	r, err := s.Load(ctx, key)
	if err != nil {
		return failf("load beside a writer: want success, got %w", err)
	}
	said := bytes.Fields(r.Head)
	if len(said) == 0 {
		return failf("load beside a writer: want a head, got %s", brief(r.Head))
	}
	for _, w := range said {
		if !bytes.Equal(w, said[0]) {
			return failf("load beside a writer: want a head of one commit, got a mixture: %s", brief(r.Head))
		}
	}
	n, err := strconv.Atoi(string(said[0]))
	if err != nil {
		return failf("load beside a writer: want a head that names the log length, got %s", brief(r.Head))
	}
	p, err := s.ReadLog(ctx, key, uint64(n), 1)
	if err != nil {
		return failf("read the log beside a writer: want success, got %w", err)
	}
	last := r.Mark.Revision
	bad := []error{
		wantEqual("log length beside the head", r.LogLength, uint64(n)),
		wantEqual("revision beside the head", last, uint64(n/3)+1),
		wantEqual("the log has grown to what the head says", p.Length >= uint64(n), true),
	}
	if n > 0 {
		bad = append(bad, wantEqual("the entry that the head counts is there", len(p.Entries), 1))
	}
	if n > 0 && len(p.Entries) == 1 {
		bad = append(bad, wantEqual("its revision", p.Entries[0].Revision, last))
	}
	return errors.Join(bad...)
}
