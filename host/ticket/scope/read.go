package scope

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

// view is a scope whole, at one mark. It never changes.
type view struct {
	state *ticket.State
	mark  store.Mark
	head  Head
}

// reader reads scopes and changes nothing (T-2).
type reader struct {
	store store.Store
	cfg   Config
}

func scopeKey(id string) store.Key { return store.Key{Kind: store.KindScope, ID: id} }

// load is a scope's record and head.
func (r reader) load(ctx context.Context, id string) (store.Record, Head, error) {
	ctx, cancel := r.cfg.bounded(ctx)
	defer cancel()
	rec, err := r.store.Load(ctx, scopeKey(id))
	if err != nil {
		return rec, Head{}, err
	}
	head, err := DecodeHead(rec.Head)
	switch {
	case err != nil:
		return rec, head, withKey(id, err)
	case head.Binding.ScopeID != id:
		return rec, head, corrupt(id, fmt.Sprintf("the head is of the scope %q", head.Binding.ScopeID), nil)
	case head.Seq != rec.LogLength:
		return rec, head, corrupt(id, fmt.Sprintf("the head counts %d commands, the log %d entries", head.Seq, rec.LogLength), nil)
	}
	return rec, head, nil
}

// read is the scope as it is stored now: since before, if that is not nil, or from
// its newest snapshot. Errors: store.ErrRegressed where it does not hold what before
// holds, store.ErrFenced where it was deleted and made anew.
func (r reader) read(ctx context.Context, id string, before *view) (*view, error) {
	rec, head, err := r.load(ctx, id)
	if err != nil {
		return nil, err
	}
	if before != nil {
		if rec.Mark == before.mark {
			return before, nil
		}
		if err := follows(id, before, rec.Mark, head.Seq); err != nil {
			return nil, err
		}
		return r.extend(ctx, before, rec.Mark, head)
	}
	for {
		from, err := r.start(ctx, rec, head)
		if err == nil {
			return r.extend(ctx, from, rec.Mark, head)
		}
		if head.Snapshot == nil || !damaged(err) {
			return nil, err
		}
		// It may have been superseded, and removed, since the head was read.
		failed, why := *head.Snapshot, err
		if rec, head, err = r.load(ctx, id); err != nil {
			return nil, err
		}
		if head.Snapshot != nil && *head.Snapshot == failed {
			r.cfg.Logger.Warn("a scope's snapshot can't be used; the whole log is read instead", "scope_id", id, "seq", failed.Seq, "err", why)
			return r.readLog(ctx, rec, head)
		}
	}
}

// damaged reports whether err says that a snapshot is lost or not whole.
func damaged(err error) bool {
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrNotFound) || errors.Is(err, ticket.AuthorityUnavailable)
}

// readLog is the scope by its log alone.
func (r reader) readLog(ctx context.Context, rec store.Record, head Head) (*view, error) {
	from, err := r.start(ctx, rec, newHead(head.Binding))
	if err != nil {
		return nil, err
	}
	return r.extend(ctx, from, rec.Mark, head)
}

// start is what the log is applied to: the head's snapshot, or an empty scope.
func (r reader) start(ctx context.Context, rec store.Record, head Head) (*view, error) {
	if head.Snapshot != nil {
		state, err := r.snapshot(ctx, head.Binding, rec.Mark.Birth, *head.Snapshot)
		if err != nil {
			return nil, err
		}
		return &view{state: state, head: head.Snapshot.head(state)}, nil
	}
	state, err := ticket.New(head.Binding)
	if err != nil {
		return nil, err
	}
	return &view{state: state, head: newHead(head.Binding)}, nil
}

// follows refuses a mark that can't come after before (S-6, S-12).
func follows(id string, before *view, now store.Mark, seq uint64) error {
	switch {
	case now.Birth != before.mark.Birth:
		return &store.Error{Op: "read", Key: scopeKey(id), Kind: store.ErrFenced, Fence: store.Fence{Birth: now.Birth}, Detail: "the scope was deleted and made anew; open it again"}
	case now.Revision <= before.mark.Revision || seq < before.head.Seq:
		return regressed(id, now, fmt.Sprintf("revision %d with %d commands was acknowledged; now it is at revision %d with %d", before.mark.Revision, before.head.Seq, now.Revision, seq))
	}
	return nil
}

// extend is from with the entries up to head, whose log it must be.
func (r reader) extend(ctx context.Context, from *view, mark store.Mark, head Head) (*view, error) {
	id := head.Binding.ScopeID
	if from.head.Binding != head.Binding {
		return nil, corrupt(id, "its binding changed", nil)
	}
	v, err := r.apply(ctx, from, mark, head.Seq)
	if err != nil {
		return nil, err
	}
	have := v.head
	have.Snapshot = head.Snapshot
	if have != head {
		if head.Seq == from.head.Seq && from.mark != (store.Mark{}) {
			return nil, regressed(id, mark, fmt.Sprintf("another history led to seq %d", head.Seq))
		}
		return nil, corrupt(id, "the head is not that of its log", nil)
	}
	return &view{state: v.state, mark: mark, head: head}, nil
}

// apply is from with the entries up to seq to. Each must name the hash of the one
// before it.
func (r reader) apply(ctx context.Context, from *view, mark store.Mark, to uint64) (*view, error) {
	id := from.head.Binding.ScopeID
	v := &view{state: from.state, mark: mark, head: from.head}
	err := r.entries(ctx, scopeKey(id), from.head.Seq+1, to, func(raw store.Entry) error {
		e, err := ticket.DecodeEntry(raw.Data)
		if err != nil {
			return corrupt(id, fmt.Sprintf("entry %d", raw.Seq), err)
		}
		if e.Prev != v.head.Tip {
			if v.head.Seq == from.head.Seq && from.mark != (store.Mark{}) {
				return regressed(id, mark, fmt.Sprintf("entry %d does not follow the one that was acknowledged", raw.Seq))
			}
			return corrupt(id, fmt.Sprintf("entry %d does not follow the one before it", raw.Seq), nil)
		}
		if v.state, err = v.state.Apply(&e); err != nil {
			return corrupt(id, "", err)
		}
		v.head.follow(v.state, raw.Data)
		return nil
	})
	return v, err
}

// entries passes a record's log entries from from to to.
func (r reader) entries(ctx context.Context, key store.Key, from, to uint64, visit func(store.Entry) error) error {
	for from <= to {
		page, err := r.page(ctx, key, from)
		if err != nil {
			return err
		}
		if len(page.Entries) == 0 {
			return &store.Error{Op: "read log", Key: key, Kind: store.ErrCorrupt, Detail: fmt.Sprintf("entry %d of %d is not there", from, to)}
		}
		for _, e := range page.Entries {
			if e.Seq != from {
				return &store.Error{Op: "read log", Key: key, Kind: store.ErrCorrupt, Detail: fmt.Sprintf("entry %d stands in the place of %d", e.Seq, from)}
			}
			if from > to {
				return nil
			}
			if err := visit(e); err != nil {
				return err
			}
			from++
		}
	}
	return nil
}

func (r reader) page(ctx context.Context, key store.Key, from uint64) (store.LogPage, error) {
	ctx, cancel := r.cfg.bounded(ctx)
	defer cancel()
	return r.store.ReadLog(ctx, key, from, 0)
}

// Read is the stored state of a scope, whoever supervises it, for looking only.
// Errors: store.ErrNotFound, store.ErrCorrupt.
func Read(ctx context.Context, st store.Store, scopeID string) (*ticket.State, error) {
	v, err := reader{st, Config{}.filled()}.read(ctx, scopeID, nil)
	if err != nil {
		return nil, err
	}
	return v.state, nil
}

func corrupt(id, detail string, err error) error {
	return &store.Error{Op: "read", Key: scopeKey(id), Kind: store.ErrCorrupt, Detail: detail, Err: err}
}

func regressed(id string, now store.Mark, detail string) error {
	return &store.Error{Op: "read", Key: scopeKey(id), Kind: store.ErrRegressed, Revision: now.Revision, Detail: detail}
}

// withKey puts the scope's key into an error that has none.
func withKey(id string, err error) error {
	var e *store.Error
	if errors.As(err, &e) && e.Key == (store.Key{}) {
		e.Key = scopeKey(id)
	}
	return err
}
