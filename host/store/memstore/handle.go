package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/loophost/loophost/host/store"
)

// durability is all that memory reaches.
var durability = store.Durability{Level: store.LevelMemory}

type handle struct {
	m    *Memory
	once sync.Once
	done chan struct{} // closed by Close
}

var (
	_ store.Store         = (*handle)(nil)
	_ store.SignalWatcher = (*handle)(nil)
	_ store.Checker       = (*handle)(nil)
)

// usable answers a cancelled context or a closed handle (S-9).
func (h *handle) usable(ctx context.Context, op string, key store.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-h.done:
		return &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Detail: "the store handle is closed"}
	default:
		return nil
	}
}

// record finds a record; the caller holds the mutex.
func (h *handle) record(op string, key store.Key) (*record, error) {
	if r := h.m.records[key]; r != nil {
		return r, nil
	}
	e := &store.Error{Op: op, Key: key, Kind: store.ErrNotFound}
	if _, dead := h.m.graves[key]; dead {
		e.Detail = "it was deleted"
	}
	return nil, e
}

// owned finds a record whose fence equals f (S-2); the caller holds the mutex.
func (h *handle) owned(op string, key store.Key, f store.Fence) (*record, error) {
	r, err := h.record(op, key)
	if err != nil {
		return nil, err
	}
	if current := r.currentFence(key.Kind); f.IsZero() || f != current {
		return nil, &store.Error{Op: op, Key: key, Kind: store.ErrFenced, Fence: current}
	}
	return r, nil
}

func (h *handle) Describe(ctx context.Context) (store.Description, error) {
	if err := h.usable(ctx, "describe", store.Key{}); err != nil {
		return store.Description{}, err
	}
	return store.Description{
		Name: "memory", Location: "memory of this process", Durability: durability,
		Probe:        "memory by design: nothing outlives the process",
		Capabilities: []string{"watch", "check"},
	}, nil
}

func (h *handle) Create(ctx context.Context, key store.Key, c store.Commit) (store.Ack, error) {
	const op = "create"
	if err := h.usable(ctx, op, key); err != nil {
		return store.Ack{}, err
	}
	if err := c.Validate(op, key, store.Limits{}); err != nil {
		return store.Ack{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if r := h.m.records[key]; r != nil {
		if ack, known, err := r.replay(op, key, c); known {
			return ack, err
		}
		return store.Ack{}, &store.Error{Op: op, Key: key, Kind: store.ErrExists}
	}
	if err := durableEnough(op, key, c); err != nil {
		return store.Ack{}, err
	}
	if c.After != (store.Mark{}) {
		return store.Ack{}, &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Detail: "a first commit builds on nothing; its After must be zero"}
	}
	r := &record{birth: store.BirthAt(h.m.clock(), h.m.graves[key]), released: true}
	ack := r.apply(c)
	h.m.records[key] = r
	return ack, nil
}

func (h *handle) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	const op = "commit"
	if err := h.usable(ctx, op, key); err != nil {
		return store.Ack{}, err
	}
	if err := c.Validate(op, key, store.Limits{}); err != nil {
		return store.Ack{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record(op, key)
	if err != nil {
		return store.Ack{}, err
	}
	if ack, known, err := r.replay(op, key, c); known {
		ack.Signals = r.pending(f.Run)
		return ack, err
	}
	if err := r.admits(op, key, f, c); err != nil {
		return store.Ack{}, err
	}
	ack := r.apply(c)
	ack.Signals = r.pending(f.Run)
	return ack, nil
}

// replay answers a commit id seen before (S-3).
func (r *record) replay(op string, key store.Key, c store.Commit) (ack store.Ack, known bool, err error) {
	m, known := r.find(c.ID)
	if !known {
		return store.Ack{}, false, nil
	}
	if m.content != store.ContentHash(c) {
		return store.Ack{}, true, &store.Error{Op: op, Key: key, Kind: store.ErrCommitIDReused}
	}
	return m.ack, true, nil
}

// admits is the check of S-2, S-5 and S-6, in the order of the error kinds.
func (r *record) admits(op string, key store.Key, f store.Fence, c store.Commit) error {
	current := r.currentFence(key.Kind)
	held := f == current && !f.IsZero()
	if key.Kind.Shared() {
		held = held || f.IsZero()
	}
	switch {
	case !held || c.After.Birth != r.birth:
		return &store.Error{Op: op, Key: key, Kind: store.ErrFenced, Fence: current}
	case c.After.Revision < r.revision:
		return &store.Error{Op: op, Key: key, Kind: store.ErrConflict, Revision: r.revision}
	case c.After.Revision > r.revision, c.After.Chain != "" && c.After.Chain != r.mark().Chain:
		return &store.Error{Op: op, Key: key, Kind: store.ErrRegressed, Revision: r.revision}
	case r.isNever(c.ID):
		return &store.Error{Op: op, Key: key, Kind: store.ErrCommitIDReused, Detail: "this id was resolved as never applied"}
	}
	return durableEnough(op, key, c)
}

func durableEnough(op string, key store.Key, c store.Commit) error {
	if durability.Reaches(c.Require) {
		return nil
	}
	return &store.Error{Op: op, Key: key, Kind: store.ErrNotDurable, Detail: "required " + c.Require.String() + ", reached " + durability.String()}
}

func (h *handle) Resolve(ctx context.Context, key store.Key, f store.Fence, commitID string) (store.Outcome, error) {
	const op = "resolve"
	if err := h.usable(ctx, op, key); err != nil {
		return store.Outcome{}, err
	}
	if err := (store.Commit{ID: commitID}).Validate(op, key, store.Limits{}); err != nil {
		return store.Outcome{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record(op, key)
	if err != nil {
		return store.Outcome{}, err
	}
	if m, known := r.find(commitID); known {
		ack := m.ack
		ack.Signals = r.pending(f.Run)
		return store.Outcome{Applied: true, Ack: ack}, nil
	}
	if r, err = h.owned(op, key, f); err != nil {
		return store.Outcome{}, err
	}
	// Resolving twice must not advance twice: the first answer may have been lost.
	if !r.isNever(commitID) {
		r.never(commitID)
	}
	ack := r.ack()
	ack.Signals = r.pending(f.Run)
	return store.Outcome{Ack: ack}, nil
}

func (h *handle) Acquire(ctx context.Context, key store.Key, claim store.Claim) (store.Fence, store.Record, error) {
	const op = "acquire"
	fail := func(err error) (store.Fence, store.Record, error) { return store.Fence{}, store.Record{}, err }
	if err := h.usable(ctx, op, key); err != nil {
		return fail(err)
	}
	if err := claim.Validate(key); err != nil {
		return fail(err)
	}
	generation, err := uuid.NewRandom()
	if err != nil {
		return fail(&store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Err: err})
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record(op, key)
	if err != nil {
		return fail(err)
	}
	now := h.m.clock()
	holder := r.holder(now)
	switch {
	case claim.Generation != "" && claim.Generation != r.generation:
		return fail(&store.Error{
			Op: op, Key: key, Kind: store.ErrConflict, Revision: r.revision, Fence: r.fence,
			Detail: "the record's generation is " + r.generation,
		})
	case holder != nil && !claim.Force:
		return fail(&store.Error{Op: op, Key: key, Kind: store.ErrBusy, Holder: *holder, Fence: r.fence})
	case claim.Seen != (store.Mark{}) && !r.holds(claim.Seen):
		return fail(&store.Error{Op: op, Key: key, Kind: store.ErrRegressed, Revision: r.revision})
	}
	if r.fence.Run != claim.Run {
		r.signals = nil
	}
	r.generation = generation.String()
	r.fence = store.Fence{Birth: r.birth, Generation: r.generation, Owner: claim.Owner, Run: claim.Run}
	r.started, r.expires, r.released = now, now.Add(ttlOr(claim.TTL)), false
	return r.fence, r.snapshot(key, now), nil
}

func (h *handle) Renew(ctx context.Context, key store.Key, f store.Fence, ttl time.Duration) error {
	return h.change(ctx, "renew", key, f, func(r *record) { r.expires = h.m.clock().Add(ttlOr(ttl)) })
}

func (h *handle) Release(ctx context.Context, key store.Key, f store.Fence) error {
	return h.change(ctx, "release", key, f, func(r *record) {
		r.fence, r.released, r.signals = store.Fence{}, true, nil
	})
}

func (h *handle) change(ctx context.Context, op string, key store.Key, f store.Fence, do func(*record)) error {
	if err := h.usable(ctx, op, key); err != nil {
		return err
	}
	if err := key.Validate(); err != nil {
		return err
	}
	if key.Kind.Shared() {
		return &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Detail: "records of a shared kind have no owner"}
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.owned(op, key, f)
	if err == nil {
		do(r)
	}
	return err
}

func (h *handle) Delete(ctx context.Context, key store.Key, f store.Fence) error {
	const op = "delete"
	if err := h.usable(ctx, op, key); err != nil {
		return err
	}
	if err := key.Validate(); err != nil {
		return err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.owned(op, key, f)
	if err != nil {
		return err
	}
	h.m.graves[key] = store.BirthAt(h.m.clock(), r.birth)
	delete(h.m.records, key)
	return nil
}

func (h *handle) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

func ttlOr(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		return store.DefaultTTL
	}
	return ttl
}
