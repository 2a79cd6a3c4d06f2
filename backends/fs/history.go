package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

var _ store.Historian = (*Store)(nil)

// History tells the journal's frames: each says under which fence it was written, and
// when. It reads and verifies the whole journal once.
func (s *Store) History(ctx context.Context, key store.Key, visit func(store.Change) bool) error {
	const op = "history"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return err
	}
	r, err := s.use(ctx, key)
	if err != nil {
		return err
	}
	defer s.unuse(r)
	if err := r.look(ctx); err != nil {
		return fail(op, key, err)
	}
	if r.st.deleted {
		return fail(op, key, r.deleted())
	}
	return fail(op, key, r.history(ctx, visit))
}

func (r *record) history(ctx context.Context, visit func(store.Change) bool) error {
	// What others append while this reads is not told.
	size := r.st.end
	if r.broken != nil {
		var err error
		if size, err = r.journal.Size(); err != nil {
			return err
		}
	}
	st, in := state{}, &frames{f: r.journal, size: size}
	for seq := uint64(1); ; seq++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		before := st
		h, m, parts, more, err := in.next(st.end)
		if err == nil && !more {
			return nil
		}
		if err == nil {
			err = st.apply(r.key, h, m, parts)
		}
		var c store.Change
		if err == nil {
			c, err = changeOf(h, m, &before, &st)
		}
		if err != nil {
			return r.damaged(before.end, err)
		}
		if c.Seq = seq; !visit(c) {
			return nil
		}
	}
}

// damaged is err as ErrCorrupt, unless it is of reading.
func (r *record) damaged(at int64, err error) error {
	var d *damage
	var path *fs.PathError
	switch {
	case errors.As(err, &d):
	case errors.As(err, &path):
		return err
	default:
		d = &damage{at: at, err: err}
	}
	return &store.Error{Kind: store.ErrCorrupt, Err: fmt.Errorf("%s: %w", r.journal.Name(), d)}
}

// changes names the frames of a record that lives.
var changes = map[format.Kind]store.ChangeKind{
	format.Create: store.ChangeCreate, format.Commit: store.ChangeCommit, format.Never: store.ChangeNever,
	format.Acquire: store.ChangeAcquire, format.Release: store.ChangeRelease,
}

// changeOf is what one frame did.
func changeOf(h format.Header, m format.Meta, before, after *state) (store.Change, error) {
	c := store.Change{
		Kind: changes[h.Kind], Revision: h.Rev, Entries: h.Log - before.log,
		CommitID: m.Commit, Fence: store.Fence{Birth: after.birth},
	}
	var err error
	if c.Time, err = time.Parse(time.RFC3339Nano, m.Time); err != nil {
		return c, err
	}
	if m.Fence != nil {
		c.Fence = *m.Fence
	}
	if h.Kind == format.Acquire && !before.fence.IsZero() {
		fenced := before.fence
		c.Fenced = &fenced
	}
	return c, nil
}
