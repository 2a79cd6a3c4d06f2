package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/loophost/loophost/host/store"
)

func handleCases() []Case {
	return []Case{
		core("S-1/closed-handle", "Every method of a closed handle says that the store is unavailable, and changes nothing.", closedHandle),
		core("S-1/missing-record", "Every method says not found where there is no record, and makes none.", missingRecord),
		core("S-1/caller-keeps-its-bytes", "The store keeps copies: bytes that the caller changes after a call, or that it was given, don't change the record.", callerKeepsBytes),
	}
}

// call is one method of a store applied to one key.
type call struct {
	name   string
	writes bool // it could change the record
	do     func(context.Context, store.Store) error
}

// calls are all methods that take a key, as a.key's owner would call them.
func (a *actor) calls() []call {
	c, k, f := a.commit(), a.key, a.fence
	return []call{
		{"create", true, func(ctx context.Context, s store.Store) error {
			_, err := s.Create(ctx, k, store.Commit{ID: c.ID, Head: c.Head, Entries: c.Entries})
			return err
		}},
		{"acquire", true, func(ctx context.Context, s store.Store) error {
			_, _, err := s.Acquire(ctx, k, store.Claim{Owner: "late", Run: c.ID, Force: true})
			return err
		}},
		{"renew", true, func(ctx context.Context, s store.Store) error { return s.Renew(ctx, k, f, time.Minute) }},
		{"commit", true, func(ctx context.Context, s store.Store) error { _, err := s.Commit(ctx, k, f, c); return err }},
		{"resolve", true, func(ctx context.Context, s store.Store) error { _, err := s.Resolve(ctx, k, f, c.ID); return err }},
		{"signal", true, func(ctx context.Context, s store.Store) error {
			return s.Signal(ctx, k, store.Signal{Kind: store.SignalStop, Run: f.Run})
		}},
		{"load", false, func(ctx context.Context, s store.Store) error { _, err := s.Load(ctx, k); return err }},
		{"read log", false, func(ctx context.Context, s store.Store) error { _, err := s.ReadLog(ctx, k, 1, 0); return err }},
		{"release", true, func(ctx context.Context, s store.Store) error { return s.Release(ctx, k, f) }},
		{"delete", true, func(ctx context.Context, s store.Store) error { return s.Delete(ctx, k, f) }},
	}
}

// keyless are the methods that take no key.
func (a *actor) keyless() []call {
	return []call{
		{"describe", false, func(ctx context.Context, s store.Store) error { _, err := s.Describe(ctx); return err }},
		{"list", false, func(ctx context.Context, s store.Store) error {
			_, err := s.List(ctx, store.Query{Kind: a.key.Kind})
			return err
		}},
	}
}

func closedHandle(ctx context.Context, e *Env) error {
	s, closing, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("kept"))
	if err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	if err := closing.Close(); err != nil {
		return failf("close: want success, got %w", err)
	}
	var bad []error
	for _, c := range append(a.calls(), a.keyless()...) {
		bad = append(bad, wantKind(c.name+" through a closed handle", c.do(ctx, closing), store.ErrUnavailable))
	}
	if err := closing.Close(); err != nil {
		bad = append(bad, wantKind("a second close", err, store.ErrUnavailable))
	}
	return errors.Join(append(bad, expectUntouched(ctx, s, "calls through a closed handle", a.key, before))...)
}

func missingRecord(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a := &actor{e: e, s: s, key: e.Key("nowhere"), fence: store.Fence{Birth: store.BirthAt(time.Now(), 0), Generation: e.UUID(), Owner: "nobody", Run: e.UUID()}}
	a.mark = store.Mark{Birth: a.fence.Birth, Revision: 1}
	var bad []error
	for _, c := range a.calls() {
		if c.name == "create" {
			continue
		}
		bad = append(bad, wantKind(c.name+" of a record that was never made", c.do(ctx, s), store.ErrNotFound))
	}
	page, err := s.List(ctx, store.Query{Kind: a.key.Kind})
	return errors.Join(append(bad, wantOK("list", err), wantEqual("records listed", len(page.Items), 0))...)
}

func callerKeepsBytes(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("copied"))
	if err != nil {
		return err
	}
	c := a.with([]byte("head"), []byte("entry"))
	if _, err := a.send(ctx, c); err != nil {
		return failf("commit: want success, got %w", err)
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	want := snapshot{record: before.record}
	want.record.Head = []byte("head")
	for _, en := range before.log {
		en.Data = append([]byte{}, en.Data...)
		want.log = append(want.log, en)
	}
	scribble := func(b []byte) {
		for i := range b {
			b[i] = 'X'
		}
	}
	scribble(c.Head)
	scribble(c.Entries[0])
	scribble(before.record.Head)
	for _, en := range before.log {
		scribble(en.Data)
	}
	return expectUntouched(ctx, s, "a caller changed its own bytes", a.key, want)
}
