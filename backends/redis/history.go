package redis

import (
	"context"
	"errors"
	"time"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

var _ store.Historian = (*Store)(nil)

// turnPlace is the place of which units of owners have their checksums: the server
// numbers them when it writes.
const turnPlace = 0

// History tells the record's units. Those that made a revision and those of owners are
// kept apart, each in its order; a commit names its run, so it is told after the run
// came and before another did.
func (s *Store) History(ctx context.Context, key store.Key, visit func(store.Change) bool) error {
	const op = "history"
	writes := units{s: s, ctx: ctx, op: op, key: key}
	turns := units{s: s, ctx: ctx, op: op, key: key, turns: true}
	if err := errors.Join(writes.fill(), turns.fill()); err != nil {
		return err
	}
	var seq, revision uint64
	var owner store.Fence // zero: nobody
	tell := func(c store.Change) bool {
		seq++
		c.Seq = seq
		if c.Revision == 0 {
			c.Revision = revision
		}
		revision = c.Revision
		return visit(c)
	}
	for {
		w, t := writes.peek(), turns.peek()
		if w == nil && (t == nil || writes.err != nil) || t == nil && turns.err != nil {
			return errors.Join(writes.err, turns.err)
		}
		if w == nil || t != nil && w.Run != owner.Run {
			c, err := changeOf(t, 0)
			if err != nil {
				return corrupt(op, key, "the history is damaged", err)
			}
			if c.Kind == store.ChangeAcquire && !owner.IsZero() {
				fenced := owner
				c.Fenced = &fenced
			}
			if owner = c.Fence; c.Kind == store.ChangeRelease {
				owner = store.Fence{}
			}
			turns.next++
			if !tell(c) {
				return nil
			}
			continue
		}
		writes.next++
		c, err := changeOf(w, writes.next-1)
		if err != nil {
			return corrupt(op, key, "the history is damaged", err)
		}
		if c.Fence.Run == owner.Run {
			c.Fence = orBirth(owner, c.Fence)
		}
		if !tell(c) {
			return nil
		}
	}
}

// orBirth is the owner's fence, or, where there is none, the one with the birth alone.
func orBirth(owner, birth store.Fence) store.Fence {
	if owner.IsZero() {
		return birth
	}
	return owner
}

func changeOf(u *format.Unit, revision uint64) (store.Change, error) {
	at, err := time.Parse(time.RFC3339Nano, u.Time)
	return store.Change{
		Kind: store.ChangeKind(u.Kind), Revision: revision, CommitID: u.ID, Entries: u.Entries, Time: at,
		Fence: store.Fence{Birth: u.Birth, Generation: u.Gen, Owner: u.Owner, Run: u.Run},
	}, err
}

// units reads the units of one kind of places in order, a page at a time.
type units struct {
	s     *Store
	ctx   context.Context // of the one History that uses it
	op    string
	key   store.Key
	turns bool

	page  []format.Unit
	first uint64 // place of page[0]
	next  uint64 // place of the next unit; the first is 1
	err   error  // what is behind the last page is damaged
}

// fill reads the first page, if nothing was read yet, or the next.
func (u *units) fill() error {
	u.next = max(u.next, 1)
	page, err := u.s.unitsFrom(u.ctx, u.op, u.key, u.next, u.turns)
	if err != nil && store.KindOf(err) != store.ErrCorrupt {
		return err
	}
	u.page, u.first, u.err = page, u.next, err
	return nil
}

// peek is the next unit; nil: there is none, or err says why.
func (u *units) peek() *format.Unit {
	if u.next == u.first+uint64(len(u.page)) && u.err == nil && len(u.page) > 0 {
		if err := u.fill(); err != nil {
			u.page, u.err = nil, err
		}
	}
	if i := u.next - u.first; i < uint64(len(u.page)) {
		return &u.page[i]
	}
	return nil
}

// unitsFrom reads the units at the places from on: of revisions, or of turns.
func (s *Store) unitsFrom(ctx context.Context, op string, key store.Key, from uint64, turns bool) ([]format.Unit, error) {
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
	if from > end {
		return nil, nil
	}
	n := min(historyPage, end-from+1)
	found, err := s.units(ctx, op, key, name, field, from, n)
	if err != nil {
		return nil, err
	}
	var out []format.Unit
	for i := range n {
		place := from + i
		if turns {
			place = turnPlace
		}
		u, err := format.ParseUnit(place, found.text(int(i)))
		if err != nil {
			return out, corrupt(op, key, "the history is damaged", err)
		}
		out = append(out, u)
	}
	return out, nil
}
