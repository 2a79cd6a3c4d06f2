package scope_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// snapshots are the records of snapshots in a store.
func snapshots(t *testing.T, st store.Store) (keys []store.Key) {
	t.Helper()
	page, err := st.List(t.Context(), store.Query{Kind: scope.KindSnapshot})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Items {
		keys = append(keys, item.Record.Key)
	}
	return keys
}

func headOf(t *testing.T, st store.Store) scope.Head {
	t.Helper()
	page, err := scope.List(t.Context(), st, "", 0)
	if err != nil || len(page.Items) != 1 || page.Items[0].Err != nil {
		t.Fatalf("list: got %+v, %v, want one scope", page, err)
	}
	return page.Items[0].Head
}

func TestOpeningReadsTheSnapshotAndWhatIsBehindIt(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		st := at(t)
		s := create(t, st, small)
		fill(t, s, 50)
		s.Close()
		h := headOf(t, st)
		if h.Snapshot == nil || h.Seq != 50 || h.Binding != bound {
			t.Fatalf("got the head %+v, want one with a snapshot at seq 50", h)
		}
		if keys := snapshots(t, st); uint64(len(keys)) != h.Snapshot.Records {
			t.Errorf("%d records of snapshots are left, want the newest one's %d", len(keys), h.Snapshot.Records)
		}
		f := conformance.NewFaulty(at(t))
		again := open(t, f.Store(), scope.Config{})
		wantSame(t, "opened", again.State(), s.State())
		if n := f.Count(conformance.OpCommit) + f.Count(conformance.OpCreate) + f.Count(conformance.OpAcquire); n != 0 {
			t.Errorf("opening made %d writes (T-2)", n)
		}
		wantWhole(t, st, bound.ScopeID)
		state, err := scope.Read(t.Context(), st, bound.ScopeID)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "read", state, s.State())
	})
}

func TestALostSnapshotCostsTimeAndCheckTellsOfIt(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		st := at(t)
		s := create(t, st, small)
		fill(t, s, 30)
		s.Close()
		for _, key := range snapshots(t, st) {
			removeRecord(t, st, key)
		}
		again := open(t, at(t), small)
		wantSame(t, "opened without snapshot", again.State(), s.State())
		r, err := scope.Check(t.Context(), st, bound.ScopeID)
		if err != nil || len(r.Findings) != 1 || !strings.Contains(r.Findings[0], "snapshot") {
			t.Errorf("check: got %q, %v, want one finding about the snapshot", r.Findings, err)
		}
		lost := headOf(t, st).Snapshot.Seq
		for i := 0; headOf(t, st).Snapshot.Seq == lost; i++ {
			do(t, again, newTicket(fmt.Sprint("more", i)))
		}
		again.Close()
		wantWhole(t, st, bound.ScopeID)
	})
}

func TestASnapshotThatIsNotTheHeadsIsNotUsed(t *testing.T) {
	st := places(t)["memory"](t)
	s := create(t, st, small)
	fill(t, s, 30)
	s.Close()
	for _, key := range snapshots(t, st) {
		rec, err := st.Load(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		page, err := st.ReadLog(t.Context(), key, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		forged := store.Commit{ID: uuid.NewString(), Head: rec.Head}
		for _, e := range page.Entries {
			forged.Entries = append(forged.Entries, []byte(strings.ReplaceAll(string(e.Data), "done", "DONE")))
		}
		removeRecord(t, st, key)
		if _, err := st.Create(t.Context(), key, forged); err != nil {
			t.Fatal(err)
		}
	}
	wantSame(t, "opened", open(t, st, small).State(), s.State())
	r, err := scope.Check(t.Context(), st, bound.ScopeID)
	if err != nil || len(r.Findings) != 1 || !strings.Contains(r.Findings[0], "snapshot") {
		t.Errorf("check: got %q, %v, want one finding about the snapshot", r.Findings, err)
	}
}

func removeRecord(t *testing.T, st store.Store, key store.Key) {
	t.Helper()
	f, _, err := st.Acquire(t.Context(), key, store.Claim{Owner: "somebody", Run: uuid.NewString()})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(t.Context(), key, f); err != nil {
		t.Fatal(err)
	}
}

func TestALargeScopeHasASnapshotOfSeveralRecords(t *testing.T) {
	st := places(t)["memory"](t)
	s := create(t, st, scope.Config{SnapshotAfter: 12 << 20})
	c := ticket.Contract{Title: "t", Objective: strings.Repeat("o", 60_000), Acceptance: []string{"x"}}
	for b := range 4 {
		var r ticket.Create
		for i := range 60 {
			r.Tickets = append(r.Tickets, ticket.NewTicket{ID: fmt.Sprintf("t%d-%d", b, i), Contract: c})
		}
		do(t, s, ticket.Command{OperationID: fmt.Sprint("batch ", b), Principal: ticket.User("me"), Request: r})
	}
	s.Close()
	if n := headOf(t, st).Snapshot.Records; n < 2 || len(snapshots(t, st)) != int(n) {
		t.Errorf("got a snapshot of %d records and %d of them stored, want several", n, len(snapshots(t, st)))
	}
	wantSame(t, "opened", open(t, st, scope.Config{}).State(), s.State())
	wantWhole(t, st, bound.ScopeID)
}

func TestSweepRemovesWhatADeadHostLeft(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		st := at(t)
		f := conformance.NewFaulty(at(t))
		s := create(t, f.Store(), small)
		// The commits that would point to a snapshot never come.
		f.Inject(conformance.Fault{Op: conformance.OpCommit, Times: -1, Match: func(c conformance.Call) bool { return len(c.Commit.Entries) == 0 }})
		i := 0
		for ; f.Struck() == 0; i++ {
			do(t, s, newTicket(fmt.Sprint("t", i)))
		}
		s.Close()
		orphans := snapshots(t, st)
		if n, err := scope.Sweep(t.Context(), st); n != 0 || err != nil {
			t.Errorf("a snapshot that a head may yet refer to: %d removed, %v, want none", n, err)
		}
		s = open(t, st, small)
		for ; headOf(t, st).Snapshot == nil; i++ {
			do(t, s, newTicket(fmt.Sprint("t", i)))
		}
		s.Close()
		if n, err := scope.Sweep(t.Context(), st); n != len(orphans) || n == 0 || err != nil {
			t.Errorf("the sweep removed %d, %v, want %d", n, err, len(orphans))
		}
		wantSame(t, "opened", open(t, at(t), scope.Config{}).State(), s.State())
		wantWhole(t, st, bound.ScopeID)
		key := store.Key{Kind: store.KindScope, ID: bound.ScopeID}
		rec, err := st.Load(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Delete(t.Context(), key, rec.Fence); err != nil {
			t.Fatal(err)
		}
		want := len(snapshots(t, st))
		if n, err := scope.Sweep(t.Context(), st); n != want || n == 0 || err != nil {
			t.Errorf("the scope is gone: the sweep removed %d, %v, want %d", n, err, want)
		}
	})
}

func TestASnapshotThatWasOvertakenIsRemoved(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		st := at(t)
		b := &between{Store: at(t)}
		slow, quick := create(t, b, small), open(t, at(t), small)
		begun, overtaken := make(chan struct{}), make(chan struct{})
		b.create = func() {
			close(begun)
			<-overtaken
		}
		for i := range 10 { // more than enough for a snapshot to be due
			do(t, slow, newTicket(fmt.Sprint("slow", i)))
		}
		<-begun
		for i := 0; headOf(t, st).Snapshot == nil; i++ {
			do(t, quick, newTicket(fmt.Sprint("quick", i)))
		}
		quick.Close()
		close(overtaken)
		slow.Close()
		if got, want := len(snapshots(t, st)), headOf(t, st).Snapshot.Records; uint64(got) != want {
			t.Errorf("%d records of snapshots are left, want the %d of the newest", got, want)
		}
		if got, err := slow.Refresh(t.Context()); err == nil {
			t.Errorf("a closed handle read seq %d", got.Seq())
		}
		wantSame(t, "opened", open(t, at(t), scope.Config{}).State(), quick.State())
		wantWhole(t, st, bound.ScopeID)
	})
}

func TestACommandCostsTheSameHoweverLargeTheScopeIs(t *testing.T) {
	f := conformance.NewFaulty(places(t)["memory"](t))
	s := create(t, f.Store(), scope.Config{})
	cost := func(id string) (calls, size int) {
		before := len(f.Calls())
		do(t, s, newTicket(id))
		for _, c := range f.Calls()[before:] {
			if c.Key.Kind != store.KindScope || len(c.Commit.Entries) == 0 {
				continue // a snapshot, amortised
			}
			calls++
			size += len(c.Commit.Head) + len(c.Commit.Entries[0])
		}
		return calls, size
	}
	calls, size := cost("0000")
	if calls != 1 {
		t.Errorf("a command made %d commits, want 1 (T-2)", calls)
	}
	fill(t, s, 2_000)
	if calls, now := cost("0001"); calls != 1 || now > size+600 { // the head names a snapshot now; numbers have more digits
		t.Errorf("with 2,000 tickets a command makes %d commits of %d bytes, with none 1 of %d", calls, now, size)
	}
}

func TestALogThatIsNotTheHeadsIsCorrupt(t *testing.T) {
	for name, spoil := range map[string]func(entry, head string) (string, string){
		"an entry that is no JSON":         func(_, head string) (string, string) { return "{", head },
		"an entry of another history":      func(e, head string) (string, string) { return strings.Replace(e, `"prev":"`, `"prev":"0`, 1), head },
		"a head of another entry":          func(e, head string) (string, string) { return strings.Replace(e, "o <x>", "o <y>", 1), head },
		"a head that counts more commands": func(e, head string) (string, string) { return e, strings.Replace(head, `"seq":3`, `"seq":4`, 1) },
		"a head without a member":          func(e, head string) (string, string) { return e, strings.Replace(head, `"coordinator":"",`, "", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			st := places(t)["memory"](t)
			b := &between{Store: st}
			s := create(t, b, scope.Config{})
			fill(t, s, 2)
			b.commit = spoiling(st, spoil)
			do(t, s, newTicket("x"))
			_, err := scope.Open(t.Context(), st, bound, scope.Config{})
			wantKind(t, "opening", err, store.ErrCorrupt)
			r, err := scope.Check(t.Context(), st, bound.ScopeID)
			if err != nil || len(r.Findings) != 1 {
				t.Errorf("check: got %q, %v, want one finding", r.Findings, err)
			}
			page, err := scope.List(t.Context(), st, "", 0)
			if err != nil || len(page.Items) != 1 {
				t.Errorf("list: got %+v, %v, want the scope all the same", page, err)
			}
		})
	}
}
