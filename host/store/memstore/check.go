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
	var rep store.CheckReport
	err := h.on(ctx, op, key, func(r *record) error {
		rep = store.CheckReport{Key: key, Birth: r.state.Mark.Birth, Revision: r.state.Mark.Revision, Commits: r.state.Mark.Revision, Bytes: int64(len(r.head))}
		for i, e := range r.entries {
			rep.Bytes += int64(len(e.data))
			if sha256.Sum256(e.data) != e.sum {
				rep.Findings = append(rep.Findings, fmt.Sprintf("entry %d does not have the sum taken when it was appended", i+1))
				continue
			}
			rep.Entries++
		}
		if r.newest() != r.state.Mark.Chain {
			rep.Findings = append(rep.Findings, fmt.Sprintf("revision %d does not link to the one before it", r.state.Mark.Revision))
			rep.Commits--
		}
		return nil
	})
	return rep, err
}

// newest recomputes the chain of the newest revision.
func (r *record) newest() string {
	before := ""
	if r.state.Mark.Revision > 1 {
		before = r.chains[r.state.Mark.Revision-2]
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
