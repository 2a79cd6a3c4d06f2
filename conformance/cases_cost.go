package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

func costCases() []Case {
	return []Case{
		core("S-11/long-log", "A long log reads back right from its start, its middle and its tail, page by page and entry by entry.", longLog),
		core("S-11/page-past-the-end", "A page past the end is empty and says how long the log is.", pastTheEnd),
		core("S-11/large-pages", "A page stays near 8 MiB, holds at least one entry, and pages in a row miss nothing.", largePages),
	}
}

func longLog(ctx context.Context, e *Env) error {
	const commits, each = 300, 2
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	key := e.Key("long")
	ack, err := s.Create(ctx, key, store.Commit{ID: e.UUID(), Head: []byte("h")})
	if err != nil {
		return failf("create: want success, got %w", err)
	}
	a := &actor{e: e, s: s, key: key, mark: ack.Mark}
	if err := a.acquire(ctx, e.claim()); err != nil {
		return err
	}
	var want []store.Entry
	for i := range commits {
		var entries [][]byte
		for j := range each {
			d := []byte(fmt.Sprintf(`{"entry":%d}`, i*each+j+1))
			entries = append(entries, d)
			want = append(want, store.Entry{Seq: uint64(len(want)) + 1, Revision: uint64(i) + 2, Data: d})
		}
		if _, err := a.send(ctx, a.with([]byte(fmt.Sprint("head ", i)), entries...)); err != nil {
			return failf("commit %d: want success, got %w", i+1, err)
		}
	}
	n := uint64(len(want))
	got, err := readAll(ctx, other, key)
	bad := []error{err, sameLog("the whole log", got, want)}
	for _, t := range []struct {
		from  uint64
		limit int
	}{{0, 1}, {0, 3}, {1, 1}, {1, 7}, {n - 1, 10}, {n, 1}, {n, 0}, {n / 2, 5}, {n - 40, 100}, {255, 3}, {256, 3}, {257, 3}, {1, 1000}} {
		from := max(t.from, 1)
		p, err := other.ReadLog(ctx, key, t.from, t.limit)
		at := fmt.Sprintf("read from %d with limit %d", t.from, t.limit)
		if err != nil {
			bad = append(bad, wantOK(at, err))
			continue
		}
		limit := t.limit
		if limit == 0 {
			limit = 256
		}
		full := min(uint64(limit), n-from+1)
		bad = append(bad, wantEqual(at+": length of the log", p.Length, n))
		// Small entries: nothing but the limit and the end may cut the page.
		bad = append(bad, sameLog(at, p.Entries, want[from-1:from-1+full]))
	}
	r, err := other.Load(ctx, key)
	return errors.Join(append(bad, wantOK("load", err), wantEqual("log length", r.LogLength, n), wantBytes("head", r.Head, []byte(fmt.Sprint("head ", commits-1))))...)
}

func pastTheEnd(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("short"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 2); err != nil {
		return err
	}
	n := a.ack.LogLength
	var bad []error
	for _, from := range []uint64{n + 1, n + 2, n + 1000, 1 << 32, 1<<53 + 1, 1 << 63, 1<<64 - 1} {
		p, err := s.ReadLog(ctx, a.key, from, 10)
		at := fmt.Sprintf("read from %d of %d", from, n)
		bad = append(bad, wantOK(at, err), wantEqual(at+": entries", len(p.Entries), 0), wantEqual(at+": length", p.Length, n))
	}
	_, err = s.Create(ctx, e.Key("empty"), store.Commit{ID: e.UUID(), Head: []byte("h")})
	p, readErr := s.ReadLog(ctx, e.Key("empty"), 1, 0)
	return errors.Join(append(bad, wantOK("create without entries", err), wantOK("read an empty log", readErr), wantEqual("entries of an empty log", len(p.Entries), 0), wantEqual("length of an empty log", p.Length, 0))...)
}

func largePages(ctx context.Context, e *Env) error {
	const mib = 1 << 20
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	size := min(e.limits().EntryBytes, 5*mib)
	a, err := e.owner(ctx, s, e.Key("large"))
	if err != nil {
		return err
	}
	first := a.ack.LogLength
	var marks []byte
	for i := range 5 {
		d := filled(size)
		d[0] = byte('A' + i)
		marks = append(marks, d[0])
		if _, err := a.send(ctx, a.with([]byte("h"), d, []byte{'a' + byte(i)})); err != nil {
			return failf("commit with an entry of %d bytes: want success, got %w", size, err)
		}
		marks = append(marks, 'a'+byte(i))
	}
	var got []byte
	for from := first + 1; from <= a.ack.LogLength; {
		p, err := s.ReadLog(ctx, a.key, from, 0)
		if err != nil {
			return failf("read from %d: want success, got %w", from, err)
		}
		if len(p.Entries) == 0 {
			return failf("read from %d of %d: want at least one entry, got none", from, a.ack.LogLength)
		}
		var total int64
		for _, en := range p.Entries {
			total += int64(len(en.Data))
			got = append(got, en.Data[0])
		}
		if total > 8*mib+size {
			return failf("read from %d: want about 8 MiB, got %d bytes", from, total)
		}
		from += uint64(len(p.Entries))
	}
	return wantBytes("first bytes of the entries", got, marks)
}
