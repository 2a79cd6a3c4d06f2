package redis

import (
	"context"
	"time"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Resolve settles a commit whose outcome is not known (S-4). The last call of the
// script decides; the one before tells the chain that "never" extends.
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
	name := s.name(key)
	p, err := s.promiseFor(ctx, name)
	if err != nil {
		return store.Outcome{}, s.fail(op, key, err, false)
	}
	reached := store.Durability{Level: p.durability.Level}
	fence, birth := holder(key, f)
	args := []any{commitID, fence, birth, "", "", "", "", ""}
	for {
		r, err := s.eval(ctx, op, key, resolveScript, []string{name}, args...)
		if err != nil {
			return store.Outcome{}, err
		}
		switch r.verdict() {
		case "again":
			ack, _, err := applied(op, key, f, r[1:])
			return store.Outcome{Applied: true, Ack: ack}, err
		case "never":
			ack, err := neverAck(r, f)
			if err != nil {
				return store.Outcome{}, corrupt(op, key, "the record's state is unreadable", err)
			}
			ack.Durability = reached
			return store.Outcome{Ack: ack}, nil
		case "moved":
			before := store.Mark{Chain: r.text(2)}
			if before.Revision, err = format.ParseNumber(r.text(1)); err == nil {
				before.Birth, err = format.ParseBirth(r.text(3))
			}
			if err != nil {
				return store.Outcome{}, corrupt(op, key, "the record's state is unreadable", err)
			}
			after := store.Mark{Birth: before.Birth, Revision: before.Revision + 1, Chain: store.ChainNever(before.Chain, commitID)}
			unit, err := format.Unit{
				Kind: format.Never, Birth: before.Birth, ID: commitID, Before: before.Chain, Chain: after.Chain,
				Level: reached.Level, Owner: f.Owner, Run: f.Run, Time: s.c.Clock().UTC().Format(time.RFC3339Nano),
			}.Encode(after.Revision)
			if err != nil {
				return store.Outcome{}, &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Err: err}
			}
			args = []any{
				commitID, fence, birth, format.Number(before.Revision), before.Chain,
				format.Number(after.Revision), after.Chain, unit,
			}
		default:
			return store.Outcome{}, refused(op, key, r)
		}
	}
}

// neverAck is the record's state in a "never" answer.
func neverAck(r reply, f store.Fence) (ack store.Ack, err error) {
	if ack.Mark.Birth, err = format.ParseBirth(r.text(3)); err != nil {
		return ack, err
	}
	if ack.Mark.Revision, err = format.ParseNumber(r.text(4)); err != nil {
		return ack, err
	}
	ack.Mark.Chain = r.text(5)
	if ack.LogLength, err = format.ParseNumber(r.text(6)); err != nil {
		return ack, err
	}
	ack.Signals, err = pending(r, 1, f.Run)
	return ack, err
}

// holder is the fence and the birth that the server compares where the record's own
// fence is asked for: of a shared record the birth alone, and there must be one.
func holder(key store.Key, f store.Fence) (fence, birth string) {
	text := format.Fence(f)
	switch {
	case text == "":
		return format.NoFence, ""
	case !key.Kind.Shared():
		return text, ""
	case f == (store.Fence{Birth: f.Birth}):
		return "", format.Birth(f.Birth)
	}
	return format.NoFence, ""
}
