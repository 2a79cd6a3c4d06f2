package redis

import (
	"context"
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
	rec, _, err := s.load(ctx, op, key, s.names(key))
	return rec, err
}

// load gives the record and the unit of its revision. With ErrCorrupt the record
// holds what could be read.
func (s *Store) load(ctx context.Context, op string, key store.Key, names format.Names) (store.Record, storedUnit, error) {
	r, err := s.eval(ctx, op, key, loadScript, names.All())
	if err != nil {
		return store.Record{}, storedUnit{}, err
	}
	return loaded(op, key, r)
}

func loaded(op string, key store.Key, r reply) (store.Record, storedUnit, error) {
	if r.verdict() != "ok" {
		return store.Record{}, storedUnit{}, refused(op, key, r)
	}
	rec, headRevision, err := record(key, instant(r.text(1)), r.list(3))
	if err != nil {
		return rec, storedUnit{}, corrupt(op, key, "the record is damaged", err)
	}
	u, err := r.list(4).unit(rec.Mark.Revision)
	if err != nil {
		return rec, u, corrupt(op, key, "the history is damaged", err)
	}
	f := r.list(3)
	switch {
	case u.Chain != rec.Mark.Chain || u.Birth != rec.Mark.Birth:
		err = fmt.Errorf("the record and its history differ at revision %d", rec.Mark.Revision)
	case u.log != rec.LogLength:
		err = fmt.Errorf("the record says %d log entries, and its history %d", rec.LogLength, u.log)
	case r.number(2) != int64(rec.LogLength):
		err = fmt.Errorf("the log has %d entries, and the record says %d", r.number(2), rec.LogLength)
	case format.HeadSum(rec.Mark.Birth, headRevision, rec.Head) != f.text(6):
		err = fmt.Errorf("the head does not have the checksum that was written")
	case u.Kind != format.Never && (headRevision != rec.Mark.Revision || u.HeadSum != f.text(6) || u.ID != rec.LastCommitID):
		err = fmt.Errorf("the head is not that of revision %d", rec.Mark.Revision)
	}
	if err != nil {
		return rec, u, corrupt(op, key, "the record is damaged", err)
	}
	return rec, u, nil
}

// record reads the fields in load.lua's order.
func record(key store.Key, now time.Time, f reply) (rec store.Record, headRevision uint64, err error) {
	rec = store.Record{Key: key, Head: []byte(f.text(5)), LastCommitID: f.text(4), Generation: f.text(9), Released: f.text(12) == "1"}
	if rec.Mark.Birth, err = format.ParseBirth(f.text(0)); err != nil {
		return rec, 0, err
	}
	if rec.Mark.Revision, err = format.ParseNumber(f.text(1)); err != nil {
		return rec, 0, fmt.Errorf("revision: %w", err)
	}
	rec.Mark.Chain = f.text(2)
	if rec.LogLength, err = format.ParseNumber(f.text(3)); err != nil {
		return rec, 0, fmt.Errorf("log length: %w", err)
	}
	if headRevision, err = format.ParseNumber(f.text(7)); err != nil {
		return rec, 0, fmt.Errorf("revision of the head: %w", err)
	}
	if rec.Fence, err = format.ParseFence(f.text(8)); err != nil {
		return rec, 0, err
	}
	if key.Kind.Shared() {
		rec.Fence = store.Fence{Birth: rec.Mark.Birth}
	} else if expires := instant(f.text(11)); !rec.Fence.IsZero() && now.Before(expires) {
		rec.Holder = &store.Holder{Fence: rec.Fence, Expires: expires, Started: instant(f.text(10))}
	}
	rec.Signals, err = pending(f, 13, rec.Fence.Run)
	return rec, headRevision, err
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
	names := s.names(key)
	r, err := s.eval(ctx, op, key, pageScript, names.All()[:2], format.Number(from), limit, pageBytes)
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
	for i := 3; i+2 < len(r); i += 3 {
		e, err := format.ParseEntry(birth, r.text(i), r.text(i+1), []byte(r.text(i+2)))
		if want := from + uint64(len(p.Entries)); err == nil && e.Entry.Seq != want {
			err = fmt.Errorf("entry %d is missing", want)
		}
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
