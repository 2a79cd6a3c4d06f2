package conformance

import (
	"context"
	"testing"
	"time"
)

func loopOptions() Options {
	return Options{Profiles: []Profile{ProfileLoop}, Timeout: 20 * time.Second, Namespace: "own"}.normal()
}

func loopFailures(t *testing.T, h Harness) map[string]string {
	t.Helper()
	report, err := check(context.Background(), h, loopOptions(), loopCases())
	if err != nil {
		t.Fatal(err)
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
