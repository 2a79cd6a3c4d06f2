package fs

import (
	"context"
	"errors"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

const detailPassed = "this process held the commit lock for too long, and another went past it; resolve the commit"

// Commit appends one frame and flushes it once (S-11).
func (s *Store) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	const op = "commit"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return store.Ack{}, err
	}
	defer leave()
	if err := c.Validate(op, key, store.Limits{}); err != nil {
		return store.Ack{}, err
	}
	r, err := s.use(ctx, key)
	if err != nil {
		return store.Ack{}, err
	}
	defer s.unuse(r)
	if err := r.begin(ctx, patience); err != nil {
		return store.Ack{}, fail(op, key, err)
	}
	defer r.give()
	ack, err := r.commit(f, c)
	if err != nil {
		return store.Ack{}, fail(op, key, err)
	}
	ack.Signals = r.pending(f.Run)
	return ack, nil
}

func (r *record) commit(f store.Fence, c store.Commit) (store.Ack, error) {
	if r.st.deleted {
		return store.Ack{}, r.deleted()
	}
	if ack, known, err := r.replayed(c); known {
		return ack, err
	}
	if err := r.admits(f, c); err != nil {
		return store.Ack{}, err
	}
	if r.key.Kind.Shared() {
		f = store.Fence{}
	}
	chain, content := hashes(r.st.chain, c)
	if err := r.appendChained(format.Commit, r.metaOf(c, content, f), chain, parts(c)); err != nil {
		return store.Ack{}, err
	}
	return r.st.acks[len(r.st.acks)-1].ack, nil
}

// commitMeta is a commit's meta line; a zero fence is left out.
func (r *record) commitMeta(c store.Commit, f store.Fence) format.Meta {
	return r.metaOf(c, contentHash(c), f)
}

// metaOf is commitMeta where the content's hash is known.
func (r *record) metaOf(c store.Commit, content string, f store.Fence) format.Meta {
	m := format.Meta{Commit: c.ID, Content: content, Level: r.s.desc.Durability.Level.String()}
	if !f.IsZero() {
		m.Fence = &f
	}
	return m
}

// replayed answers a commit id seen before (S-3).
func (r *record) replayed(c store.Commit) (ack store.Ack, known bool, err error) {
	m := r.st.find(c.ID)
	if m == nil {
		return store.Ack{}, false, nil
	}
	if m.content != contentHash(c) {
		return store.Ack{}, true, &store.Error{Kind: store.ErrCommitIDReused}
	}
	if err := r.settleFlush(); err != nil {
		return store.Ack{}, true, &store.Error{Kind: store.ErrUnknownOutcome, Err: err}
	}
	return m.ack, true, nil
}

// admits is the check of S-2, S-5, S-6 and S-7, in the order of the error kinds.
func (r *record) admits(f store.Fence, c store.Commit) error {
	current := r.st.currentFence(r.key.Kind)
	held := f == current && !f.IsZero()
	if r.key.Kind.Shared() {
		held = held || f.IsZero()
	}
	switch {
	case !held || c.After.Birth != r.st.birth:
		return r.fenced()
	case c.After.Revision < r.st.rev:
		return &store.Error{Kind: store.ErrConflict, Revision: r.st.rev}
	case r.broken != nil:
		return &store.Error{Kind: store.ErrCorrupt, Err: r.broken}
	case c.After.Revision > r.st.rev, c.After.Chain != "" && c.After.Chain != r.st.chain:
		return &store.Error{Kind: store.ErrRegressed, Revision: r.st.rev}
	case r.st.isNever(c.ID):
		return &store.Error{Kind: store.ErrCommitIDReused, Detail: "this id was resolved as never applied"}
	case !r.s.desc.Durability.Reaches(c.Require):
		return r.notDurable(c)
	}
	return nil
}

// owned refuses a fence that is not the record's (S-2), and a damaged record.
func (r *record) owned(f store.Fence) error {
	switch {
	case r.st.deleted:
		return r.deleted()
	case f.IsZero() || f != r.st.currentFence(r.key.Kind):
		return r.fenced()
	case r.broken != nil:
		return &store.Error{Kind: store.ErrCorrupt, Err: r.broken}
	}
	return nil
}

// fenced says who may write. A lock for a run that may not any more is given up.
func (r *record) fenced() error {
	if r.owner != nil && r.owning != r.st.fence {
		if err := r.owner.Close(); err != nil {
			r.s.log.Warn("the owner's lock was not closed", "file", r.owner.Name(), "err", err)
		}
		r.owner = nil
	}
	return &store.Error{Kind: store.ErrFenced, Fence: r.st.currentFence(r.key.Kind)}
}

func (r *record) deleted() error {
	return &store.Error{Kind: store.ErrNotFound, Detail: "it was deleted"}
}

func (r *record) notDurable(c store.Commit) error {
	return &store.Error{Kind: store.ErrNotDurable, Detail: "required " + c.Require.String() + ", reached " + r.s.desc.Durability.String()}
}

// time is the present for people.
func (r *record) time() string { return r.s.now().UTC().Format("2006-01-02T15:04:05.000Z") }

// Resolve settles a commit whose outcome is not known (S-4). After a failed
// flush it reads the journal through a new descriptor and flushes what it finds.
func (s *Store) Resolve(ctx context.Context, key store.Key, f store.Fence, commitID string) (store.Outcome, error) {
	const op = "resolve"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return store.Outcome{}, err
	}
	defer leave()
	if err := (store.Commit{ID: commitID}).Validate(op, key, store.Limits{}); err != nil {
		return store.Outcome{}, err
	}
	r, err := s.use(ctx, key)
	if err != nil {
		return store.Outcome{}, err
	}
	defer s.unuse(r)
	if err := r.begin(ctx, patience); err != nil {
		return store.Outcome{}, fail(op, key, err)
	}
	defer r.give()
	out, err := r.resolve(f, commitID)
	if err != nil {
		return store.Outcome{}, fail(op, key, err)
	}
	out.Ack.Signals = r.pending(f.Run)
	return out, nil
}

func (r *record) resolve(f store.Fence, id string) (store.Outcome, error) {
	if r.poisoned != nil {
		if err := r.read(true); err != nil {
			return store.Outcome{}, err
		}
	}
	if r.st.deleted {
		return store.Outcome{}, r.deleted()
	}
	ack, found, never, err := r.search(id)
	if err != nil {
		return store.Outcome{}, err
	}
	if !found {
		if err := r.owned(f); err != nil {
			return store.Outcome{}, err
		}
		ack = store.Ack{Mark: r.st.mark(), LogLength: r.st.log, Durability: r.s.desc.Durability}
	}
	if found || never {
		if err := r.settleFlush(); err != nil {
			return store.Outcome{}, &store.Error{Kind: store.ErrUnknownOutcome, Err: err}
		}
		return store.Outcome{Applied: found, Ack: ack}, nil
	}
	if err := r.append(format.Never, format.Meta{Commit: id, Fence: fenceOrNil(f)}); err != nil {
		return store.Outcome{}, err
	}
	ack.Mark = r.st.mark()
	return store.Outcome{Ack: ack}, nil
}

func fenceOrNil(f store.Fence) *store.Fence {
	if f.IsZero() {
		return nil
	}
	return &f
}

// search looks for a commit id: among the remembered ones, else in the whole
// journal, since "never" must not be said of a commit that was applied.
func (r *record) search(id string) (ack store.Ack, applied, never bool, err error) {
	if m := r.st.find(id); m != nil {
		return m.ack, true, false, nil
	}
	if r.st.isNever(id) {
		return ack, false, true, nil
	}
	if uint64(len(r.st.acks)+len(r.st.nevers)) == r.st.rev {
		return ack, false, false, nil
	}
	size, err := r.journal.Size()
	if err != nil {
		return ack, false, false, err
	}
	var st state
	err = st.replay(r.key, r.journal, size, func(st *state) {
		if m := st.find(id); m != nil {
			ack, applied = m.ack, true
		}
		never = never || st.isNever(id)
	})
	var d *damage
	if errors.As(err, &d) {
		err = nil // the caller knows that the record is damaged
	}
	return ack, applied, never, err
}
