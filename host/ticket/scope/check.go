package scope

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/internal/strictjson"
)

// Report is what Check found in one scope.
type Report struct {
	ID       string
	Head     Head
	Findings []string // damage, each with its place; empty: all whole
}

// Check verifies a scope: what the store can check (S-7), then every entry of the
// log from the first on, by the hashes and by applying it, then that the snapshot is
// what the log says. It changes nothing. Damage is a finding; an error says that it
// couldn't look.
func Check(ctx context.Context, st store.Store, scopeID string) (Report, error) {
	r := reader{st, Config{}.filled()}
	out := Report{ID: scopeID}
	if c, ok := st.(store.Checker); ok {
		found, err := c.Check(ctx, scopeKey(scopeID))
		if err != nil {
			return out, err
		}
		out.Findings = append(out.Findings, found.Findings...)
	}
	for {
		rec, head, err := r.load(ctx, scopeID)
		out.Head = head
		if err == nil {
			err = r.check(ctx, rec, head)
		}
		if err == nil {
			return out, nil
		}
		if errors.Is(err, errSnapshot) {
			// The snapshot of another handle may have taken its place meanwhile.
			if _, now, lerr := r.load(ctx, scopeID); lerr == nil && now.Snapshot != nil && *now.Snapshot != *head.Snapshot {
				continue
			}
		} else if !damaged(err) || errors.Is(err, store.ErrNotFound) {
			return out, err
		}
		out.Findings = append(out.Findings, err.Error())
		return out, nil
	}
}

// errSnapshot marks what is wrong with a snapshot: the scope is whole without it.
var errSnapshot = errors.New("the snapshot is not what the log says; opening reads the whole log")

func (r reader) check(ctx context.Context, rec store.Record, head Head) error {
	empty, err := r.start(ctx, rec, newHead(head.Binding))
	if err != nil {
		return err
	}
	if head.Snapshot == nil {
		_, err = r.extend(ctx, empty, rec.Mark, head)
		return err
	}
	at, err := r.apply(ctx, empty, store.Mark{}, head.Snapshot.Seq)
	if err != nil {
		return err
	}
	if _, err := r.extend(ctx, at, rec.Mark, head); err != nil {
		return err
	}
	state, err := r.snapshot(ctx, head.Binding, rec.Mark.Birth, *head.Snapshot)
	if err != nil {
		if damaged(err) {
			err = fmt.Errorf("%w: %w", errSnapshot, err)
		}
		return err
	}
	want, err := at.state.Canonical()
	if err != nil {
		return err
	}
	got, err := state.Canonical()
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) || head.Snapshot.head(state) != at.head {
		return fmt.Errorf("%w: seq %d", errSnapshot, head.Snapshot.Seq)
	}
	return nil
}

// Sweep removes snapshots that no head refers to and none will: what a host left that
// died between writing one and pointing to it, and those of scopes that are gone. It
// gives how many records it removed. One that is being written is left alone.
func Sweep(ctx context.Context, st store.Store) (int, error) {
	r := reader{st, Config{}.filled()}
	var keys []store.Key
	for q := (store.Query{Kind: KindSnapshot}); ; {
		page, err := st.List(ctx, q)
		if err != nil {
			return 0, err
		}
		for _, item := range page.Items {
			spare, err := r.spare(ctx, item)
			if err != nil {
				return 0, err
			}
			if spare {
				keys = append(keys, item.Record.Key)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	for i, key := range keys {
		if err := r.remove(ctx, key); err != nil {
			return i, err
		}
	}
	return len(keys), nil
}

// spare reports whether a snapshot's record is of no use. One that can't be read is
// left to an operator.
func (r reader) spare(ctx context.Context, item store.Listed) (bool, error) {
	var of snapshotRecord
	if item.Err != nil || strictjson.Unmarshal(item.Record.Head, &of) != nil {
		return false, nil
	}
	rec, head, err := r.load(ctx, of.Scope)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return true, nil
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, store.ErrUnsupported):
		return false, nil
	case err != nil:
		return false, err
	}
	return rec.Mark.Birth != of.Birth || head.Snapshot != nil && of.Seq < head.Snapshot.Seq, nil
}
