package fs

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Create makes the record's folder and its journal; the journal appears whole.
func (s *Store) Create(ctx context.Context, key store.Key, c store.Commit) (store.Ack, error) {
	const op = "create"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return store.Ack{}, err
	}
	defer leave()
	if err := c.Validate(op, key, store.Limits{}); err != nil {
		return store.Ack{}, err
	}
	if err := s.makeFolder(key); err != nil {
		return store.Ack{}, fail(op, key, err)
	}
	r, err := s.use(ctx, key)
	if err != nil {
		return store.Ack{}, err
	}
	defer s.unuse(r)
	if err := r.beginNew(ctx, patience); err != nil {
		return store.Ack{}, fail(op, key, err)
	}
	defer r.give()
	ack, err := r.make(c)
	return ack, fail(op, key, err)
}

func (r *record) make(c store.Commit) (store.Ack, error) {
	st := &r.st
	if r.journal != nil && st.began && !st.deleted {
		if ack, known, err := r.replayed(c); known {
			return ack, err
		}
		return store.Ack{}, &store.Error{Kind: store.ErrExists}
	}
	if r.broken != nil {
		return store.Ack{}, &store.Error{Kind: store.ErrCorrupt, Err: r.broken}
	}
	if !r.s.desc.Durability.Reaches(c.Require) {
		return store.Ack{}, r.notDurable(c)
	}
	if c.After != (store.Mark{}) {
		return store.Ack{}, &store.Error{Kind: store.ErrUnsupported, Detail: "a first commit builds on nothing; its After must be zero"}
	}
	birth := store.BirthAt(r.s.now(), st.tombstone)
	m := r.commitMeta(c, store.Fence{})
	m.Key, m.Birth, m.Time = &r.key, birth, r.time()
	var made state
	h, b, err := made.frame(format.Create, m, parts(c)...)
	if err == nil {
		err = made.apply(r.key, h, m, parts(c))
	}
	if err != nil {
		return store.Ack{}, err
	}
	if r.key.Kind.Shared() {
		b = append(b, filler(stepShared)...)
	} else {
		mark := format.Released{Birth: birth, End: made.end, Last: made.prev}
		if err := r.dir.WriteAtomic(releasedName(r.number), mark.Encode()); err != nil {
			return store.Ack{}, err
		}
	}
	err = r.dir.WriteAtomic(journalName(r.number), b)
	if again := r.forget(); err == nil {
		err = again
	}
	if err != nil {
		// The name may be there and not be flushed.
		if r.read(true) == nil && r.st.find(c.ID) != nil {
			return store.Ack{}, &store.Error{Kind: store.ErrUnknownOutcome, Err: err}
		}
		return store.Ack{}, err
	}
	if r.passed() {
		return store.Ack{}, &store.Error{Kind: store.ErrUnknownOutcome, Detail: detailPassed}
	}
	return made.acks[0].ack, nil
}

// makeFolder makes the record's folder durable, and id.json in it, which says whose it is.
func (s *Store) makeFolder(key store.Key) (err error) {
	full := folderPath(key)
	for _, dir := range []string{path.Dir(path.Dir(full)), path.Dir(full), full} {
		if err := s.root.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Also when it was there: whoever made it may not have flushed it yet.
		if err := s.root.Sync(path.Dir(dir)); err != nil {
			return err
		}
	}
	dir, err := s.root.Sub(full)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if _, err := dir.Lstat(idName); err == nil {
		return nil
	}
	b, err := format.EncodeKey(key)
	if err != nil {
		return err
	}
	return dir.WriteAtomic(idName, b)
}
