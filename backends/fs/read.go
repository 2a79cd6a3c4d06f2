package fs

import (
	"context"
	"errors"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Bounds of one page of the log, as the port states them.
const (
	pageEntries = 256
	pageBytes   = 8 << 20
)

// Load reads the record without its log, and never waits for a writer.
func (s *Store) Load(ctx context.Context, key store.Key) (store.Record, error) {
	const op = "load"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return store.Record{}, err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return store.Record{}, err
	}
	return s.load(ctx, op, key)
}

func (s *Store) load(ctx context.Context, op string, key store.Key) (store.Record, error) {
	r, err := s.use(ctx, key)
	if err != nil {
		return store.Record{}, err
	}
	defer s.unuse(r)
	if err := r.look(ctx); err != nil {
		return store.Record{}, fail(op, key, err)
	}
	if r.st.deleted {
		return store.Record{}, fail(op, key, r.deleted())
	}
	rec := r.snapshot()
	if r.broken != nil {
		return rec, fail(op, key, &store.Error{Kind: store.ErrCorrupt, Err: r.broken})
	}
	return rec, nil
}

// snapshot is the record as the port states it.
func (r *record) snapshot() store.Record {
	st := &r.st
	h, err := r.holder()
	if err != nil {
		r.s.log.Warn("the owner's lock can't be asked; the record is shown without a holder", "kind", r.key.Kind, "id", r.key.ID, "err", err)
	}
	return store.Record{
		Key: r.key, Mark: st.mark(), Head: append([]byte{}, st.head...), LogLength: st.log, LastCommitID: st.lastCommit,
		Fence: st.currentFence(r.key.Kind), Generation: st.generation, Holder: h,
		Signals: r.pending(st.fence.Run), Released: st.wasReleased(),
	}
}

// ReadLog reads one page, from the index entry next before it on (S-11). Of a
// damaged record it gives what stands before the damage, with ErrCorrupt.
func (s *Store) ReadLog(ctx context.Context, key store.Key, from uint64, limit int) (store.LogPage, error) {
	const op = "readlog"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return store.LogPage{}, err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return store.LogPage{}, err
	}
	if limit <= 0 {
		limit = pageEntries
	}
	r, err := s.use(ctx, key)
	if err != nil {
		return store.LogPage{}, err
	}
	defer s.unuse(r)
	if err := r.look(ctx); err != nil {
		return store.LogPage{}, fail(op, key, err)
	}
	if r.st.deleted {
		return store.LogPage{}, fail(op, key, r.deleted())
	}
	page, err := r.page(max(from, 1), limit)
	return page, fail(op, key, err)
}

func (r *record) page(from uint64, limit int) (store.LogPage, error) {
	page := store.LogPage{Length: r.st.log}
	size := 0
	more := from <= r.st.log
	var st state
	if more {
		x := r.openIndex()
		defer x.close()
		if l, ok := x.before(func(l format.IndexLine) bool { return l.Log < from }); ok {
			if s, ok := start(r.journal, r.st.end, l); ok {
				st = s
			}
		}
	}
	in := &frames{f: r.journal, size: r.st.end}
	for more && st.end < r.st.end {
		h, m, parts, _, err := in.next(st.end)
		if err == nil {
			if err = st.apply(r.key, h, m, parts); err != nil {
				err = &damage{at: h.At, whole: true, err: err}
			}
		}
		var d *damage
		if errors.As(err, &d) {
			return page, &store.Error{Kind: store.ErrCorrupt, Err: d}
		}
		if err != nil {
			return page, err
		}
		if h.Kind != format.Create && h.Kind != format.Commit {
			continue
		}
		first := h.Log - uint64(len(parts)-1) + 1
		for i, p := range parts[1:] {
			if seq := first + uint64(i); seq >= from {
				if len(page.Entries) == limit || (len(page.Entries) > 0 && size+len(p) > pageBytes) {
					return page, nil
				}
				size += len(p)
				page.Entries = append(page.Entries, store.Entry{Seq: seq, Revision: h.Rev, Data: append([]byte{}, p...)})
			}
		}
		more = len(page.Entries) < limit
	}
	if r.broken != nil && from+uint64(len(page.Entries)) > r.st.log {
		return page, &store.Error{Kind: store.ErrCorrupt, Err: r.broken}
	}
	return page, nil
}
