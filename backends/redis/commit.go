package redis

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

// Commit applies c whole, or not at all: one call of one script.
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
	name := s.name(key)
	before := c.After
	for {
		if c.After.Chain == "" {
			// The caller does not know the chain that this commit extends, and only a
			// SHA-256 here can extend it: one round trip more.
			now, err := s.mark(ctx, op, key, name)
			if err != nil {
				return store.Ack{}, err
			}
			before.Chain = now.Chain
		}
		ack, again, err := s.commit(ctx, key, name, f, c, before)
		if !again {
			return ack, err
		}
	}
}

// commit sends c, which extends the history of before. again: before is not c's own
// and was out of date.
func (s *Store) commit(ctx context.Context, key store.Key, name string, f store.Fence, c store.Commit, before store.Mark) (ack store.Ack, again bool, err error) {
	const op = "commit"
	reached, err := s.reached(ctx, op, key, name, c.Require)
	if err != nil {
		return ack, false, err
	}
	how := mode(reached, c.Require)
	after := before
	after.Revision++
	var content string
	after.Chain, content = hashes(before.Chain, c)
	u := format.Unit{
		Kind: format.Commit, Birth: before.Birth, ID: c.ID, Content: content,
		Before: before.Chain, Chain: after.Chain, Level: reached.Level, Owner: f.Owner, Run: f.Run,
		Time: s.c.Clock().UTC().Format(time.RFC3339Nano),
	}
	w, err := writing(&u, after, c)
	if err != nil {
		return ack, false, &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Err: err}
	}
	args := make([]any, 0, 10+len(c.Entries))
	args = append(args, c.ID, format.Birth(c.After.Birth), writer(key, f, c.After.Birth),
		format.Number(before.Revision), before.Chain, format.Number(after.Revision), after.Chain,
		how, w.unit, append([]byte(nil), c.Head...))
	args = append(args, w.entries...)
	r, replicas, err := s.evalOn(ctx, op, key, commitScript, waitFor(how, c), []string{name}, args)
	if err != nil {
		return ack, false, err
	}
	switch r.verdict() {
	case "ok":
		n, err := format.ParseNumber(r.text(3))
		if err != nil {
			return ack, false, corrupt(op, key, "the record's log length is unreadable", err)
		}
		ack = store.Ack{Mark: after, LogLength: n, Durability: s.stillReached(ctx, name, reached)}
		ack.Signals, err = pending(r, 1, f.Run)
		if err != nil {
			return ack, false, corrupt(op, key, "the mailbox is damaged", err)
		}
		return s.withReplicas(op, key, ack, c.Require, replicas)
	case "again":
		ack, err = s.replay(op, key, f, r[1:], content)
		if err != nil {
			return ack, false, err
		}
		return s.withReplicas(op, key, ack, c.Require, replicas)
	case "moved":
		if c.After.Chain == "" && r.text(1) == format.Number(c.After.Revision) {
			return ack, true, nil
		}
		return ack, false, moved(op, key, c.After, r)
	case "never":
		return ack, false, &store.Error{Op: op, Key: key, Kind: store.ErrCommitIDReused, Detail: "this id was resolved as never applied"}
	case "weak":
		return ack, false, notDurable(op, key, c.Require, reached)
	}
	return ack, false, refused(op, key, r)
}

// hashes is the chain with c after before, and store.ContentHash in hex.
func hashes(before string, c store.Commit) (chain, content string) {
	chain, sum := store.Hashes(before, c)
	return chain, hex.EncodeToString(sum[:])
}

// waitFor is how many replicas the call waits for.
func waitFor(how string, c store.Commit) int {
	if how != modeWait {
		return 0
	}
	return c.Require.Replicas
}

// withReplicas completes an acknowledgement with the replicas that confirmed. The
// commit is applied either way.
func (s *Store) withReplicas(op string, key store.Key, ack store.Ack, want store.Durability, have int) (store.Ack, bool, error) {
	ack.Durability.Replicas = have
	if !ack.Durability.Reaches(want) {
		return store.Ack{}, false, notDurable(op, key, want, ack.Durability)
	}
	return ack, false, nil
}

// written is what goes to the server with a commit: copies, because a call that is
// left when its context ends may still be sending.
type written struct {
	unit    string
	entries []any
}

// writing completes u with the sums of c, which makes after.
func writing(u *format.Unit, after store.Mark, c store.Commit) (w written, err error) {
	sums := make([]string, len(c.Entries))
	w.entries = make([]any, len(c.Entries))
	for i, e := range c.Entries {
		number := uint64(i) + 1
		sums[i] = format.EntrySum(after.Birth, after.Revision, number, e)
		w.entries[i] = format.EncodeEntry(after.Revision, number, sums[i], e)
	}
	u.Entries, u.LogSum = uint64(len(c.Entries)), format.LogSum(sums)
	u.HeadSum = format.HeadSum(after.Birth, after.Revision, c.Head)
	w.unit, err = u.Encode(after.Revision)
	return w, err
}

// writer is the fence that the server compares: "" for a shared record, whose birth
// is compared alone.
func writer(key store.Key, f store.Fence, birth store.Birth) string {
	text := format.Fence(f)
	switch {
	case !key.Kind.Shared() && text == "":
		return format.NoFence
	case !key.Kind.Shared():
		return text
	case f.IsZero() || f == (store.Fence{Birth: birth}):
		return ""
	}
	return format.NoFence
}

// How a script treats a commit's requirement.
const (
	modePlain = ""
	modeWait  = "wait" // the call waits for replicas behind it
	modeWeak  = "weak" // out of reach: every other check, and no write
)

func mode(reached, want store.Durability) string {
	switch {
	case !reached.Reaches(want):
		return modeWeak
	case want.Replicas > 0:
		return modeWait
	}
	return modePlain
}

func notDurable(op string, key store.Key, want, reached store.Durability) error {
	return &store.Error{Op: op, Key: key, Kind: store.ErrNotDurable, Detail: "required " + want.String() + ", reached " + reached.String()}
}

// replay answers a commit id that was applied before (S-3). r is the mailbox, what is
// remembered of the id, and the unit.
func (s *Store) replay(op string, key store.Key, f store.Fence, r reply, content string) (store.Ack, error) {
	ack, was, err := applied(op, key, f, r)
	if err == nil && was != content {
		return store.Ack{}, &store.Error{Op: op, Key: key, Kind: store.ErrCommitIDReused}
	}
	return ack, err
}

// applied is the original acknowledgement of a commit, and what identifies its content.
func applied(op string, key store.Key, f store.Fence, r reply) (ack store.Ack, content string, err error) {
	known, err := format.ParseSettled(r.text(2))
	if err != nil {
		return ack, "", corrupt(op, key, "the memory of commit ids is damaged", err)
	}
	u, err := format.ParseUnit(known.Revision, r.text(3))
	if err != nil {
		return ack, "", corrupt(op, key, "the history is damaged", err)
	}
	ack = store.Ack{
		Mark:      store.Mark{Birth: u.Birth, Revision: known.Revision, Chain: u.Chain},
		LogLength: known.LogLength, Durability: store.Durability{Level: u.Level},
	}
	if ack.Signals, err = pending(r, 0, f.Run); err != nil {
		return ack, "", corrupt(op, key, "the mailbox is damaged", err)
	}
	return ack, u.Content, nil
}

// pending reads a mailbox, stop and cancel at i and i+1, for run (S-13).
func pending(r reply, i int, run string) (signals []store.Signal, err error) {
	for j, kind := range []store.SignalKind{store.SignalStop, store.SignalCancel} {
		text := r.text(i + j)
		if text == "" || run == "" {
			continue
		}
		sig, err := format.ParseSignal(kind, text)
		if err != nil {
			return nil, err
		}
		if sig.Run == run {
			signals = append(signals, sig)
		}
	}
	return signals, nil
}

// moved tells apart why a commit's state is not the record's (S-6).
func moved(op string, key store.Key, after store.Mark, r reply) error {
	now, err := format.ParseNumber(r.text(1))
	if err != nil {
		return corrupt(op, key, "the record's revision is unreadable", err)
	}
	e := &store.Error{Op: op, Key: key, Kind: store.ErrRegressed, Revision: now}
	if after.Revision < now {
		e.Kind = store.ErrConflict
	}
	return e
}

// refused turns the verdicts that several scripts share into errors.
func refused(op string, key store.Key, r reply) error {
	switch r.verdict() {
	case "absent":
		return ledger.NotFound(op, key, r.text(1) != "")
	case "fenced":
		now, err := format.ParseFence(r.text(2))
		if key.Kind.Shared() {
			now = store.Fence{}
			now.Birth, err = format.ParseBirth(r.text(1))
		}
		if err != nil {
			return corrupt(op, key, "the record's fence is unreadable", err)
		}
		return &store.Error{Op: op, Key: key, Kind: store.ErrFenced, Fence: now}
	case "damaged":
		return corrupt(op, key, r.text(1), nil)
	}
	return &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Detail: "the server's script answers what this version does not know; nothing is known of the call"}
}

// mark is the record's state, without more.
func (s *Store) mark(ctx context.Context, op string, key store.Key, name string) (m store.Mark, err error) {
	rec, _, err := s.load(ctx, op, key, name)
	if store.KindOf(err) == store.ErrNotFound {
		return m, nil // the script says it again, in its order of precedence
	}
	return rec.Mark, err
}

// reached is what a commit to the record can reach, as the server promised.
func (s *Store) reached(ctx context.Context, op string, key store.Key, name string, want store.Durability) (store.Durability, error) {
	n, err := s.srv.of(ctx, name)
	var p *promise
	if err == nil {
		p, err = n.promised(ctx)
	}
	if err == nil && want.Replicas > p.durability.Replicas {
		p, err = n.recount(ctx) // replicas come and go without a reconnect
	}
	if err != nil {
		return store.Durability{}, s.fail(op, key, err, false)
	}
	return p.durability, nil
}

// stillReached is the level that was reached, if no connection was made meanwhile to
// a server that promises less.
func (s *Store) stillReached(ctx context.Context, name string, reached store.Durability) store.Durability {
	if p, err := s.promiseFor(ctx, name); err == nil && p.durability.Level < reached.Level {
		return store.Durability{Level: p.durability.Level}
	}
	return store.Durability{Level: reached.Level}
}

func (s *Store) promiseFor(ctx context.Context, name string) (*promise, error) {
	n, err := s.srv.of(ctx, name)
	if err != nil {
		return nil, err
	}
	return n.promised(ctx)
}
