package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

func idempotenceCases() []Case {
	return []Case{
		core("S-3/same-commit-again", "The same commit again gives the original ack and changes nothing.", sameCommitAgain),
		core("S-3/same-create-again", "The same create again gives the original ack, also after later commits.", sameCreateAgain),
		core("S-3/answered-before-the-fence", "A fenced owner that repeats a commit which was applied gets its ack.", answeredBeforeFence),
		core("S-3/other-content", "A commit id with other content is an error, whatever differs, and changes nothing.", otherContent),
		core("S-3/sixteen-remembered", "At least the last 16 commit ids are remembered, with their acks.", sixteenRemembered),
		core("S-3/ids-are-per-record", "A commit id of one record means nothing to another.", idsPerRecord),
		core("S-3/refused-id-is-free", "The id of a commit that was refused may be used again.", refusedIDIsFree),
	}
}

func sameCommitAgain(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("again"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 1); err != nil {
		return err
	}
	c, ack := a.last, a.ack
	var bad []error
	for i := range 3 {
		before, err := a.look(ctx)
		if err != nil {
			return err
		}
		for j, h := range []store.Store{s, other} {
			at := fmt.Sprintf("the same commit through %s, %d commits later", []string{"its handle", "another handle"}[j], i)
			again, err := h.Commit(ctx, a.key, a.fence, c)
			bad = append(bad, wantOK(at, err), expectUntouched(ctx, s, at, a.key, before))
			if err == nil {
				bad = append(bad, wantAck(at, again, ack))
			}
		}
		if err := a.advance(ctx, 1); err != nil {
			return errors.Join(append(bad, err)...)
		}
	}
	return errors.Join(bad...)
}

func sameCreateAgain(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("made again"))
	if err != nil {
		return err
	}
	c, ack := a.last, a.ack
	again := func(what string) error {
		before, err := a.look(ctx)
		if err != nil {
			return err
		}
		got, err := other.Create(ctx, a.key, c)
		if err != nil {
			return failf("%s: want the original ack, got %w", what, err)
		}
		return errors.Join(wantAck(what, got, ack), expectUntouched(ctx, s, what, a.key, before))
	}
	changed := c
	changed.Head = []byte("other head")
	_, err = s.Create(ctx, a.key, changed)
	return errors.Join(
		again("the same create at once"),
		wantKind("the id of the create with another head", err, store.ErrCommitIDReused),
		a.acquire(ctx, e.claim()), again("the same create under an owner"),
		a.advance(ctx, 3), again("the same create after 3 commits"),
	)
}

func answeredBeforeFence(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	old, err := e.owner(ctx, s, e.Key("fenced"))
	if err != nil {
		return err
	}
	if err := old.advance(ctx, 1); err != nil {
		return err
	}
	now, err := old.rival(ctx, other)
	if err != nil {
		return err
	}
	repeat := func(what string) error {
		before, err := now.look(ctx)
		if err != nil {
			return err
		}
		got, err := s.Commit(ctx, old.key, old.fence, old.last)
		if err != nil {
			return failf("%s: want the original ack, got %w", what, err)
		}
		return errors.Join(wantAck(what, got, old.ack), expectUntouched(ctx, s, what, old.key, before))
	}
	return errors.Join(
		repeat("a repeated commit after a take-over"),
		now.advance(ctx, 2), repeat("a repeated commit after the new owner's commits"),
		now.s.Release(ctx, now.key, now.fence), repeat("a repeated commit after the new owner's release"),
	)
}

func otherContent(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("reused"))
	if err != nil {
		return err
	}
	c := a.with([]byte("head"), []byte("one"), []byte("two"))
	if _, err := a.send(ctx, c); err != nil {
		return failf("commit: want success, got %w", err)
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	var bad []error
	for _, t := range []struct {
		name   string
		change func(*store.Commit)
	}{
		{"another head", func(c *store.Commit) { c.Head = []byte("Head") }},
		{"no head", func(c *store.Commit) { c.Head = nil }},
		{"an entry less", func(c *store.Commit) { c.Entries = c.Entries[:1] }},
		{"an entry more", func(c *store.Commit) { c.Entries = append(c.Entries[:2:2], nil) }},
		{"entries in another order", func(c *store.Commit) { c.Entries = [][]byte{c.Entries[1], c.Entries[0]} }},
		{"the same bytes cut into entries elsewhere", func(c *store.Commit) { c.Entries = [][]byte{[]byte("on"), []byte("etwo")} }},
		{"a byte moved from the entries to the head", func(c *store.Commit) { c.Head, c.Entries = []byte("heado"), [][]byte{[]byte("ne"), []byte("two")} }},
		{"another state to build on", func(c *store.Commit) { c.After = a.mark }},
	} {
		d := c
		t.change(&d)
		_, err := s.Commit(ctx, a.key, a.fence, d)
		at := "the same id with " + t.name
		bad = append(bad, wantKind(at, err, store.ErrCommitIDReused), expectUntouched(ctx, s, at, a.key, before))
	}
	return errors.Join(bad...)
}

func sixteenRemembered(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("memory"))
	if err != nil {
		return err
	}
	var commits []store.Commit
	var acks []store.Ack
	for range store.MinRememberedCommits + 4 {
		if err := a.advance(ctx, 1); err != nil {
			return err
		}
		commits, acks = append(commits, a.last), append(acks, a.ack)
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	var bad []error
	for i := len(commits) - store.MinRememberedCommits; i < len(commits); i++ {
		at := fmt.Sprintf("the commit that is %d before the last", len(commits)-1-i)
		got, err := other.Commit(ctx, a.key, a.fence, commits[i])
		bad = append(bad, wantOK(at, err))
		if err == nil {
			bad = append(bad, wantAck(at, got, acks[i]))
		}
		reused := commits[i]
		reused.Head = []byte("other")
		_, err = other.Commit(ctx, a.key, a.fence, reused)
		bad = append(bad, wantKind(at+", with another head", err, store.ErrCommitIDReused))
	}
	return errors.Join(append(bad, expectUntouched(ctx, s, "the repeated commits", a.key, before))...)
}

func idsPerRecord(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("first"))
	if err != nil {
		return err
	}
	b, err := e.owner(ctx, s, e.Key("second"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 1); err != nil {
		return err
	}
	c := b.commit()
	c.ID = a.last.ID
	ack, err := b.send(ctx, c)
	if err != nil {
		return failf("an id of another record: want success, got %w", err)
	}
	return errors.Join(wantEqual("birth of the ack", ack.Mark.Birth, b.fence.Birth), holdsOnly(ctx, e, b.key, c, ack, 2))
}

func refusedIDIsFree(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("refused first"))
	if err != nil {
		return err
	}
	old := a.mark
	if err := a.advance(ctx, 1); err != nil {
		return err
	}
	c := a.commit()
	right := c.After
	c.After = old
	_, err = s.Commit(ctx, a.key, a.fence, c)
	if err := wantKind("a commit on an older revision", err, store.ErrConflict); err != nil {
		return err
	}
	c.After = right
	ack, err := a.send(ctx, c)
	if err != nil {
		return failf("the refused commit's id on the right revision: want success, got %w", err)
	}
	return holdsOnly(ctx, e, a.key, c, ack, ack.LogLength)
}
