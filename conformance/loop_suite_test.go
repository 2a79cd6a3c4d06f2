package conformance

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loophost/loophost/host/store"
)

// loopFailures runs the loop profile against h; skipped cases are those that need
// a process of their own.
func loopFailures(t *testing.T, h Harness) map[string]string {
	t.Helper()
	o := Options{Profiles: []Profile{ProfileLoop}, Timeout: 3 * time.Second, Namespace: "own"}.normal()
	report, err := check(context.Background(), h, o, loopCases())
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

func TestUnbrokenStorePassesTheLoopProfile(t *testing.T) {
	for id, why := range loopFailures(t, newMini("")) {
		t.Errorf("%s fails against a store without a defect: %s", id, why)
	}
}

// tampered is mini with something between the handles and it.
type tampered struct {
	*mini
	with func(store.Store) store.Store
}

func (x tampered) Open(ctx context.Context) (store.Store, error) {
	s, err := x.mini.Open(ctx)
	if err != nil {
		return nil, err
	}
	return x.with(s), nil
}

// commits is a store whose commits go through do.
type commits struct {
	store.Store
	do func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error)
}

func (x commits) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	return x.do(x.Store, ctx, key, f, c)
}

// brokenStores are the stores that the loop profile is tried on, by what is wrong with them.
func brokenStores() map[string]Harness {
	out := map[string]Harness{}
	for _, d := range []defect{
		"no fence check", "resolves everything as never", "resolves everything as applied", "stores only the first entry",
		"acks any durability", "acks less than it promises", "nobody is ever busy", "leases never expire", "acks carry no signals",
		"signals live in the handle", "generations are not minted again", "force waits too", "delete does nothing",
		"release only ends the lease", "says conflict for not found",
	} {
		out[string(d)] = newMini(d)
	}
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
		"knows no outcome at the first try": func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			if rec, err := s.Load(ctx, key); err == nil && rec.Mark.Revision%2 == 1 {
				return store.Ack{}, &store.Error{Op: "commit", Key: key, Kind: store.ErrUnknownOutcome}
			}
			return s.Commit(ctx, key, f, c)
		},
	} {
		out[name] = tampered{newMini(""), func(s store.Store) store.Store { return commits{s, do} }}
	}
	return out
}

// TestTheLoopProfileCatchesBrokenStores is the profile's own matrix: each broken
// store is caught, and each case catches at least one of them.
func TestTheLoopProfileCatchesBrokenStores(t *testing.T) {
	var mu sync.Mutex
	catches, caught := map[string][]string{}, map[string][]string{}
	var group errgroup.Group
	for name, h := range brokenStores() {
		group.Go(func() error {
			failed := loopFailures(t, h)
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
	for _, c := range loopCases() {
		if len(catches[c.ID]) == 0 && !slices.Contains(c.Needs, NeedSpawn) {
			t.Errorf("%s: want a broken store that it catches, got none", c.ID)
		}
	}
	documented(t, ProfileLoop, caught)
}

// TestTheLoopMatricesAreWhole counts the cells that the matrices must have: a
// missing one is a failure of the suite.
func TestTheLoopMatricesAreWhole(t *testing.T) {
	cells := map[string]int{}
	ids := map[string]bool{}
	for _, c := range loopCases() {
		if ids[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		ids[c.ID] = true
		cells[c.Rule()]++
	}
	const rows = 14
	for rule, want := range map[string]int{"M-1": rows * 2, "M-2": 1, "M-3": 8 * 4} {
		if cells[rule] != want {
			t.Errorf("%s has %d cells, want %d", rule, cells[rule], want)
		}
	}
	for _, row := range checkpointRows() {
		for _, cell := range []string{"M-1/%/before", "M-1/%/after", "L-19/%/unknown-absent", "L-19/%/unknown-applied", "L-19/%/unresolved", "L-20/%/unsettled-before", "L-20/%/unsettled-after"} {
			if id := replaceRow(cell, row.name); !ids[id] {
				t.Errorf("there is no cell %s", id)
			}
		}
	}
}

func replaceRow(cell, row string) string { return strings.Replace(cell, "%", row, 1) }
