package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Create makes a record. Its id goes into the index first, so that a record which is
// there can be listed; an id without a record is passed over (see list.go).
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
	name := s.name(key)
	chain, content := hashes("", c)
	reached, err := s.reached(ctx, op, key, name, c.Require)
	if err != nil {
		return store.Ack{}, err
	}
	if err := s.enlist(ctx, op, key); err != nil {
		return store.Ack{}, err
	}
	how := mode(reached, c.Require)
	var grave store.Birth
	for {
		birth := max(store.BirthAt(s.c.Clock(), grave), 1)
		after := store.Mark{Birth: birth, Revision: 1, Chain: chain}
		u := format.Unit{
			Kind: format.Create, Birth: birth, ID: c.ID, Content: content, Chain: after.Chain,
			Level: reached.Level, Time: s.c.Clock().UTC().Format(time.RFC3339Nano),
		}
		w, err := writing(&u, after, c)
		if err != nil {
			return store.Ack{}, &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Err: err}
		}
		args := make([]any, 0, 6+len(c.Entries))
		args = append(args, c.ID, format.Birth(birth), after.Chain, how, w.unit, append([]byte(nil), c.Head...))
		r, replicas, err := s.evalOn(ctx, op, key, createScript, waitFor(how, c), []string{name}, append(args, w.entries...))
		if err != nil {
			return store.Ack{}, err
		}
		ack := store.Ack{Mark: after, LogLength: uint64(len(c.Entries)), Durability: store.Durability{Level: reached.Level}}
		switch r.verdict() {
		case "ok":
			if r.text(2) != "" { // somebody may be taking the deleted record's id off the index
				if err := s.enlist(ctx, op, key); err != nil {
					return store.Ack{}, err
				}
			}
			ack.Durability = s.stillReached(ctx, name, reached)
		case "again":
			if ack, err = s.replay(op, key, store.Fence{}, append(reply{nil, nil}, r[1:]...), content); err != nil {
				return store.Ack{}, err
			}
		case "grave":
			if grave, err = format.ParseBirth(r.text(1)); err != nil {
				return store.Ack{}, corrupt(op, key, "the tombstone is unreadable", err)
			}
			continue
		case "weak":
			return store.Ack{}, notDurable(op, key, c.Require, reached)
		case "exists":
			return store.Ack{}, &store.Error{Op: op, Key: key, Kind: store.ErrExists}
		default:
			return store.Ack{}, refused(op, key, r)
		}
		ack, _, err = s.withReplicas(op, key, ack, c.Require, replicas)
		return ack, err
	}
}

// enlist puts the id of key into the index of its kind.
func (s *Store) enlist(ctx context.Context, op string, key store.Key) error {
	err := s.srv.commands().ZAdd(ctx, format.Index(s.addr.Prefix, key.Kind), goredis.Z{Member: key.ID}).Err()
	return s.fail(op, key, err, false)
}
