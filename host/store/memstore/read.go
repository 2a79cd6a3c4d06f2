package memstore

import (
	"context"
	"encoding/base64"
	"sort"
	"time"

	"github.com/loophost/loophost/host/store"
)

// Bounds of one page of the log, as the port states them.
const (
	pageEntries = 256
	pageBytes   = 8 << 20
	listItems   = 100
)

// holder is the live owner at now, or nil.
func (r *record) holder(now time.Time) *store.Holder {
	if r.fence.IsZero() || !now.Before(r.expires) {
		return nil
	}
	return &store.Holder{Fence: r.fence, Expires: r.expires, Started: r.started}
}

func (r *record) snapshot(key store.Key, now time.Time) store.Record {
	return store.Record{
		Key: key, Mark: r.mark(), Head: copied(r.head), LogLength: uint64(len(r.entries)), LastCommitID: r.lastCommit,
		Fence: r.currentFence(key.Kind), Generation: r.generation, Holder: r.holder(now),
		Signals: r.pending(r.fence.Run), Released: r.released,
	}
}

func (h *handle) Load(ctx context.Context, key store.Key) (store.Record, error) {
	const op = "load"
	if err := h.usable(ctx, op, key); err != nil {
		return store.Record{}, err
	}
	if err := key.Validate(); err != nil {
		return store.Record{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record(op, key)
	if err != nil {
		return store.Record{}, err
	}
	return r.snapshot(key, h.m.clock()), nil
}

func (h *handle) ReadLog(ctx context.Context, key store.Key, from uint64, limit int) (store.LogPage, error) {
	const op = "readlog"
	if err := h.usable(ctx, op, key); err != nil {
		return store.LogPage{}, err
	}
	if err := key.Validate(); err != nil {
		return store.LogPage{}, err
	}
	if limit <= 0 {
		limit = pageEntries
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record(op, key)
	if err != nil {
		return store.LogPage{}, err
	}
	page := store.LogPage{Length: uint64(len(r.entries))}
	size := 0
	for seq := max(from, 1); seq <= page.Length && len(page.Entries) < limit; seq++ {
		e := r.entries[seq-1]
		if size += len(e.data); size > pageBytes && len(page.Entries) > 0 {
			break
		}
		page.Entries = append(page.Entries, store.Entry{Seq: seq, Revision: e.revision, Data: copied(e.data)})
	}
	return page, nil
}

func (h *handle) List(ctx context.Context, q store.Query) (store.ListPage, error) {
	const op = "list"
	if err := h.usable(ctx, op, store.Key{}); err != nil {
		return store.ListPage{}, err
	}
	if err := (store.Key{Kind: q.Kind, ID: "any"}).Validate(); err != nil {
		return store.ListPage{}, err
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return store.ListPage{}, &store.Error{Op: op, Kind: store.ErrUnsupported, Detail: "the cursor is not one that this store gave", Err: err}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = listItems
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	var ids []string
	for k := range h.m.records {
		if k.Kind == q.Kind && k.ID > string(after) {
			ids = append(ids, k.ID)
		}
	}
	sort.Strings(ids)
	var page store.ListPage
	if len(ids) > limit {
		ids = ids[:limit]
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(ids[limit-1]))
	}
	now := h.m.clock()
	for _, id := range ids {
		key := store.Key{Kind: q.Kind, ID: id}
		page.Items = append(page.Items, store.Listed{Record: h.m.records[key].snapshot(key, now)})
	}
	return page, nil
}
