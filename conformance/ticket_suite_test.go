package conformance

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// ticketFailures runs cases about tickets against h.
func ticketFailures(t *testing.T, h Harness, cases []Case) map[string]string {
	t.Helper()
	o := Options{Profiles: []Profile{ProfileTickets}, Timeout: 5 * time.Second, Namespace: "own"}.normal()
	report, err := check(context.Background(), h, o, cases)
	if err != nil {
		t.Error(err)
	}
	failed := map[string]string{}
	for _, p := range report.Profiles {
		for _, r := range p.Results {
			if r.Outcome == Failed {
				failed[r.ID] = r.Reason
			}
		}
	}
	return failed
}

func TestUnbrokenStorePassesTheTicketCases(t *testing.T) {
	for id, why := range ticketFailures(t, newMini(""), ticketCases()) {
		t.Errorf("%s fails against a store without a defect: %s", id, why)
	}
}

// onceRead is a store whose handles read each record once, and know it from then on.
type onceRead struct {
	store.Store
	mu   sync.Mutex
	seen map[store.Key]store.Record
}

func (f *onceRead) Load(ctx context.Context, key store.Key) (store.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.seen[key]; ok {
		return r, nil
	}
	r, err := f.Store.Load(ctx, key)
	if err == nil {
		f.seen[key] = r
	}
	return r, err
}

// mending is a store that helps: what it is asked for is better than what was written.
type mending struct {
	store.Store
	mend func(key store.Key, head []byte) []byte
}

func (m mending) Load(ctx context.Context, key store.Key) (store.Record, error) {
	r, err := m.Store.Load(ctx, key)
	r.Head = m.mend(key, r.Head)
	return r, err
}

// without is a store that says it made records of one kind, and did not.
type without struct {
	store.Store
	kind store.Kind
}

func (l without) Create(ctx context.Context, key store.Key, c store.Commit) (store.Ack, error) {
	if key.Kind != l.kind {
		return l.Store.Create(ctx, key, c)
	}
	return store.Ack{Mark: store.Mark{Birth: 1, Revision: 1, Chain: store.Chain("", c)}, LogLength: 1, Durability: store.Durability{Level: store.LevelProcess}}, nil
}

// brokenForTickets are the stores that the cases are tried on, by what is wrong with them.
func brokenForTickets() map[string]func() Harness {
	out := map[string]func() Harness{}
	for _, d := range []defect{
		"last writer wins", "resolves everything as applied", "not idempotent",
		"nobody is ever busy",
		"no fence check", "says conflict for not found", "shared records take no empty fence",
		"tombstone forgotten", "delete does nothing",
	} {
		out[string(d)] = func() Harness { return newMini(d) }
	}
	with := func(name string, wrap func(store.Store) store.Store) {
		out[name] = func() Harness { return tampered{newMini(""), wrap} }
	}
	with("handles read each record once", func(s store.Store) store.Store {
		return &onceRead{Store: s, seen: map[store.Key]store.Record{}}
	})
	with("loses artifacts", func(s store.Store) store.Store { return without{s, scope.KindArtifact} })
	with("mends a receipt's spelling", func(s store.Store) store.Store {
		return mending{s, func(_ store.Key, head []byte) []byte {
			for _, fix := range [][2]string{{`\"acquitted\":true,`, ``}, {`{\"completed\":true,\"`, `{\"`}, {`\"completed\":\"yes\"`, `\"completed\":true`}} {
				head = bytes.ReplaceAll(head, []byte(fix[0]), []byte(fix[1]))
			}
			return head
		}}
	})
	with("shows every task as stopped", func(s store.Store) store.Store {
		return mending{s, func(_ store.Key, head []byte) []byte {
			return bytes.ReplaceAll(head, []byte(`"`+ticket.MetaTaskState+`":"`+ticket.TaskRunning+`"`), []byte(`"`+ticket.MetaTaskState+`":"`+ticket.TaskStopped+`"`))
		}}
	})
	for name, do := range map[string]func(store.Store, context.Context, store.Key, store.Fence, store.Commit) (store.Ack, error){
		"acknowledges without writing": func(s store.Store, ctx context.Context, key store.Key, _ store.Fence, c store.Commit) (store.Ack, error) {
			rec, err := s.Load(ctx, key)
			if err != nil {
				return store.Ack{}, err
			}
			mark := store.Mark{Birth: rec.Mark.Birth, Revision: c.After.Revision + 1, Chain: store.Chain(c.After.Chain, c)}
			return store.Ack{Mark: mark, LogLength: rec.LogLength + uint64(len(c.Entries)), Durability: store.Durability{Level: store.LevelProcess}}, nil
		},
		"keeps the old head": func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			rec, err := s.Load(ctx, key)
			if err != nil {
				return store.Ack{}, err
			}
			c.Head = rec.Head
			return s.Commit(ctx, key, f, c)
		},
		"appends twice": func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			c.Entries = append(slices.Clone(c.Entries), c.Entries...)
			return s.Commit(ctx, key, f, c)
		},
		"commits a scope on whatever is there": func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			if rec, err := s.Load(ctx, key); err == nil && key.Kind == store.KindScope {
				c.After = rec.Mark
			}
			return s.Commit(ctx, key, f, c)
		},
		"reports what it did as failed": func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			if _, err := s.Commit(ctx, key, f, c); err != nil {
				return store.Ack{}, err
			}
			return store.Ack{}, &store.Error{Op: "commit", Key: key, Kind: store.ErrUnavailable}
		},
	} {
		with(name, func(s store.Store) store.Store { return commits{s, do} })
	}
	return out
}

// TestTheTicketCasesCatchBrokenStores is their own matrix: each broken store is caught,
// and each case catches at least one of them.
func TestTheTicketCasesCatchBrokenStores(t *testing.T) {
	cases := slices.DeleteFunc(ticketCases(), func(c Case) bool { return slices.Contains(c.Needs, NeedSpawn) })
	var mu sync.Mutex
	catches, caught := map[string][]string{}, map[string][]string{}
	var group errgroup.Group
	for name, h := range brokenForTickets() {
		group.Go(func() error {
			failed := ticketFailures(t, h(), cases)
			mu.Lock()
			defer mu.Unlock()
			for id := range failed {
				catches[id] = append(catches[id], name)
				caught[name] = append(caught[name], id)
			}
			if len(failed) == 0 {
				t.Errorf("a store that is broken (%s): want a case that fails, got none", name)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if len(catches[c.ID]) == 0 {
			t.Errorf("%s: want a broken store that it catches, got none", c.ID)
		}
	}
	documented(t, ProfileTickets, caught)
}

// TestTheStopMatrixIsWhole names the rows of M-4: a missing one is a failure of the suite.
func TestTheStopMatrixIsWhole(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range ticketCases() {
		if ids[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		ids[c.ID] = true
	}
	for _, id := range strings.Fields(`
		proof/no-receipt
		proof/state-missing proof/state-running proof/instance-missing proof/instance-other
		proof/birth proof/run proof/session proof/dispatch-key proof/spec-hash
		proof/task-instance proof/nil-instance
		proof/both-kinds proof/neither-kind
		proof/pid-zero
		proof/not-completed
		proof/too-long proof/not-json proof/wrong-type proof/field-missing proof/field-unknown proof/field-twice
		pid-form
		real-task
		result-twice
		result-after-reopening
		barrier
		lost-publication
		late-result
		raced-at-one-seq
		nth-write-fails-before nth-write-fails-after nth-write-unknown
	`) {
		if !ids["M-4/"+id] {
			t.Errorf("there is no case M-4/%s", id)
		}
	}
}
