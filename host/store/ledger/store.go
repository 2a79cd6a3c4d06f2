package ledger

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

// Bounds of one page, as the port states them.
const (
	pageEntries = 256
	pageBytes   = 8 << 20
	pageRecords = 100
)

// Store is the port over an Engine. Make it with Over.
type Store struct {
	engine  Engine
	clock   func() time.Time
	reached store.Durability
}

var _ store.Store = (*Store)(nil)

// Over makes a store of an engine. reached is what the engine's transactions reach;
// clock gives the time for births and leases, nil: time.Now.
func Over(e Engine, reached store.Durability, clock func() time.Time) *Store {
	if clock == nil {
		clock = time.Now
	}
	return &Store{engine: e, clock: clock, reached: reached}
}

// Describe is the engine's.
func (s *Store) Describe(ctx context.Context) (store.Description, error) {
	if err := ctx.Err(); err != nil {
		return store.Description{}, err
	}
	d, err := s.engine.Describe(ctx)
	return d, Error(ctx, "describe", store.Key{}, err)
}

// Close closes the engine; records that are owned are left to their leases.
func (s *Store) Close() error {
	return Error(context.Background(), "close", store.Key{}, s.engine.Close())
}

// Create makes a record with its first commit.
func (s *Store) Create(ctx context.Context, key store.Key, c store.Commit) (ack store.Ack, err error) {
	const op = "create"
	if err := c.Validate(op, key, store.Limits{}); err != nil {
		return ack, err
	}
	err = s.do(ctx, op, key, true, func(tx Tx) error {
		switch st, _, err := tx.Load(); {
		case err != nil:
			return err
		case st != nil:
			known, err := tx.Settled(c.ID)
			if err == nil {
				ack, err = Again(key, c, known)
			}
			return err
		}
		grave, err := tx.Grave()
		if err != nil {
			return err
		}
		st, first, err := Create(key, c, s.clock(), grave, s.reached)
		if err != nil {
			return err
		}
		ack = first.Ack
		return tx.Put(Change{State: st, ID: c.ID, Settled: &first, Applied: true, Head: c.Head, Entries: c.Entries})
	})
	return ack, err
}

// Commit applies c whole, or not at all.
func (s *Store) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (ack store.Ack, err error) {
	const op = "commit"
	if err := c.Validate(op, key, store.Limits{}); err != nil {
		return ack, err
	}
	err = s.on(ctx, op, key, true, func(tx Tx, st *State, _ []byte) error {
		known, err := tx.Settled(c.ID)
		if err != nil {
			return err
		}
		var fresh *Settled
		ack, fresh, err = st.Commit(key, f, c, known, s.reached)
		if err != nil || fresh == nil {
			return err
		}
		return tx.Put(Change{State: st, ID: c.ID, Settled: fresh, Applied: true, Head: c.Head, Entries: c.Entries})
	})
	return ack, err
}

// Resolve settles a commit whose outcome its writer doesn't know.
func (s *Store) Resolve(ctx context.Context, key store.Key, f store.Fence, id string) (out store.Outcome, err error) {
	const op = "resolve"
	if err := (store.Commit{ID: id}).Validate(op, key, store.Limits{}); err != nil {
		return out, err
	}
	err = s.on(ctx, op, key, true, func(tx Tx, st *State, _ []byte) error {
		known, err := tx.Settled(id)
		if err != nil {
			return err
		}
		var fresh *Settled
		out, fresh, err = st.Resolve(key, f, id, known, s.reached)
		if err != nil || fresh == nil {
			return err
		}
		return tx.Put(Change{State: st, ID: id, Settled: fresh})
	})
	return out, err
}

// Acquire makes the caller the record's owner.
func (s *Store) Acquire(ctx context.Context, key store.Key, claim store.Claim) (f store.Fence, rec store.Record, err error) {
	const op = "acquire"
	if err := claim.Validate(key); err != nil {
		return f, rec, err
	}
	generation, err := uuid.NewRandom()
	if err != nil {
		return f, rec, Error(ctx, op, key, err)
	}
	err = s.on(ctx, op, key, true, func(tx Tx, st *State, head []byte) (err error) {
		now := s.clock()
		f, err = st.Acquire(key, claim, now, generation, func(seen store.Mark) (bool, error) {
			chain, err := tx.Chain(seen.Revision)
			return chain == seen.Chain, err
		})
		if err != nil {
			return err
		}
		rec = st.Record(key, head, now)
		return tx.Put(Change{State: st})
	})
	return f, rec, err
}

// Renew extends the owner's lease.
func (s *Store) Renew(ctx context.Context, key store.Key, f store.Fence, ttl time.Duration) error {
	return s.own(ctx, "renew", key, func(st *State) error { return st.Renew(key, f, s.clock(), ttl) })
}

// Release ends the ownership.
func (s *Store) Release(ctx context.Context, key store.Key, f store.Fence) error {
	return s.own(ctx, "release", key, func(st *State) error { return st.Release(key, f) })
}

func (s *Store) own(ctx context.Context, op string, key store.Key, change func(*State) error) error {
	if err := errors.Join(ctx.Err(), key.Validate()); err != nil {
		return err
	}
	if key.Kind.Shared() { // whether it is there or not, as Acquire answers
		return ownerless(op, key)
	}
	return s.on(ctx, op, key, true, func(tx Tx, st *State, _ []byte) error {
		if err := change(st); err != nil {
			return err
		}
		return tx.Put(Change{State: st})
	})
}

// Delete removes the record and leaves its tombstone.
func (s *Store) Delete(ctx context.Context, key store.Key, f store.Fence) error {
	return s.on(ctx, "delete", key, true, func(tx Tx, st *State, _ []byte) error {
		grave, err := st.Delete(key, f, s.clock())
		if err != nil {
			return err
		}
		return tx.Delete(grave)
	})
}

// Signal posts a signal to the run that owns the record.
func (s *Store) Signal(ctx context.Context, key store.Key, sig store.Signal) error {
	if err := sig.Validate(key); err != nil {
		return err
	}
	return s.on(ctx, "signal", key, true, func(tx Tx, st *State, _ []byte) error {
		changed, err := st.Signal(key, sig)
		if err != nil || !changed {
			return err
		}
		return tx.Put(Change{State: st})
	})
}

// Load reads a record without its log.
func (s *Store) Load(ctx context.Context, key store.Key) (rec store.Record, err error) {
	const op = "load"
	err = s.do(ctx, op, key, false, func(tx Tx) error {
		st, head, err := tx.Load()
		switch {
		case st != nil: // also of a damaged record, what is whole
			rec = st.Record(key, head, s.clock())
		case err == nil:
			err = missing(tx, op, key)
		}
		return err
	})
	return rec, err
}

// ReadLog reads a page of the log.
func (s *Store) ReadLog(ctx context.Context, key store.Key, from uint64, limit int) (page store.LogPage, err error) {
	if limit <= 0 {
		limit = pageEntries
	}
	err = s.on(ctx, "readlog", key, false, func(tx Tx, st *State, _ []byte) error {
		page.Length = st.LogLength
		if from > page.Length {
			return nil
		}
		size := 0
		return tx.Entries(max(from, 1), func(e store.Entry) bool {
			if size += len(e.Data); len(page.Entries) == limit || size > pageBytes && len(page.Entries) > 0 {
				return false
			}
			page.Entries = append(page.Entries, e)
			return len(page.Entries) < limit
		})
	})
	return page, err
}

// List reads the records of a kind in the order of their ids.
func (s *Store) List(ctx context.Context, q store.Query) (store.ListPage, error) {
	const op = "list"
	if err := errors.Join(ctx.Err(), (store.Key{Kind: q.Kind, ID: "any"}).Validate()); err != nil {
		return store.ListPage{}, err
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return store.ListPage{}, &store.Error{Op: op, Kind: store.ErrUnsupported, Detail: "the cursor is not one that this store gave", Err: err}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = pageRecords
	}
	rows, err := s.engine.Rows(ctx, q.Kind, string(after), limit+1)
	if err != nil {
		return store.ListPage{}, Error(ctx, op, store.Key{}, err)
	}
	var page store.ListPage
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(rows[limit-1].ID))
	}
	now := s.clock()
	for _, row := range rows {
		key := store.Key{Kind: q.Kind, ID: row.ID}
		item := store.Listed{Record: store.Record{Key: key}, Err: Error(ctx, op, key, row.Err)}
		if row.State != nil {
			item.Record = row.State.Record(key, row.Head, now)
		}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

// on runs f in a transaction on a record that is there and whole.
func (s *Store) on(ctx context.Context, op string, key store.Key, write bool, f func(Tx, *State, []byte) error) error {
	return s.do(ctx, op, key, write, func(tx Tx) error {
		st, head, err := tx.Load()
		if err != nil {
			return err
		}
		if st == nil {
			return missing(tx, op, key)
		}
		return f(tx, st, head)
	})
}

func (s *Store) do(ctx context.Context, op string, key store.Key, write bool, f func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := key.Validate(); err != nil {
		return err
	}
	return Error(ctx, op, key, s.engine.Do(ctx, key, write, f))
}

// missing is the error of a record that is not there.
func missing(tx Tx, op string, key store.Key) error {
	grave, err := tx.Grave()
	if err != nil {
		return err
	}
	return NotFound(op, key, grave != 0)
}

// Error makes the port's error of an engine's, or the context's; the port's own and nil
// stay as they are.
func Error(ctx context.Context, op string, key store.Key, err error) error {
	var already *store.Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	kind := store.KindOf(err)
	if kind == nil {
		if cause := ctx.Err(); cause != nil {
			return cause
		}
		kind = store.ErrUnavailable
	}
	return &store.Error{Op: op, Key: key, Kind: kind, Err: err}
}
