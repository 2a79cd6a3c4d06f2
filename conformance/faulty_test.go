package conformance

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

// faultRig is a record on mini, owned through a faulty handle.
func faultRig(t *testing.T, faults ...Fault) (*actor, *Faulty) {
	t.Helper()
	m := newMini("")
	e := newEnv(m, store.Description{}, Options{}.normal(), "rig")
	s, err := e.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.owner(t.Context(), s, e.Key("rig"))
	if err != nil {
		t.Fatal(err)
	}
	f := NewFaulty(s, faults...)
	a.s = f.Store()
	return a, f
}

func TestFaultStrikesBeforeOrAfterTheStore(t *testing.T) {
	for _, tc := range []struct {
		name    string
		fault   Fault
		kind    error
		applied bool
	}{
		{"before, definite", Fault{Op: OpCommit, When: Before}, store.ErrUnavailable, false},
		{"after, definite", Fault{Op: OpCommit, When: After}, store.ErrUnavailable, true},
		{"before, unknown", Fault{Op: OpCommit, When: Before, Err: store.ErrUnknownOutcome}, store.ErrUnknownOutcome, false},
		{"after, unknown", Fault{Op: OpCommit, When: After, Err: store.ErrUnknownOutcome}, store.ErrUnknownOutcome, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, f := faultRig(t, tc.fault)
			c := a.commit()
			if _, err := a.send(t.Context(), c); !errors.Is(err, tc.kind) {
				t.Errorf("commit: want %v, got %v", tc.kind, err)
			}
			r, err := a.s.Load(t.Context(), a.key)
			if err != nil || (r.LastCommitID == c.ID) != tc.applied {
				t.Errorf("applied: want %v, got %v (%v)", tc.applied, r.LastCommitID == c.ID, err)
			}
			if f.Struck() != 1 {
				t.Errorf("struck: want 1, got %d", f.Struck())
			}
		})
	}
}

func TestTornCommitIsSettledByResolve(t *testing.T) {
	a, _ := faultRig(t, Fault{Op: OpCommit, When: Torn})
	c := a.commit()
	if _, err := a.send(t.Context(), c); !errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("commit: want an unknown outcome, got %v", err)
	}
	out, err := a.s.Resolve(t.Context(), a.key, a.fence, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.s.Load(t.Context(), a.key)
	if err != nil || out.Applied != (r.LastCommitID == c.ID) {
		t.Errorf("want resolve and record to agree, got applied %v, last commit %s (%v)", out.Applied, r.LastCommitID, err)
	}
}

func TestFaultChoosesTheNthMatchingCall(t *testing.T) {
	boundary := func(c Call) bool { return strings.Contains(string(c.Commit.Head), "stopped") }
	for _, tc := range []struct {
		name  string
		fault Fault
		want  []bool // which of these heads fail: running, stopped, running, stopped, stopped
	}{
		{"the first match", Fault{Op: OpCommit, Match: boundary}, []bool{false, true, false, false, false}},
		{"the second match", Fault{Op: OpCommit, Match: boundary, Nth: 2}, []bool{false, false, false, true, false}},
		{"from the second match on", Fault{Op: OpCommit, Match: boundary, Nth: 2, Times: -1}, []bool{false, false, false, true, true}},
		{"two calls of any kind", Fault{Nth: 2, Times: 2}, []bool{false, true, true, false, false}},
		{"another operation", Fault{Op: OpRelease}, []bool{false, false, false, false, false}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, f := faultRig(t, tc.fault)
			var got []bool
			for _, head := range []string{"running", "stopped", "running", "stopped", "stopped"} {
				_, err := a.send(t.Context(), a.with([]byte(head)))
				got = append(got, err != nil)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("failed calls: want %v, got %v", tc.want, got)
			}
			for i, c := range f.Calls() {
				if c.N != i+1 || c.Op != OpCommit || c.Key != a.key || c.Fence != a.fence || c.Failed != got[i] || (c.Err != nil) != got[i] {
					t.Errorf("record of call %d: got %+v", i+1, c)
				}
			}
		})
	}
}

func TestHealedStoreFailsNoMore(t *testing.T) {
	a, f := faultRig(t, Fault{Times: -1})
	if _, err := a.send(t.Context(), a.commit()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("commit: want unavailable, got %v", err)
	}
	f.Heal()
	if err := a.advance(t.Context(), 2); err != nil {
		t.Errorf("commit after Heal: want success, got %v", err)
	}
	if got := f.Count(OpCommit); got != 3 {
		t.Errorf("recorded commits: want 3, got %d", got)
	}
}

func TestSomebodyActsAtTheFault(t *testing.T) {
	var a *actor
	a, f := faultRig(t)
	var now *actor
	f.Inject(Fault{Op: OpCommit, When: After, Then: func() {
		var err error
		if now, err = a.rival(t.Context(), f.inner); err != nil {
			t.Error(err)
		}
	}})
	if _, err := a.send(t.Context(), a.commit()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("commit: want unavailable, got %v", err)
	}
	if _, err := a.send(t.Context(), a.commit()); !errors.Is(err, store.ErrFenced) {
		t.Errorf("commit after the take-over: want fenced, got %v", err)
	}
	if err := now.advance(t.Context(), 1); err != nil {
		t.Errorf("the new owner: want success, got %v", err)
	}
}

// plain hides the optional abilities of a store.
type plain struct{ store.Store }

type watchOnly struct {
	store.Store
	store.SignalWatcher
}

type checkOnly struct {
	store.Store
	store.Checker
}

func TestWrapperHasExactlyTheAbilitiesOfTheInnerStore(t *testing.T) {
	h := &miniHandle{m: newMini("")}
	for _, tc := range []struct {
		name           string
		inner          store.Store
		watches, check bool
	}{
		{"both", h, true, true},
		{"none", plain{h}, false, false},
		{"watch", watchOnly{h, h}, true, false},
		{"check", checkOnly{h, h}, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := NewFaulty(tc.inner).Store()
			_, watches := s.(store.SignalWatcher)
			_, checks := s.(store.Checker)
			if watches != tc.watches || checks != tc.check {
				t.Errorf("want watch %v and check %v, got %v and %v", tc.watches, tc.check, watches, checks)
			}
		})
	}
}

func TestEveryCallCanFailAndIsRecorded(t *testing.T) {
	a, f := faultRig(t)
	var want []Op
	for _, c := range append(a.calls(), a.keyless()...) {
		f.Inject(Fault{})
		if err := c.do(t.Context(), a.s); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: want unavailable, got %v", c.name, err)
		}
		want = append(want, Op(c.name))
	}
	f.Inject(Fault{}, Fault{Nth: 2})
	if _, err := a.s.(store.SignalWatcher).WatchSignals(t.Context(), a.key, a.fence); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("watch: want unavailable, got %v", err)
	}
	if _, err := a.s.(store.Checker).Check(t.Context(), a.key); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("check: want unavailable, got %v", err)
	}
	var got []Op
	for _, c := range f.Calls() {
		got = append(got, c.Op)
	}
	if want = append(want, OpWatch, OpCheck); !slices.Equal(got, want) {
		t.Errorf("recorded: want %v, got %v", want, got)
	}
}

// What the description lists is what the wrapped store can do.
func TestAFaultyStoreSaysThatItHasNoQueues(t *testing.T) {
	s := memstore.New().Open()
	defer s.Close()
	faulty := NewFaulty(s).Store()
	d, err := faulty.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, queues := faulty.(store.Queue)
	_, checks := faulty.(store.Checker)
	if queues || d.Has("queue") {
		t.Errorf("queue: got it listed %t and there %t, want neither", d.Has("queue"), queues)
	}
	if checks != d.Has("check") {
		t.Errorf("check: got it listed %t and there %t, want the same", d.Has("check"), checks)
	}
}
