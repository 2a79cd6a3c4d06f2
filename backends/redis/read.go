package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Bounds of one page of the log, as the port states them.
const (
	pageEntries = 256
	pageBytes   = 8 << 20
	// maxSeq is above any sequence number that a log can reach.
	maxSeq = 1 << 53
)

// Load reads the record without its log, and compares it with the newest unit of its
// history (S-7).
func (s *Store) Load(ctx context.Context, key store.Key) (store.Record, error) {
	const op = "load"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return store.Record{}, err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return store.Record{}, err
	}
	rec, _, err := s.load(ctx, op, key, s.name(key))
	return rec, err
}

// load gives the record and the unit of its revision. With ErrCorrupt the record
// holds what could be read.
func (s *Store) load(ctx context.Context, op string, key store.Key, name string) (store.Record, format.Unit, error) {
	r, err := s.eval(ctx, op, key, loadScript, []string{name})
	if err != nil {
		return store.Record{}, format.Unit{}, err
	}
	return loaded(op, key, r)
}

func loaded(op string, key store.Key, r reply) (store.Record, format.Unit, error) {
	if r.verdict() != "ok" {
		return store.Record{}, format.Unit{}, refused(op, key, r)
	}
	f := r.list(3)
	rec, err := record(key, instant(r.text(1)), f)
	if err != nil {
		return rec, format.Unit{}, corrupt(op, key, "the record is damaged", err)
	}
	u, err := format.ParseUnit(rec.Mark.Revision, r.text(5))
	if err != nil {
		return rec, u, corrupt(op, key, "the history is damaged", err)
	}
	last, err := format.ParseSettled(r.text(4))
	if err != nil {
		return rec, u, corrupt(op, key, "the memory of commit ids is damaged", err)
	}
	head, err := format.ParseUnit(last.Revision, r.text(6))
	if err != nil {
		return rec, u, corrupt(op, key, "the history is damaged", err)
	}
	switch {
	case u.Chain != rec.Mark.Chain || u.Birth != rec.Mark.Birth:
		err = fmt.Errorf("the record and its history differ at revision %d", rec.Mark.Revision)
	case u.Kind != format.Never && last.Revision != rec.Mark.Revision, !last.Applied, head.ID != rec.LastCommitID:
		err = fmt.Errorf("the last commit is not that of revision %d", last.Revision)
	case last.LogLength != rec.LogLength:
		err = fmt.Errorf("the record says %d log entries, and its last commit made %d", rec.LogLength, last.LogLength)
	case rec.LogLength > 0 && r.number(2) != 1:
		err = fmt.Errorf("the last log entry, %d, is missing", rec.LogLength)
	case format.HeadSum(rec.Mark.Birth, last.Revision, rec.Head) != head.HeadSum:
		err = errors.New("the head does not have the checksum that was written")
	default:
		err = sameOwner(f, r.text(7))
	}
	if err != nil {
		return rec, u, corrupt(op, key, "the record is damaged", err)
	}
	return rec, u, nil
}

// sameOwner compares the fence in load.lua's fields with the unit of the last acquire or
// release.
func sameOwner(f reply, stored string) error {
	fence, err := format.ParseFence(f.text(6))
	if err != nil {
		return err
	}
	if f.text(13) == "0" {
		if !fence.IsZero() || f.text(7) != "" {
			return errors.New("it has an owner, and was never acquired")
		}
		return nil
	}
	u, err := format.ParseUnit(turnPlace, stored)
	if err != nil {
		return fmt.Errorf("the last acquire or release: %w", err)
	}
	want := store.Fence{}
	if u.Kind == format.Acquire {
		want = store.Fence{Birth: u.Birth, Generation: u.Gen, Owner: u.Owner, Run: u.Run}
	}
	if fence != want || f.text(7) != u.Gen {
		return errors.New("its owner is not the one that acquired it last")
	}
	return nil
}

// record reads the fields in load.lua's order.
func record(key store.Key, now time.Time, f reply) (rec store.Record, err error) {
	rec = store.Record{Key: key, Head: []byte(f.text(5)), LastCommitID: f.text(4), Generation: f.text(7), Released: f.text(10) == "1"}
	if rec.Mark.Birth, err = format.ParseBirth(f.text(0)); err != nil {
		return rec, err
	}
	if rec.Mark.Revision, err = format.ParseNumber(f.text(1)); err != nil {
		return rec, fmt.Errorf("revision: %w", err)
	}
	rec.Mark.Chain = f.text(2)
	if rec.LogLength, err = format.ParseNumber(f.text(3)); err != nil {
		return rec, fmt.Errorf("log length: %w", err)
	}
	if rec.Fence, err = format.ParseFence(f.text(6)); err != nil {
		return rec, err
	}
	if key.Kind.Shared() {
		rec.Fence = store.Fence{Birth: rec.Mark.Birth}
	} else if expires := instant(f.text(9)); !rec.Fence.IsZero() && now.Before(expires) {
		rec.Holder = &store.Holder{Fence: rec.Fence, Expires: expires, Started: instant(f.text(8))}
	}
	rec.Signals, err = pending(f, 11, rec.Fence.Run)
	return rec, err
}

// ReadLog reads a page of the log. With ErrCorrupt it holds the entries before the damage.
func (s *Store) ReadLog(ctx context.Context, key store.Key, from uint64, limit int) (store.LogPage, error) {
	const op = "readlog"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return store.LogPage{}, err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return store.LogPage{}, err
	}
	p, _, err := s.page(ctx, op, key, from, limit)
	return p, err
}

// page is ReadLog, with the numbers and sums that stand beside the entries.
func (s *Store) page(ctx context.Context, op string, key store.Key, from uint64, limit int) (p store.LogPage, beside []format.Entry, err error) {
	if limit <= 0 {
		limit = pageEntries
	}
	from = min(max(from, 1), maxSeq)
	name := s.name(key)
	r, err := s.eval(ctx, op, key, pageScript, []string{name}, format.Number(from), limit, pageBytes)
	if err != nil {
		return p, nil, err
	}
	if r.verdict() != "ok" {
		return p, nil, refused(op, key, r)
	}
	birth, err := format.ParseBirth(r.text(1))
	if err == nil {
		p.Length, err = format.ParseNumber(r.text(2))
	}
	if err != nil {
		return p, nil, corrupt(op, key, "the record is damaged", err)
	}
	for i := 3; i < len(r); i++ {
		e, err := format.ParseEntry(birth, from+uint64(len(p.Entries)), []byte(r.text(i)))
		if err != nil {
			return p, beside, corrupt(op, key, "the log is damaged", err)
		}
		p.Entries, beside = append(p.Entries, e.Entry), append(beside, e)
	}
	if len(p.Entries) == 0 && from <= p.Length {
		return p, nil, corrupt(op, key, fmt.Sprintf("the log is damaged: entry %d is missing", from), nil)
	}
	return p, beside, nil
}
