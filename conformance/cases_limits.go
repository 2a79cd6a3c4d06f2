package conformance

import (
	"bytes"
	"context"
	"errors"

	"github.com/loophost/loophost/host/store"
)

func limitCases() []Case {
	return []Case{
		core("S-1/head-limit", "A head of exactly the limit is stored; one byte more is refused, never cut.", headLimit),
		core("S-1/entry-limit", "A log entry of exactly the limit is stored; one byte more is refused, never cut.", entryLimit),
		core("S-1/commit-limit", "A commit of exactly the limit is stored; one byte more is refused, never cut.", commitLimit),
	}
}

// limits are the store's own limits, with the port's where it states none.
func (e *Env) limits() store.Limits {
	pick := func(own, port int64) int64 {
		if own > 0 && own < port {
			return own
		}
		return port
	}
	l := e.Store.Limits
	return store.Limits{
		HeadBytes:   pick(l.HeadBytes, store.MaxHeadBytes),
		EntryBytes:  pick(l.EntryBytes, store.MaxEntryBytes),
		CommitBytes: pick(l.CommitBytes, store.MaxCommitBytes),
	}
}

func filled(n int64) []byte { return bytes.Repeat([]byte("0123456789abcdef"), int(n/16)+1)[:n] }

// tryLimit commits fits, which must be stored exactly, and over, which must be refused.
func tryLimit(ctx context.Context, e *Env, head []byte, fits [][]byte, overHead []byte, over [][]byte) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("large"))
	if err != nil {
		return err
	}
	first := a.ack.LogLength
	if _, err := a.send(ctx, a.with(head, fits...)); err != nil {
		return failf("a commit of exactly the limit: want success, got %w", err)
	}
	if err := exactly(ctx, s, a.key, head, fits, first); err != nil {
		return err
	}
	_, err = a.s.Commit(ctx, a.key, a.fence, a.with(overHead, over...))
	if err := wantKind("one byte over the limit", err, store.ErrTooLarge); err != nil {
		return err
	}
	if err := exactly(ctx, s, a.key, head, fits, first); err != nil {
		return failf("after the refused commit: %w", err)
	}
	_, err = s.Create(ctx, e.Key("large from the start"), store.Commit{ID: e.UUID(), Head: overHead, Entries: over})
	if err := wantKind("create with one byte over the limit", err, store.ErrTooLarge); err != nil {
		return err
	}
	_, err = s.Load(ctx, e.Key("large from the start"))
	return wantKind("load what was refused", err, store.ErrNotFound)
}

// exactly compares a record with what was committed, entry by entry, so that
// two copies of a large log are never held at once.
func exactly(ctx context.Context, s store.Store, key store.Key, head []byte, entries [][]byte, before uint64) error {
	r, err := s.Load(ctx, key)
	if err != nil {
		return failf("load: want success, got %w", err)
	}
	if err := errors.Join(wantBytes("head", r.Head, head), wantEqual("log length", r.LogLength, before+uint64(len(entries)))); err != nil {
		return err
	}
	for i, want := range entries {
		p, err := s.ReadLog(ctx, key, before+1+uint64(i), 1)
		if err != nil {
			return failf("read entry %d: want success, got %w", i, err)
		}
		if len(p.Entries) != 1 {
			return failf("read entry %d with limit 1: want 1 entry, got %d", i, len(p.Entries))
		}
		if err := wantBytes("a large entry", p.Entries[0].Data, want); err != nil {
			return err
		}
	}
	return nil
}

func headLimit(ctx context.Context, e *Env) error {
	n := e.limits().HeadBytes
	return tryLimit(ctx, e, filled(n), nil, filled(n+1), nil)
}

func entryLimit(ctx context.Context, e *Env) error {
	n := e.limits().EntryBytes
	return tryLimit(ctx, e, []byte("h"), [][]byte{filled(n)}, []byte("h"), [][]byte{filled(n + 1)})
}

func commitLimit(ctx context.Context, e *Env) error {
	l := e.limits()
	one := filled(l.EntryBytes) // every entry shares these bytes
	head := []byte("h")
	var entries [][]byte
	rest := l.CommitBytes - int64(len(head))
	for ; rest > l.EntryBytes; rest -= l.EntryBytes {
		entries = append(entries, one)
	}
	fits := append(entries[:len(entries):len(entries)], one[:rest])
	over := append(fits[:len(fits):len(fits)], []byte("x"))
	return tryLimit(ctx, e, head, fits, head, over)
}
