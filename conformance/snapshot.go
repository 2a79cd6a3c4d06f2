package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

// snapshot is everything that a reader can see of one record.
type snapshot struct {
	record store.Record
	log    []store.Entry
	absent bool
}

// look reads the whole record of key.
func look(ctx context.Context, s store.Store, key store.Key) (snapshot, error) {
	r, err := s.Load(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return snapshot{absent: true}, nil
	}
	if err != nil {
		return snapshot{}, failf("load %q: %w", key.ID, err)
	}
	log, err := readAll(ctx, s, key)
	return snapshot{record: r, log: log}, err
}

// readAll reads a log from its start, page by page.
func readAll(ctx context.Context, s store.Store, key store.Key) ([]store.Entry, error) {
	var all []store.Entry
	for {
		from := uint64(len(all)) + 1
		p, err := s.ReadLog(ctx, key, from, 0)
		if err != nil {
			return nil, failf("read the log from %d: %w", from, err)
		}
		if len(p.Entries) == 0 {
			if uint64(len(all)) < p.Length {
				return nil, failf("read the log from %d: want at least one entry of %d, got an empty page", from, p.Length)
			}
			return all, nil
		}
		for i, en := range p.Entries {
			if en.Seq != from+uint64(i) {
				return nil, failf("read the log from %d: want sequence number %d at place %d, got %d", from, from+uint64(i), i, en.Seq)
			}
		}
		all = append(all, p.Entries...)
	}
}

// same checks that two views show the same head, log, revision and last
// commit: what only a commit may change (S-1).
func (want snapshot) same(what string, got snapshot) error {
	if want.absent || got.absent {
		return wantEqual(what+": record absent", got.absent, want.absent)
	}
	return errors.Join(
		wantEqual(what+": mark", got.record.Mark, want.record.Mark),
		wantBytes(what+": head", got.record.Head, want.record.Head),
		wantEqual(what+": last commit id", got.record.LastCommitID, want.record.LastCommitID),
		wantEqual(what+": log length", got.record.LogLength, want.record.LogLength),
		sameLog(what, got.log, want.log),
	)
}

// untouched is same, and the fence too.
func (want snapshot) untouched(what string, got snapshot) error {
	return errors.Join(want.same(what, got), wantEqual(what+": fence", got.record.Fence, want.record.Fence),
		wantEqual(what+": last generation", got.record.Generation, want.record.Generation))
}

func sameLog(what string, got, want []store.Entry) error {
	if len(got) != len(want) {
		return failf("%s: want %d log entries, got %d", what, len(want), len(got))
	}
	for i := range want {
		at := fmt.Sprintf("%s: entry %d", what, i+1)
		if err := errors.Join(
			wantEqual(at+": sequence number", got[i].Seq, want[i].Seq),
			wantEqual(at+": revision", got[i].Revision, want[i].Revision),
			wantBytes(at, got[i].Data, want[i].Data),
		); err != nil {
			return err
		}
	}
	return nil
}

// expectUntouched loads key again and compares it with before.
func expectUntouched(ctx context.Context, s store.Store, what string, key store.Key, before snapshot) error {
	after, err := look(ctx, s, key)
	if err != nil {
		return failf("%s: %w", what, err)
	}
	return before.untouched("after "+what, after)
}
