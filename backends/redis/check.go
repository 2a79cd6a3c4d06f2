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
// also computes the chain again. It reads page by page; a record that changes meanwhile
// is checked up to the revision that it had at the start.
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
	name := s.name(key)
	rec, newest, err := s.load(ctx, op, key, name)
	k := &checker{
		s: s, key: key, name: name, rec: rec, newest: newest,
		rep: store.CheckReport{Key: key, Birth: rec.Mark.Birth, Revision: rec.Mark.Revision, Bytes: int64(len(rec.Head))},
	}
	if errors.Is(err, store.ErrCorrupt) {
		k.find("%v", err)
	} else if err != nil {
		return store.CheckReport{}, err
	}
	if err := k.history(ctx); err != nil {
		return store.CheckReport{}, err
	}
	k.top()
	return k.rep, k.owners(ctx)
}

type checker struct {
	s      *Store
	key    store.Key
	name   string
	rec    store.Record
	newest format.Unit
	rep    store.CheckReport

	chain string // of the last unit that was whole; "": of none
	log   uint64 // its log length
	ahead []format.Entry
	last  [][]byte // the entries of the newest commit
}

func (k *checker) find(text string, args ...any) {
	k.rep.Findings = append(k.rep.Findings, fmt.Sprintf(text, args...))
}

// history verifies the units up to the record's revision, and each with its entries.
func (k *checker) history(ctx context.Context) error {
	missing := uint64(0)
	for first := uint64(1); first <= k.rec.Mark.Revision; first += historyPage {
		n := min(historyPage, k.rec.Mark.Revision-first+1)
		units, err := k.s.units(ctx, "check", k.key, k.name, format.UnitField, first, n)
		if err != nil {
			return err
		}
		for i := range n {
			text := units.text(int(i))
			if text == "" {
				missing++
				k.chain = ""
				continue
			}
			if err := k.unit(ctx, first+i, text); err != nil {
				return err
			}
		}
		if missing >= historyPage {
			k.find("history: %d revisions up to %d are missing; the rest was not looked at", missing, first+n-1)
			return nil
		}
	}
	if missing > 0 {
		k.find("history: %d revisions are missing", missing)
	}
	if k.log != k.rec.LogLength {
		k.find("log: the history appends %d entries, and the record says %d", k.log, k.rec.LogLength)
	}
	return nil
}

// unit verifies what made revision.
func (k *checker) unit(ctx context.Context, revision uint64, text string) error {
	k.rep.Bytes += int64(len(text))
	u, err := format.ParseUnit(revision, text)
	if err != nil {
		k.find("history: %v", err)
		k.chain = ""
		return nil
	}
	if u.Birth != k.rec.Mark.Birth {
		k.find("history: revision %d is of another birth", revision)
	} else if k.chain != "" && u.Before != k.chain || revision == 1 && u.Before != "" {
		k.find("history: revision %d does not link to the one before it", revision)
	} else {
		k.rep.Commits++
	}
	k.chain = u.Chain
	return k.entries(ctx, revision, u)
}

// entries verifies those that u appended.
func (k *checker) entries(ctx context.Context, revision uint64, u format.Unit) error {
	var sums []string
	damaged := uint64(0)
	k.last = nil
	for number := uint64(1); number <= u.Entries; number++ {
		k.log++
		e, ok, err := k.entry(ctx, k.log)
		if err != nil {
			return err
		}
		if !ok {
			damaged++
			continue
		}
		k.rep.Entries++
		k.rep.Bytes += int64(len(e.Data))
		if e.Revision != revision || e.Number != number {
			k.find("log: entry %d is number %d of revision %d, and not number %d of revision %d", e.Seq, e.Number, e.Revision, number, revision)
			damaged++
			continue
		}
		sums = append(sums, e.Sum)
		if revision == k.rec.Mark.Revision {
			k.last = append(k.last, e.Data)
		}
	}
	if damaged == 0 && u.Kind != format.Never && format.LogSum(sums) != u.LogSum {
		k.find("log: the entries of revision %d are not those that were written", revision)
	}
	return nil
}

// entry is the log entry at seq, read ahead with those after it. ok is false where it
// is damaged, which is a finding then.
func (k *checker) entry(ctx context.Context, seq uint64) (e format.Entry, ok bool, err error) {
	if len(k.ahead) == 0 || k.ahead[0].Seq != seq {
		var page store.LogPage
		page, k.ahead, err = k.s.page(ctx, "check", k.key, seq, 0)
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return e, false, err
		}
		if len(page.Entries) == 0 {
			if err == nil {
				err = fmt.Errorf("entry %d is missing", seq)
			}
			k.find("log: %v", err)
			return e, false, nil
		}
	}
	e, k.ahead = k.ahead[0], k.ahead[1:]
	return e, true, nil
}

// top computes the chain of the newest revision again.
func (k *checker) top() {
	if len(k.rep.Findings) > 0 {
		return
	}
	want := store.ChainNever(k.newest.Before, k.newest.ID)
	if k.newest.Kind != format.Never {
		want = store.Chain(k.newest.Before, store.Commit{ID: k.newest.ID, Head: k.rec.Head, Entries: k.last})
	}
	if want != k.rec.Mark.Chain {
		k.find("the head and the entries of revision %d do not make its chain", k.rec.Mark.Revision)
	}
}

// owners verifies the units of acquires and releases.
func (k *checker) owners(ctx context.Context) error {
	text, err := k.s.srv.commands().HGet(ctx, k.name, "turns").Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return k.s.fail("check", k.key, err, false)
	}
	turns, err := format.ParseNumber(text)
	if err != nil {
		k.find("the number of acquires and releases is unreadable: %v", err)
		return nil
	}
	for first := uint64(1); first <= turns; first += historyPage {
		n := min(historyPage, turns-first+1)
		units, err := k.s.units(ctx, "check", k.key, k.name, format.TurnField, first, n)
		if err != nil {
			return err
		}
		for i := range n {
			if _, err := format.ParseUnit(turnPlace, units.text(int(i))); err != nil {
				k.find("acquire or release number %d: %v", first+i, err)
				return nil // a number that was damaged could ask for any amount of them
			}
			k.rep.Bytes += int64(len(units.text(int(i))))
		}
	}
	return nil
}

// units reads n fields of the log's hash, by their numbers from first; nil where there
// is none.
func (s *Store) units(ctx context.Context, op string, key store.Key, name string, field func(uint64) string, first, n uint64) (r reply, err error) {
	fields := make([]string, n)
	for i := range n {
		fields[i] = field(first + i)
	}
	r, err = s.srv.commands().HMGet(ctx, name, fields...).Result()
	return r, s.fail(op, key, err, false)
}
