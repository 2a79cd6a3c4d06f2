package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

// historyPage is how many units of a history are read at once.
const historyPage = 256

// Check verifies every unit of the history and every log entry: its checksum, its
// place, and the link to the one before. Of the newest commit, whose head is kept, it
// also computes the chain again. It reads page by page, so a record that changes
// meanwhile is checked up to the revision that it had at the start.
func (s *Store) Check(ctx context.Context, key store.Key) (store.CheckReport, error) {
	const op = "check"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return store.CheckReport{}, err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return store.CheckReport{}, err
	}
	rec, newest, err := s.load(ctx, op, key, s.names(key))
	k := &checker{s: s, key: key, rec: rec, rep: store.CheckReport{Key: key, Birth: rec.Mark.Birth, Revision: rec.Mark.Revision}}
	if errors.Is(err, store.ErrCorrupt) {
		k.find("%v", err)
	} else if err != nil {
		return store.CheckReport{}, err
	}
	k.rep.Bytes = int64(len(rec.Head))
	if err := k.history(ctx); err != nil {
		return store.CheckReport{}, err
	}
	if err := k.log(ctx); err != nil {
		return store.CheckReport{}, err
	}
	k.top(newest)
	return k.rep, nil
}

type checker struct {
	s   *Store
	key store.Key
	rec store.Record
	rep store.CheckReport

	units   []checked // commits with entries, in order
	chain   string    // of the last whole unit
	entries [][]byte  // of the newest commit
}

// checked is what a commit's unit says of its entries.
type checked struct {
	revision, first, entries uint64
	sum                      string
}

func (k *checker) find(format string, args ...any) {
	k.rep.Findings = append(k.rep.Findings, fmt.Sprintf(format, args...))
}

// history verifies the units up to the record's revision.
func (k *checker) history(ctx context.Context) error {
	next, length := uint64(1), uint64(0)
	err := k.s.eachUnit(ctx, "check", k.key, func(revision uint64, minor bool, fields reply) bool {
		if revision > k.rec.Mark.Revision {
			return false
		}
		if minor {
			if _, err := format.ParseUnit(0, fields.text(1), fields.text(3)); err != nil {
				k.find("history, behind revision %d: %v", revision, err)
			}
			return true
		}
		if revision != next {
			k.find("history: revision %d is missing", next)
		}
		next = revision + 1
		u, err := fields.unit(revision)
		if err != nil {
			k.find("history: %v", err)
			k.chain = ""
			return true
		}
		k.rep.Bytes += int64(len(fields.text(1)))
		switch {
		case u.Birth != k.rec.Mark.Birth:
			k.find("history: revision %d is of another birth", revision)
		case k.chain != "" && u.Before != k.chain, revision == 1 && u.Before != "":
			k.find("history: revision %d does not link to the one before it", revision)
		case length+u.Entries != u.log:
			k.find("history: revision %d appends %d entries to %d and says that there are %d", revision, u.Entries, length, u.log)
		default:
			k.rep.Commits++
		}
		if u.Entries > 0 {
			k.units = append(k.units, checked{revision, u.log - u.Entries + 1, u.Entries, u.LogSum})
		}
		k.chain, length = u.Chain, u.log
		return true
	})
	if err == nil && next != k.rec.Mark.Revision+1 {
		k.find("history: revisions %d to %d are missing", next, k.rec.Mark.Revision)
	}
	return err
}

// log verifies the entries against their units.
func (k *checker) log(ctx context.Context) error {
	var sums []string
	for seq := uint64(1); seq <= k.rec.LogLength; {
		p, beside, err := k.s.page(ctx, "check", k.key, seq, 0)
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return err
		}
		for i, e := range p.Entries {
			if e.Seq > k.rec.LogLength {
				return nil
			}
			k.rep.Entries++
			k.rep.Bytes += int64(len(e.Data))
			sums = k.entry(sums, e, beside[i])
		}
		seq += uint64(len(p.Entries))
		if err != nil {
			k.find("log: %v", err)
			seq++ // go on behind the damage
			sums = nil
		}
	}
	return nil
}

// entry places e in its commit; sums are those of the commit's entries before it.
func (k *checker) entry(sums []string, e store.Entry, beside format.Entry) []string {
	for len(k.units) > 0 && k.units[0].first+k.units[0].entries <= e.Seq {
		k.units = k.units[1:]
	}
	if len(k.units) == 0 || e.Seq < k.units[0].first {
		k.find("log: entry %d belongs to no commit", e.Seq)
		return nil
	}
	u := k.units[0]
	number := e.Seq - u.first + 1
	if e.Revision != u.revision || beside.Number != number {
		k.find("log: entry %d is entry %d of revision %d, and not of revision %d", e.Seq, beside.Number, e.Revision, u.revision)
		return nil
	}
	if number == 1 {
		sums = nil
	}
	sums = append(sums, beside.Sum)
	if number == u.entries && uint64(len(sums)) == number && format.LogSum(sums) != u.sum {
		k.find("log: the entries of revision %d are not those that were written", u.revision)
	}
	if e.Revision == k.rec.Mark.Revision {
		k.entries = append(k.entries, e.Data)
	}
	return sums
}

// top computes the chain of the newest revision again.
func (k *checker) top(newest storedUnit) {
	want := ""
	switch newest.Kind {
	case format.Create, format.Commit:
		want = store.Chain(newest.Before, store.Commit{ID: newest.ID, Head: k.rec.Head, Entries: k.entries})
	case format.Never:
		want = store.ChainNever(newest.Before, newest.ID)
	default:
		return // a finding says already that it can't be read
	}
	if want != k.rec.Mark.Chain && len(k.rep.Findings) == 0 {
		k.find("the head and the entries of revision %d do not make its chain", k.rec.Mark.Revision)
	}
}

// eachUnit calls do for the history's elements in order, until it says false. minor:
// an acquire or a release behind the revision.
func (s *Store) eachUnit(ctx context.Context, op string, key store.Key, do func(revision uint64, minor bool, fields reply) bool) error {
	names := s.names(key)
	from := "-"
	for {
		var part []goredis.XMessage
		n, err := s.srv.of(ctx, names.History)
		if err == nil {
			part, err = n.XRangeN(ctx, names.History, from, "+", historyPage).Result()
		}
		if err != nil {
			return s.fail(op, key, err, false)
		}
		for _, m := range part {
			revision, minor, err := format.ParseID(m.ID)
			if err != nil {
				return corrupt(op, key, "the history is damaged", err)
			}
			fields := reply{"unit", m.Values["unit"], "sum", m.Values["sum"]}
			if log, ok := m.Values["log"]; ok {
				fields = append(fields, "log", log)
			}
			if !do(revision, minor != 0, fields) {
				return nil
			}
		}
		if len(part) < historyPage {
			return nil
		}
		from = "(" + part[len(part)-1].ID
	}
}
