package conformance

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

func clusterCases() []Case { return Cases(ProfileCluster) }

// clusterFailures runs the profile cluster against h.
func clusterFailures(t *testing.T, h Harness) map[string]string {
	t.Helper()
	o := Options{Profiles: []Profile{ProfileCluster}, Timeout: 5 * time.Second, Namespace: "own", patience: 500 * time.Millisecond}.normal()
	report, err := check(context.Background(), h, o, clusterCases())
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

func TestAnUnbrokenPairPassesEveryFailoverCase(t *testing.T) {
	for id, why := range clusterFailures(t, newMiniPair("")) {
		t.Errorf("%s fails against a pair without a defect: %s", id, why)
	}
}

// TestTheFailoverCasesCatchBrokenStores is their own matrix: each broken pair is caught,
// and each case catches at least one of them.
func TestTheFailoverCasesCatchBrokenStores(t *testing.T) {
	var mu sync.Mutex
	catches, caught := map[string][]string{}, map[string][]string{}
	var group errgroup.Group
	group.SetLimit(4)
	for _, d := range failoverDefects {
		group.Go(func() error {
			failed := clusterFailures(t, newMiniPair(d))
			mu.Lock()
			defer mu.Unlock()
			for id := range failed {
				catches[id] = append(catches[id], string(d))
				caught[string(d)] = append(caught[string(d)], id)
			}
			if len(failed) == 0 {
				t.Errorf("a pair with the defect %q: want a case that fails, got none", d)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, c := range clusterCases() {
		if len(catches[c.ID]) == 0 {
			t.Errorf("%s: want a broken pair that it catches, got none", c.ID)
		}
	}
	documented(t, ProfileCluster, caught)
}

// A harness that has no heir is not asked for one, and says so.
func TestAHarnessWithoutFailoverSkipsItsCases(t *testing.T) {
	o := Options{Profiles: []Profile{ProfileCore, ProfileCluster}}.normal()
	cases := append(clusterCases(), Cases(ProfileCore)[0])
	report, err := check(t.Context(), newMini(""), o, cases)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(report.Profiles, func(p ProfileReport) bool { return p.Profile == ProfileCluster })
	cluster := report.Profiles[at]
	if cluster.Skipped != len(clusterCases()) || cluster.Verdict != VerdictFailed {
		t.Errorf("got %d skipped, %s; want all %d skipped and a profile in which nothing was executed", cluster.Skipped, cluster.Verdict, len(clusterCases()))
	}
	if report.Verdict != VerdictPartial || !strings.Contains(report.Reason, "nothing was executed of the profile cluster") {
		t.Errorf("got %s: %s; want a partial result that says why", report.Verdict, report.Reason)
	}
	for _, r := range cluster.Results {
		if !strings.Contains(r.Reason, "conformance.Failover") && !strings.Contains(r.Reason, "conformance.LossyFailover") {
			t.Errorf("%s: the reason %q names no ability", r.ID, r.Reason)
		}
	}
}
