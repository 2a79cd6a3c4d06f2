package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Acquire makes the caller the owner. The record is read and verified first, so that
// nobody becomes the owner of a damaged one.
func (s *Store) Acquire(ctx context.Context, key store.Key, claim store.Claim) (f store.Fence, rec store.Record, err error) {
	const op = "acquire"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return f, rec, err
	}
	defer leave()
	if err := claim.Validate(key); err != nil {
		return f, rec, err
	}
	generation, err := uuid.NewRandom()
	if err != nil {
		return f, rec, &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Err: err}
	}
	name := s.name(key)
	for {
		old, _, err := s.load(ctx, op, key, name)
		if err != nil {
			return store.Fence{}, store.Record{}, err
		}
		f = store.Fence{Birth: old.Mark.Birth, Generation: generation.String(), Owner: claim.Owner, Run: claim.Run}
		r, err := s.acquire(ctx, key, name, f, claim)
		if err != nil {
			return store.Fence{}, store.Record{}, err
		}
		if r.verdict() == "reborn" {
			continue // deleted and made again since it was read
		}
		if r.verdict() != "ok" {
			return store.Fence{}, store.Record{}, notAcquired(key, r)
		}
		if rec, _, err = loaded(op, key, r); err != nil {
			return store.Fence{}, store.Record{}, err
		}
		return f, rec, nil
	}
}

func (s *Store) acquire(ctx context.Context, key store.Key, name string, f store.Fence, claim store.Claim) (reply, error) {
	const op = "acquire"
	unit, err := format.Unit{
		Kind: format.Acquire, Birth: f.Birth, Owner: f.Owner, Run: f.Run, Gen: f.Generation, Force: claim.Force,
		Time: s.c.Clock().UTC().Format(time.RFC3339Nano),
	}.Encode(turnPlace)
	if err != nil {
		return nil, &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Err: err}
	}
	force, seenBirth, seenRevision := "", "", ""
	if claim.Force {
		force = "1"
	}
	if claim.Seen != (store.Mark{}) {
		seenBirth, seenRevision = format.Birth(claim.Seen.Birth), format.Number(claim.Seen.Revision)
	}
	return s.eval(ctx, op, key, acquireScript, []string{name},
		format.Fence(f), format.Birth(f.Birth), f.Generation, f.Run, micros(claim.TTL), force, claim.Generation,
		seenBirth, seenRevision, claim.Seen.Chain, unit)
}

// notAcquired is why an acquire was refused.
func notAcquired(key store.Key, r reply) error {
	const op = "acquire"
	e := &store.Error{Op: op, Key: key}
	fenceAt, revisionAt := 0, 0
	switch r.verdict() {
	case "generation":
		e.Kind, e.Detail, fenceAt, revisionAt = store.ErrConflict, "the record's generation is "+r.text(4), 2, 3
	case "busy":
		e.Kind, fenceAt = store.ErrBusy, 2
	case "regressed":
		e.Kind, revisionAt = store.ErrRegressed, 1
	default:
		return refused(op, key, r)
	}
	var err error
	if fenceAt > 0 {
		if e.Fence, err = format.ParseFence(r.text(fenceAt)); err != nil {
			return corrupt(op, key, "the record's fence is unreadable", err)
		}
	}
	if revisionAt > 0 {
		if e.Revision, err = format.ParseNumber(r.text(revisionAt)); err != nil {
			return corrupt(op, key, "the record's revision is unreadable", err)
		}
	}
	if r.verdict() == "busy" {
		e.Holder = store.Holder{Fence: e.Fence, Expires: instant(r.text(3)), Started: instant(r.text(4))}
	}
	return e
}

// instant reads microseconds of the server's clock; the zero time for what is none.
func instant(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// Renew extends the lease of f by the server's clock (S-8).
func (s *Store) Renew(ctx context.Context, key store.Key, f store.Fence, ttl time.Duration) error {
	return s.owned(ctx, "renew", key, func(name string) (reply, error) {
		return s.eval(ctx, "renew", key, renewScript, []string{name}, format.Fence(f), micros(ttl))
	})
}

// Release ends the ownership of f.
func (s *Store) Release(ctx context.Context, key store.Key, f store.Fence) error {
	const op = "release"
	return s.owned(ctx, op, key, func(name string) (reply, error) {
		unit, err := format.Unit{
			Kind: format.Release, Birth: f.Birth, Owner: f.Owner, Run: f.Run, Gen: f.Generation,
			Time: s.c.Clock().UTC().Format(time.RFC3339Nano),
		}.Encode(turnPlace)
		if err != nil {
			return nil, &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Err: err}
		}
		return s.eval(ctx, op, key, releaseScript, []string{name}, format.Fence(f), unit)
	})
}

// owned does what only records with an owner have.
func (s *Store) owned(ctx context.Context, op string, key store.Key, do func(name string) (reply, error)) error {
	return s.simply(ctx, op, key, func(name string) (reply, error) {
		if key.Kind.Shared() {
			return nil, &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Detail: "records of a shared kind have no owner"}
		}
		return do(name)
	})
}

// simply does what is answered with ok or not.
func (s *Store) simply(ctx context.Context, op string, key store.Key, do func(name string) (reply, error)) error {
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return err
	}
	r, err := do(s.name(key))
	if err == nil && r.verdict() != "ok" {
		err = refused(op, key, r)
	}
	return err
}

// Delete removes the record and leaves a tombstone (S-12).
func (s *Store) Delete(ctx context.Context, key store.Key, f store.Fence) error {
	const op = "delete"
	return s.simply(ctx, op, key, func(name string) (reply, error) {
		fence, birth := holder(key, f)
		grave := format.Birth(max(store.BirthAt(s.c.Clock(), f.Birth), 1))
		r, err := s.eval(ctx, op, key, deleteScript, []string{name}, fence, birth, grave)
		if err == nil && r.verdict() == "ok" {
			s.delist(ctx, key, name)
		}
		return r, err
	})
}
