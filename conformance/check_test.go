package conformance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/store"
)

func TestTheTableIsWellFormed(t *testing.T) {
	id := regexp.MustCompile(`^[LSTMQ]-[0-9]+(/[a-z0-9-]+)+$`)
	seen := map[string]bool{}
	rules := map[string]bool{}
	for _, c := range Cases() {
		if !id.MatchString(c.ID) || seen[c.ID] {
			t.Errorf("case id %q: want a rule, a slash and words that no other case has", c.ID)
		}
		seen[c.ID] = true
		rules[c.Rule()] = true
		if !strings.HasSuffix(c.Sentence, ".") || c.Run == nil || !slices.Contains(Profiles(), c.Profile) {
			t.Errorf("%s: want a sentence, a profile and a function, got %+v", c.ID, c)
		}
	}
	for n := 1; n <= 13; n++ {
		if rule := fmt.Sprintf("S-%d", n); !rules[rule] {
			t.Errorf("%s: want at least one case, got none", rule)
		}
	}
	for n := 1; n <= 9; n++ {
		if rule := fmt.Sprintf("Q-%d", n); !rules[rule] {
			t.Errorf("%s: want at least one case, got none", rule)
		}
	}
	ids := awkwardIDs()
	slices.Sort(ids)
	if got, want := len(slices.Compact(ids)), len(awkwardIDs()); got != want {
		t.Errorf("awkward ids: want %d different ones, got %d", want, got)
	}
}

// recording is a harness whose handles write down every call.
type recording struct {
	*mini
	mu    sync.Mutex
	calls []*Faulty
}

func (r *recording) Open(ctx context.Context) (store.Store, error) {
	s, err := r.mini.Open(ctx)
	f := NewFaulty(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, f)
	return f.Store(), err
}

// operations are the calls of all handles without what a store mints.
func (r *recording) operations() []string {
	var all []string
	for i, f := range r.calls {
		for _, c := range f.Calls() {
			all = append(all, fmt.Sprintf("handle %d: %s %s commit %s after %d head %q entries %q claim %s %v signal %v", i, c.Op, c.Key, c.Commit.ID, c.Commit.After.Revision, c.Commit.Head, c.Commit.Entries, c.Claim.Run, c.Claim.Force, c.Signal.Kind))
		}
	}
	return all
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	run := func(seed uint64) []string {
		h := &recording{mini: newMini("")}
		o := ownOptions()
		o.Seed = seed
		o.Match = regexp.MustCompile(`^(S-1/model|S-1/c|S-2/other|S-2/error|S-3/s|S-4/resolve-a|S-8/busy|S-6|S-10/random|S-12/new|S-13/a)`)
		report, err := check(t.Context(), h, o, Cases())
		if err != nil || report.Verdict == VerdictFailed {
			t.Fatalf("want a run without failures, got %v, %s", err, report.Reason)
		}
		return withoutCleanUp(h.operations())
	}
	first, again, other := run(7), run(7), run(8)
	if len(first) < 500 {
		t.Errorf("want many operations, got %d", len(first))
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("seed 7 twice differs (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, other) {
		t.Error("seeds 7 and 8: want different operations, got the same")
	}
}

// withoutCleanUp leaves out the deletion of what a case made: its claims have
// random runs.
func withoutCleanUp(ops []string) []string {
	return slices.DeleteFunc(ops, func(op string) bool {
		return strings.Contains(op, ": acquire ") && strings.Contains(op, "true")
	})
}

// odd builds a table of cases with known ends.
func odd() []Case {
	return []Case{
		core("S-1/passes", "It passes.", func(_ context.Context, e *Env) error { e.Note("a remark"); return nil }),
		core("S-1/fails", "It fails.", func(context.Context, *Env) error { return errors.New("want <a> & b, got\nc") }),
		core("S-1/panics", "It panics.", func(context.Context, *Env) error { var none []int; return fmt.Errorf("%d", none[0]) }),
		{ID: "S-1/skipped", Sentence: "It is skipped.", Profile: ProfileCore, Needs: []Need{"magic"}, Run: func(context.Context, *Env) error { return errors.New("ran") }},
		{ID: "M-5/other-profile", Sentence: "It belongs elsewhere.", Profile: ProfileCrash, Run: func(context.Context, *Env) error { return nil }},
	}
}

func outcomes(r Report) map[string]Outcome {
	out := map[string]Outcome{}
	for _, p := range r.Profiles {
		for _, res := range p.Results {
			out[res.ID] = res.Outcome
		}
	}
	return out
}

func TestVerdicts(t *testing.T) {
	cases := odd()
	pass, fail, panics, skip, crash := cases[0], cases[1], cases[2], cases[3], cases[4]
	crash.Needs = []Need{"magic"}
	for _, tc := range []struct {
		name     string
		cases    []Case
		profiles []Profile
		want     Verdict
	}{
		{"everything passes", []Case{pass}, nil, VerdictPassed},
		{"a case fails", []Case{pass, fail}, nil, VerdictFailed},
		{"a case panics", []Case{panics, pass}, nil, VerdictFailed},
		{"a core case is skipped", []Case{pass, skip}, nil, VerdictPartial},
		{"a case fails and a core case is skipped", []Case{fail, skip}, nil, VerdictFailed},
		{"only skipped cases", []Case{skip}, nil, VerdictFailed},
		{"no case at all", nil, nil, VerdictFailed},
		{"every case of another profile is skipped", []Case{pass, crash}, []Profile{ProfileCore, ProfileCrash}, VerdictPartial},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := check(t.Context(), newMini(""), Options{Profiles: tc.profiles}.normal(), tc.cases)
			if err != nil || r.Verdict != tc.want || r.Reason == "" {
				t.Errorf("want verdict %s with a reason, got %s (%q), error %v", tc.want, r.Verdict, r.Reason, err)
			}
		})
	}
}

func TestEveryCaseGetsItsOutcomeWhateverTheOthersDo(t *testing.T) {
	var progress []string
	o := Options{Progress: func(r Result) { progress = append(progress, r.ID) }}
	r, err := check(t.Context(), newMini(""), o.normal(), odd())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Outcome{"S-1/passes": Passed, "S-1/fails": Failed, "S-1/panics": Failed, "S-1/skipped": Skipped}
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if want := []string{"S-1/passes", "S-1/fails", "S-1/panics", "S-1/skipped"}; !slices.Equal(progress, want) {
		t.Errorf("progress: want %v, got %v", want, progress)
	}
	if r.Seed != 1 || r.Environment.Name == "" || r.Store.Name != "mini" || r.Namespace == "" {
		t.Errorf("want seed, environment, store and namespace in the report, got %+v", r)
	}
}

func TestMatchChoosesCases(t *testing.T) {
	r, err := Check(t.Context(), newMini(""), Options{Match: regexp.MustCompile("^S-12/")})
	if err != nil {
		t.Fatal(err)
	}
	for id := range outcomes(r) {
		if !strings.HasPrefix(id, "S-12/") {
			t.Errorf("want only cases of S-12, got %s", id)
		}
	}
	if r.Verdict != VerdictPassed || len(outcomes(r)) == 0 {
		t.Errorf("want cases that pass, got %d, %s", len(outcomes(r)), r.Reason)
	}
}

func TestACancelledCheckReportsWhatItDid(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the operator had enough")
	cases := odd()
	cases[1].Run = func(context.Context, *Env) error { cancel(why); return nil }
	r, err := check(ctx, newMini(""), Options{}.normal(), cases)
	if !errors.Is(err, why) {
		t.Errorf("want an error that wraps the cause, got %v", err)
	}
	if got := len(outcomes(r)); got != 2 {
		t.Errorf("want 2 results, got %d", got)
	}
}

// unreachable is a harness that can't open anything.
type unreachable struct{ mini }

func (*unreachable) Open(context.Context) (store.Store, error) {
	return nil, errors.New("connection refused")
}

func TestAStoreThatCannotBeOpenedIsAnError(t *testing.T) {
	r, err := Check(t.Context(), &unreachable{}, Options{})
	if err == nil || !strings.Contains(err.Error(), "connection refused") || r.Verdict != VerdictFailed {
		t.Errorf("want an error with its cause and a failed report, got %v, %s", err, r.Verdict)
	}
}

func TestACheckLeavesNoRecordBehind(t *testing.T) {
	m := newMini("")
	if r, err := check(t.Context(), m, ownOptions(), Cases()); err != nil || r.Verdict != VerdictPassed {
		t.Fatalf("want a run that passes, got %v, %s", err, r.Reason)
	}
	for name := range m.records {
		t.Errorf("want no record left, got %q", name)
	}
}

func TestTwoChecksOnOneStoreDoNotMeet(t *testing.T) {
	m := newMini("")
	for i := range 2 {
		r, err := Check(t.Context(), m, Options{Match: regexp.MustCompile("^S-(2|10)/")})
		if err != nil || r.Verdict != VerdictPassed {
			t.Errorf("run %d: want it to pass, got %v, %s", i+1, err, r.Reason)
		}
	}
}

func TestACaseThatHangsIsStopped(t *testing.T) {
	hang := core("S-1/hangs", "It waits for its context.", func(ctx context.Context, _ *Env) error { <-ctx.Done(); return ctx.Err() })
	o := Options{Timeout: time.Millisecond}
	r, err := check(t.Context(), newMini(""), o.normal(), []Case{hang, odd()[0]})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]Outcome{"S-1/hangs": Failed, "S-1/passes": Passed}, outcomes(r)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestRunFitsGoTest(t *testing.T) {
	runCases(t, newMini(""), Options{Profiles: Profiles(), Namespace: "go test"}.normal(), Cases(ProfileCore))
}
