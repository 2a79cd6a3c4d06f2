package conformance

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loophost/loophost/host/store"
)

var _ store.Queue = (*queueHandle)(nil)

// queueFailures runs the cases about queues against h.
func queueFailures(t *testing.T, h Harness) map[string]string {
	t.Helper()
	o := Options{Profiles: []Profile{ProfileTickets}, Timeout: 3 * time.Second, Namespace: "own", patience: 700 * time.Millisecond}.normal()
	report, err := check(context.Background(), h, o, queueCases())
	if err != nil {
		t.Error(err)
	}
	failed := map[string]string{}
	for _, p := range report.Profiles {
		for _, r := range p.Results {
			switch r.Outcome {
			case Failed:
				failed[r.ID] = r.Reason
			case Skipped:
				t.Errorf("case %s is skipped: %s", r.ID, r.Reason)
			}
		}
	}
	return failed
}

func TestUnbrokenQueuesPassEveryCase(t *testing.T) {
	for id, why := range queueFailures(t, newMiniQueues("")) {
		t.Errorf("%s fails against queues without a defect: %s", id, why)
	}
}

// TestTheQueueCasesCatchBrokenStores is their own matrix: each broken store is caught,
// and each case catches at least one of them. All at once: most of their time they wait
// for what must not come.
func TestTheQueueCasesCatchBrokenStores(t *testing.T) {
	var mu sync.Mutex
	catches, caught := map[string][]string{}, map[string][]string{}
	var group errgroup.Group
	for _, d := range queueDefects {
		group.Go(func() error {
			failed := queueFailures(t, newMiniQueues(d))
			mu.Lock()
			defer mu.Unlock()
			for id := range failed {
				catches[id] = append(catches[id], string(d))
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
	for _, c := range queueCases() {
		if len(catches[c.ID]) == 0 {
			t.Errorf("%s: want a broken store that it catches, got none", c.ID)
		}
	}
	documented(t, "queue", caught)
}

// A store that says nothing of queues is not asked for them.
func TestAStoreWithoutQueuesSkipsTheirCases(t *testing.T) {
	o := Options{Profiles: []Profile{ProfileTickets}}.normal()
	report, err := check(t.Context(), newMini(""), o, queueCases())
	if err != nil {
		t.Fatal(err)
	}
	results := report.Profiles[slices.IndexFunc(report.Profiles, func(p ProfileReport) bool { return p.Profile == ProfileTickets })].Results
	for _, r := range results {
		if r.Outcome != Skipped {
			t.Errorf("%s: got %s, want it skipped", r.ID, r.Outcome)
		}
	}
	if len(results) != len(queueCases()) {
		t.Errorf("got %d results, want %d", len(results), len(queueCases()))
	}
}
