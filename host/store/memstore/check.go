package memstore

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

// Check verifies every entry against the sum taken when it was appended, and
// recomputes the newest link of the chain; older heads are not kept, so older
// links can't be recomputed.
func (h *handle) Check(ctx context.Context, key store.Key) (store.CheckReport, error) {
	const op = "check"
	if err := h.usable(ctx, op, key); err != nil {
		return store.CheckReport{}, err
	}
	if err := key.Validate(); err != nil {
		return store.CheckReport{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record(op, key)
	if err != nil {
		return store.CheckReport{}, err
	}
	rep := store.CheckReport{Key: key, Birth: r.birth, Revision: r.revision, Commits: r.revision, Bytes: int64(len(r.head))}
	for i, e := range r.entries {
		rep.Bytes += int64(len(e.data))
		if sha256.Sum256(e.data) != e.sum {
			rep.Findings = append(rep.Findings, fmt.Sprintf("entry %d does not have the sum taken when it was appended", i+1))
			continue
		}
		rep.Entries++
	}
	if r.newest() != r.mark().Chain {
		rep.Findings = append(rep.Findings, fmt.Sprintf("revision %d does not link to the one before it", r.revision))
		rep.Commits--
	}
	return rep, nil
}

// newest recomputes the chain of the newest revision.
func (r *record) newest() string {
	before := ""
	if r.revision > 1 {
		before = r.chains[r.revision-2]
	}
	if r.last.never {
		return store.ChainNever(before, r.last.id)
	}
	c := store.Commit{ID: r.last.id, Head: r.head}
	for _, e := range r.entries[len(r.entries)-r.last.added:] {
		c.Entries = append(c.Entries, e.data)
	}
	return store.Chain(before, c)
}
