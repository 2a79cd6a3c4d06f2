package conformance

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
)

func TestMain(m *testing.M) {
	if servesAsOwner() {
		return
	}
	goleak.VerifyTestMain(m)
}

// defect is a broken promise of mini; "" is none.
type defect string

// defects are all the ways in which mini can be broken.
var defects = []defect{
	// S-1
	"torn commit visible", "stores only the first entry", "a commit without entries moves nothing", "acquire moves the revision", "renew moves the revision",
	"a refused commit leaves its entries", "creates over what is there", "checks, then creates", "keeps the caller's bytes", "works after close",
	"says conflict for not found", "errors name no key", "refuses at the limit", "cuts what is too large", "has no head limit", "has no entry limit", "has no commit limit",
	// S-2
	"no fence check", "fence on commits but not on deletes", "renews under any fence", "releases under any fence", "resolves under any fence",
	"ignores the birth of a fence", "ignores the generation of a fence", "ignores the owner of a fence", "ignores the run of a fence", "takes a later birth for equal",
	"an empty fence opens everything", "an empty fence opens an unowned record", "a fence is bound to its handle", "fenced errors name no fence", "ignores the birth a commit builds on",
	"shared records need no birth", "shared records take no empty fence", "shared records can be acquired", "last writer wins", "check and write are two steps", "checks the revision before the fence",
	"revision compared as float", "revision kept in 32 bits", "accepts a newer revision", "conflicts name no revision",
	"generations are not minted again", "a run keeps its generation", "release only ends the lease", "release forgets the generation", "cuts long owners",
	"nobody is ever busy", "force waits too", "checks, then acquires", "ignores the expected generation", "busy names no holder", "checks no claim",
	// S-3
	"not idempotent", "log appended twice on retry", "answers a retry with the present state", "accepts other content", "compares only heads of a reused id",
	"checks the fence before the id", "remembers eight ids", "ids are global", "remembers refused ids", "a repeated create exists",
	// S-4
	"never-resolve that still applies", "resolves everything as never", "resolves everything as applied", "an applied commit is resolved only under its fence", "a never is the last commit", "fails to resolve twice",
	// S-5
	"acknowledges before it flushes", "acks any durability", "acks less than it promises", "acks no durability", "ignores the required durability", "describes no probe", "loses the last commit in a crash",
	// S-6
	"ignores the chain", "calls a regression a conflict", "ignores what a claim saw", "a claim must have seen the newest state",
	// S-7
	"has a chain of its own", "finds no damage", "finds damage everywhere",
	// S-8
	"an expired lease fences", "leases never expire", "renew does nothing",
	// S-9
	"ignores the context", "calls a cancelled call an unknown outcome", "answers an applied commit with the context's error",
	// S-10
	"two ids in one record: case is folded", "two ids in one record: cut at NUL", "two ids in one record: spaces are trimmed", "two ids in one record: paths are cleaned",
	"two ids in one record: names are cut at 255 bytes", "two ids in one record: kind and id run together", "two ids in one record: accents are dropped", "accepts malformed keys",
	"stores text, not bytes", "trims newlines", "reformats numbers", "drops empty entries",
	"lists every kind", "a list without a limit is endless", "a cursor is an offset", "repeats a record at the page's edge", "skips a record at the page's edge", "ignores the list's limit", "lists only the first page", "lists newest state first", "gives a cursor with an empty page",
	// S-11
	"a page past the end is an error", "numbers are cut to 32 bits", "reads one entry too early", "a page has no size",
	// S-12
	"tombstone forgotten", "delete does nothing", "delete keeps the log", "a commit revives the deleted", "lists the deleted",
	// S-13
	"signals hit the next run", "signals reach whoever owns the record", "signals live in the handle", "signals move the revision", "keeps every signal", "a signal replaces the one before",
	"acks carry no signals", "a repeated ack carries no signals", "takes any signal", "stores a reason as text without NUL", "wakes nobody", "watches under any fence", "a watch never ends", "a watch misses what is pending",
}

// ownOptions run every profile that mini can be asked for, quickly.
func ownOptions() Options {
	return Options{Profiles: []Profile{ProfileCore, ProfileCrash}, Timeout: 20 * time.Second, Namespace: "own", patience: 500 * time.Millisecond}.normal()
}

// alone are the cases that need no process beside the suite's own.
func alone() []Case {
	return slices.DeleteFunc(Cases(), func(c Case) bool { return slices.Contains(c.Needs, NeedSpawn) })
}

// caughtBy runs the table against mini with defect d and returns the ids of the cases that fail.
func caughtBy(t *testing.T, d defect) map[string]string {
	t.Helper()
	report, err := check(context.Background(), newMini(d), ownOptions(), alone())
	if err != nil {
		t.Errorf("check a store with the defect %q: %v", d, err)
	}
	failed := map[string]string{}
	for _, p := range report.Profiles {
		for _, r := range p.Results {
			if r.Outcome == Failed {
				failed[r.ID] = r.Reason
			}
			if r.Outcome == Skipped {
				t.Errorf("case %s is skipped against mini: %s", r.ID, r.Reason)
			}
		}
	}
	return failed
}

func TestUnbrokenStorePassesEveryCase(t *testing.T) {
	for id, why := range caughtBy(t, "") {
		t.Errorf("%s fails against a store without a defect: %s", id, why)
	}
}

// TestEveryDefectIsCaught is the suite's own matrix: every broken store is
// caught by at least one case, and every case catches at least one broken store.
// Several stores are checked at once because some defects show only by waiting.
func TestEveryDefectIsCaught(t *testing.T) {
	const atOnce = 8
	var mu sync.Mutex
	catches := map[string][]defect{}
	caught := map[string][]string{}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, d := range defects {
		group.Go(func() error {
			failed := caughtBy(t, d)
			mu.Lock()
			defer mu.Unlock()
			for id := range failed {
				catches[id] = append(catches[id], d)
				caught[string(d)] = append(caught[string(d)], id)
			}
			if len(failed) == 0 {
				t.Errorf("a store with the defect %q: want a case that fails, got none", d)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, c := range alone() {
		if slices.Contains(ownOptions().Profiles, c.Profile) && len(catches[c.ID]) == 0 {
			t.Errorf("%s: want a defect that it catches, got none", c.ID)
		}
	}
	documented(t, ProfileCore, caught)
}
