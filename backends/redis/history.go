package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Change is one thing that happened to a record, for people who ask who wrote, who
// owned it, and when.
type Change struct {
	Kind       string      `json:"kind"`                 // create, commit, never, acquire, release
	Revision   uint64      `json:"revision,omitempty"`   // that it made; 0 for acquire and release
	CommitID   string      `json:"commit_id,omitempty"`  // of create, commit and never
	Entries    uint64      `json:"entries,omitempty"`    // appended to the log
	Level      store.Level `json:"level,omitempty"`      // of durability, reached when it was written
	Owner      string      `json:"owner,omitempty"`      // who did it
	Run        string      `json:"run,omitempty"`        // its run
	Generation string      `json:"generation,omitempty"` // of acquire and release
	Force      bool        `json:"force,omitempty"`      // an operator's take-over
	Time       time.Time   `json:"time"`                 // by the clock of who did it
}

// turnPlace is the place of which units of owners have their checksums: the server
// numbers them when it writes.
const turnPlace = 0

func changeOf(u format.Unit, revision uint64) (Change, error) {
	at, err := time.Parse(time.RFC3339Nano, u.Time)
	if err != nil {
		return Change{}, fmt.Errorf("time of a change: %w", err)
	}
	return Change{
		Kind: string(u.Kind), Revision: revision, CommitID: u.ID, Entries: u.Entries, Level: u.Level,
		Owner: u.Owner, Run: u.Run, Generation: u.Gen, Force: u.Force, Time: at,
	}, nil
}

// History reads the changes that made the revisions from on, at most limit of them
// (0: 256). None: there are no more. Errors: ErrNotFound, ErrCorrupt (then with what is
// whole before the damage).
func (s *Store) History(ctx context.Context, key store.Key, from uint64, limit int) ([]Change, error) {
	return s.changes(ctx, "history", key, max(from, 1), limit, false)
}

// Owners reads acquires and releases in the order in which they happened, numbered from
// 1, at most limit of them (0: 256). An acquire that follows an acquire fenced the
// owner before it. Errors: as for History.
func (s *Store) Owners(ctx context.Context, key store.Key, from uint64, limit int) ([]Change, error) {
	return s.changes(ctx, "owners", key, max(from, 1), limit, true)
}

func (s *Store) changes(ctx context.Context, op string, key store.Key, from uint64, limit int, turns bool) ([]Change, error) {
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return nil, err
	}
	name := s.name(key)
	r, err := s.eval(ctx, op, key, loadScript, []string{name})
	if err != nil {
		return nil, err
	}
	rec, _, err := loaded(op, key, r)
	if err != nil && store.KindOf(err) != store.ErrCorrupt {
		return nil, err
	}
	end, field := rec.Mark.Revision, format.UnitField
	if turns {
		field = format.TurnField
		if end, err = format.ParseNumber(r.list(3).text(13)); err != nil {
			return nil, corrupt(op, key, "the number of turns is unreadable", err)
		}
	}
	if limit <= 0 {
		limit = historyPage
	}
	if from > end {
		return nil, nil
	}
	n := min(uint64(limit), historyPage, end-from+1)
	units, err := s.units(ctx, op, key, name, field, from, n)
	if err != nil {
		return nil, err
	}
	var out []Change
	for i := range n {
		place := from + i
		if turns {
			place = turnPlace
		}
		u, err := format.ParseUnit(place, units.text(int(i)))
		var c Change
		if err == nil {
			c, err = changeOf(u, place)
		}
		if err != nil {
			return out, corrupt(op, key, "the history is damaged", err)
		}
		out = append(out, c)
	}
	return out, nil
}
