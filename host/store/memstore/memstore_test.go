package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = store.SessionKey("a session")

func commit(after store.Mark, head string, entries ...string) store.Commit {
	c := store.Commit{ID: uuid.NewString(), After: after, Head: []byte(head)}
	for _, e := range entries {
		c.Entries = append(c.Entries, []byte(e))
	}
	return c
}

func claim(owner string) store.Claim { return store.Claim{Owner: owner, Run: uuid.NewString()} }

func wantKind(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || (want == nil && err != nil) {
		t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		return v
	}
}

func TestTwoOwnersMeetOnOneRecord(t *testing.T) {
	ctx := t.Context()
	now := time.Unix(1000, 0)
	m := memstore.NewWith(memstore.Config{Clock: func() time.Time { return now }})
	a, b := m.Open(), m.Open()
	first := must[store.Ack](t)(a.Create(ctx, key, commit(store.Mark{}, "1", "x")))
	fa, rec, err := a.Acquire(ctx, key, claim("a"))
	wantKind(t, "the first acquire", err, nil)
	if rec.Mark != first.Mark || rec.Fence != fa || rec.Holder == nil || rec.Released {
		t.Errorf("got record %+v under the fence %+v, want the first mark, that fence and a holder", rec, fa)
	}
	_, _, err = b.Acquire(ctx, key, claim("b"))
	wantKind(t, "an acquire beside a live owner", err, store.ErrBusy)
	var e *store.Error
	if !errors.As(err, &e) || e.Holder.Fence != fa {
		t.Errorf("got holder %+v, want the first owner %+v", e.Holder, fa)
	}
	now = now.Add(store.DefaultTTL)
	fb, _, err := b.Acquire(ctx, key, claim("b"))
	wantKind(t, "an acquire after the lease ended", err, nil)
	_, err = a.Commit(ctx, key, fa, commit(first.Mark, "late"))
	wantKind(t, "a commit of the paused owner", err, store.ErrFenced)
	wantKind(t, "a renewal of the paused owner", a.Renew(ctx, key, fa, time.Minute), store.ErrFenced)
	wantKind(t, "a release by the paused owner", a.Release(ctx, key, fa), store.ErrFenced)
	wantKind(t, "a delete by the paused owner", a.Delete(ctx, key, fa), store.ErrFenced)
	ack := must[store.Ack](t)(b.Commit(ctx, key, fb, commit(first.Mark, "2")))
	if ack.Mark.Revision != 2 || ack.LogLength != 1 {
		t.Errorf("got ack %+v, want revision 2 with 1 entry", ack)
	}
	fc, _, err := a.Acquire(ctx, key, store.Claim{Owner: "a", Run: uuid.NewString(), Force: true})
	wantKind(t, "a forced take-over", err, nil)
	_, err = b.Commit(ctx, key, fb, commit(ack.Mark, "late"))
	wantKind(t, "a commit of the fenced live owner", err, store.ErrFenced)
	wantKind(t, "a release by the new owner", a.Release(ctx, key, fc), nil)
	wantKind(t, "a second release", a.Release(ctx, key, fc), store.ErrFenced)
}

func TestAnExpiredLeaseDoesNotFenceByItself(t *testing.T) {
	ctx := t.Context()
	now := time.Unix(1000, 0)
	s := memstore.NewWith(memstore.Config{Clock: func() time.Time { return now }}).Open()
	first := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "1")))
	f, _, err := s.Acquire(ctx, key, claim("a"))
	wantKind(t, "acquire", err, nil)
	now = now.Add(time.Hour)
	rec := must[store.Record](t)(s.Load(ctx, key))
	if rec.Holder != nil || rec.Fence != f {
		t.Errorf("got holder %v and fence %+v, want no live holder and the fence %+v", rec.Holder, rec.Fence, f)
	}
	if _, err = s.Commit(ctx, key, f, commit(first.Mark, "2")); err != nil {
		t.Errorf("a commit after the lease ended and before anybody acquired: got %v, want none (S-8)", err)
	}
}

func TestCommitRefusals(t *testing.T) {
	ctx := t.Context()
	s := memstore.New().Open()
	first := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "1")))
	f, _, err := s.Acquire(ctx, key, claim("a"))
	wantKind(t, "acquire", err, nil)
	second := must[store.Ack](t)(s.Commit(ctx, key, f, commit(first.Mark, "2", "x")))

	with := func(f store.Fence, change func(*store.Fence)) store.Fence { change(&f); return f }
	cases := []struct {
		name  string
		fence store.Fence
		c     store.Commit
		want  error
	}{
		{"another generation", with(f, func(f *store.Fence) { f.Generation = uuid.NewString() }), commit(second.Mark, "n"), store.ErrFenced},
		{"another owner", with(f, func(f *store.Fence) { f.Owner = "b" }), commit(second.Mark, "n"), store.ErrFenced},
		{"another run", with(f, func(f *store.Fence) { f.Run = uuid.NewString() }), commit(second.Mark, "n"), store.ErrFenced},
		{"a later birth", with(f, func(f *store.Fence) { f.Birth++ }), commit(second.Mark, "n"), store.ErrFenced},
		{"no fence", store.Fence{}, commit(second.Mark, "n"), store.ErrFenced},
		{"a mark of another birth", f, commit(store.Mark{Birth: second.Mark.Birth + 1, Revision: 2}, "n"), store.ErrFenced},
		{"an older revision", f, commit(first.Mark, "n"), store.ErrConflict},
		{"a newer revision", f, commit(store.Mark{Birth: f.Birth, Revision: 3}, "n"), store.ErrRegressed},
		{"another chain", f, commit(store.Mark{Birth: f.Birth, Revision: 2, Chain: first.Mark.Chain}, "n"), store.ErrRegressed},
		{"a durability out of reach", f, func() store.Commit {
			c := commit(second.Mark, "n")
			c.Require.Level = store.LevelProcess
			return c
		}(), store.ErrNotDurable},
		{"a head over the limit", f, commit(second.Mark, strings.Repeat("x", store.MaxHeadBytes+1)), store.ErrTooLarge},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := s.Commit(ctx, key, c.fence, c.c); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if rec := must[store.Record](t)(s.Load(ctx, key)); rec.Mark != second.Mark || string(rec.Head) != "2" {
				t.Errorf("got mark %+v head %q after the refusal, want %+v %q", rec.Mark, rec.Head, second.Mark, "2")
			}
		})
	}
}

func TestCommitIDs(t *testing.T) {
	ctx := t.Context()
	s := memstore.New().Open()
	create := commit(store.Mark{}, "1")
	first := must[store.Ack](t)(s.Create(ctx, key, create))
	if again := must[store.Ack](t)(s.Create(ctx, key, create)); !cmp.Equal(first, again) {
		t.Errorf("the same create again: got %+v, want %+v", again, first)
	}
	_, err := s.Create(ctx, key, commit(store.Mark{}, "1"))
	wantKind(t, "another create", err, store.ErrExists)
	f, _, err := s.Acquire(ctx, key, claim("a"))
	wantKind(t, "acquire", err, nil)
	c := commit(first.Mark, "2")
	ack := must[store.Ack](t)(s.Commit(ctx, key, f, c))
	after := ack
	for range store.MinRememberedCommits - 1 {
		after = must[store.Ack](t)(s.Commit(ctx, key, f, commit(after.Mark, "n")))
	}
	wantKind(t, "release", s.Release(ctx, key, f), nil)
	if again := must[store.Ack](t)(s.Commit(ctx, key, f, c)); !cmp.Equal(ack, again) {
		t.Errorf("the same commit after the fence is gone: got %+v, want %+v (S-3)", again, ack)
	}
	c.Head = []byte("3")
	_, err = s.Commit(ctx, key, f, c)
	wantKind(t, "the same id with other content", err, store.ErrCommitIDReused)
}

func TestResolveSettles(t *testing.T) {
	ctx := t.Context()
	s := memstore.New().Open()
	first := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "1")))
	f, _, err := s.Acquire(ctx, key, claim("a"))
	wantKind(t, "acquire", err, nil)
	lost := commit(first.Mark, "2")
	want := store.Outcome{Ack: store.Ack{Mark: store.Mark{Birth: f.Birth, Revision: 2, Chain: store.ChainNever(first.Mark.Chain, lost.ID)}, Durability: first.Durability}}
	for range 2 {
		if got := must[store.Outcome](t)(s.Resolve(ctx, key, f, lost.ID)); !cmp.Equal(got, want) {
			t.Errorf("an absent commit: got %+v, want %+v", got, want)
		}
	}
	_, err = s.Commit(ctx, key, f, lost)
	wantKind(t, "the lost commit when it arrives late", err, store.ErrConflict)
	lost.After = want.Ack.Mark
	_, err = s.Commit(ctx, key, f, lost)
	wantKind(t, "its id on the new state", err, store.ErrCommitIDReused)
	c := commit(want.Ack.Mark, "2")
	ack := must[store.Ack](t)(s.Commit(ctx, key, f, c))
	wantKind(t, "release", s.Release(ctx, key, f), nil)
	if got := must[store.Outcome](t)(s.Resolve(ctx, key, f, c.ID)); !got.Applied || !cmp.Equal(got.Ack, ack) {
		t.Errorf("an applied commit after the release: got %+v, want it applied as %+v", got, ack)
	}
	_, err = s.Resolve(ctx, key, f, uuid.NewString())
	wantKind(t, "an absent commit under a gone fence", err, store.ErrFenced)
}

func TestDeletedBirthsDoNotComeBack(t *testing.T) {
	ctx := t.Context()
	m := memstore.NewWith(memstore.Config{Clock: func() time.Time { return time.Unix(1000, 0) }})
	s := m.Open()
	first := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "1")))
	f, _, err := s.Acquire(ctx, key, claim("a"))
	wantKind(t, "acquire", err, nil)
	wantKind(t, "delete", s.Delete(ctx, key, f), nil)
	_, err = s.Commit(ctx, key, f, commit(first.Mark, "2"))
	wantKind(t, "a commit of a deleted record", err, store.ErrNotFound)
	again := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "1")))
	if again.Mark.Birth <= first.Mark.Birth {
		t.Errorf("got birth %v after %v with a clock that stands still, want a later one", again.Mark.Birth, first.Mark.Birth)
	}
	_, err = s.Commit(ctx, key, f, commit(first.Mark, "2"))
	wantKind(t, "a commit of the old birth", err, store.ErrFenced)
	_, _, err = s.Acquire(ctx, key, store.Claim{Owner: "a", Run: uuid.NewString(), Seen: first.Mark})
	wantKind(t, "an acquire that saw the old birth", err, store.ErrRegressed)
}

func TestSharedRecordsCommitWithoutFence(t *testing.T) {
	ctx := t.Context()
	s := memstore.New().Open()
	k := store.Key{Kind: store.KindScope, ID: "scope"}
	first := must[store.Ack](t)(s.Create(ctx, k, commit(store.Mark{}, "1")))
	second := must[store.Ack](t)(s.Commit(ctx, k, store.Fence{}, commit(first.Mark, "2")))
	_, err := s.Commit(ctx, k, store.Fence{}, commit(first.Mark, "lost race"))
	wantKind(t, "a commit on an older revision", err, store.ErrConflict)
	_, err = s.Commit(ctx, k, store.Fence{}, commit(store.Mark{Revision: 2}, "no birth"))
	wantKind(t, "a commit without birth", err, store.ErrFenced)
	_, _, err = s.Acquire(ctx, k, claim("a"))
	wantKind(t, "an acquire", err, store.ErrUnsupported)
	rec := must[store.Record](t)(s.Load(ctx, k))
	if rec.Fence != (store.Fence{Birth: second.Mark.Birth}) {
		t.Errorf("got fence %+v, want the birth alone", rec.Fence)
	}
	wantKind(t, "a delete under the birth", s.Delete(ctx, k, rec.Fence), nil)
}

func TestSignalsReachOneRunOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := memstore.New().Open()
		first := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "1")))
		f, _, err := s.Acquire(ctx, key, claim("a"))
		wantKind(t, "acquire", err, nil)
		ch := must[<-chan store.Signal](t)(s.(store.SignalWatcher).WatchSignals(ctx, key, f))
		wantKind(t, "a signal to another run", s.Signal(ctx, key, store.Signal{Kind: store.SignalStop, Run: uuid.NewString()}), store.ErrNotFound)
		stop := store.Signal{Kind: store.SignalStop, Run: f.Run, Reason: "enough"}
		wantKind(t, "a stop", s.Signal(ctx, key, stop), nil)
		wantKind(t, "the same stop", s.Signal(ctx, key, stop), nil)
		if got := <-ch; !cmp.Equal(got, stop) {
			t.Errorf("watched %+v, want %+v", got, stop)
		}
		ack := must[store.Ack](t)(s.Commit(ctx, key, f, commit(first.Mark, "2")))
		if !cmp.Equal(ack.Signals, []store.Signal{stop}) {
			t.Errorf("got signals %+v with the ack, want the stop once", ack.Signals)
		}
		wantKind(t, "release", s.Release(ctx, key, f), nil)
		_, rec, err := s.Acquire(ctx, key, claim("a"))
		wantKind(t, "the next acquire", err, nil)
		if len(rec.Signals) != 0 {
			t.Errorf("the next run has signals %+v, want none", rec.Signals)
		}
		cancel()
		if _, open := <-ch; open {
			t.Errorf("the watch is open after its context ended, want it closed")
		}
	})
}

func TestReadLogAndListPage(t *testing.T) {
	ctx := t.Context()
	s := memstore.New().Open()
	for i := range 5 {
		must[store.Ack](t)(s.Create(ctx, store.SessionKey(fmt.Sprintf("s%d", i)), commit(store.Mark{}, "h", "e1", "e2", "e3")))
	}
	page := must[store.LogPage](t)(s.ReadLog(ctx, store.SessionKey("s0"), 2, 1))
	want := store.LogPage{Length: 3, Entries: []store.Entry{{Seq: 2, Revision: 1, Data: []byte("e2")}}}
	if d := cmp.Diff(want, page); d != "" {
		t.Errorf("page differs (-want +got):\n%s", d)
	}
	var ids []string
	q := store.Query{Kind: store.KindSession, Limit: 2}
	for {
		p := must[store.ListPage](t)(s.List(ctx, q))
		for _, i := range p.Items {
			ids = append(ids, i.Record.Key.ID)
		}
		if q.Cursor = p.Next; q.Cursor == "" {
			break
		}
	}
	if d := cmp.Diff([]string{"s0", "s1", "s2", "s3", "s4"}, ids); d != "" {
		t.Errorf("listed ids differ (-want +got):\n%s", d)
	}
	_, err := s.List(ctx, store.Query{Kind: store.KindSession, Cursor: "!"})
	wantKind(t, "a foreign cursor", err, store.ErrUnsupported)
}

func TestCheckFindsAWholeRecordWhole(t *testing.T) {
	ctx := t.Context()
	s := memstore.New().Open()
	first := must[store.Ack](t)(s.Create(ctx, key, commit(store.Mark{}, "1", "x")))
	f, _, err := s.Acquire(ctx, key, claim("a"))
	wantKind(t, "acquire", err, nil)
	must[store.Ack](t)(s.Commit(ctx, key, f, commit(first.Mark, "2", "y", "z")))
	for _, step := range []string{"after a commit", "after a resolution"} {
		rep := must[store.CheckReport](t)(s.(store.Checker).Check(ctx, key))
		if len(rep.Findings) != 0 || rep.Entries != 3 || rep.Commits != rep.Revision {
			t.Errorf("%s: got %+v, want 3 whole entries and no findings", step, rep)
		}
		must[store.Outcome](t)(s.Resolve(ctx, key, f, uuid.NewString()))
	}
}

func TestAClosedOrCancelledCallChangesNothing(t *testing.T) {
	ctx := t.Context()
	m := memstore.New()
	a, b := m.Open(), m.Open()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err := a.Create(gone, key, commit(store.Mark{}, "1"))
	wantKind(t, "a create under an ended context", err, context.Canceled)
	wantKind(t, "close", a.Close(), nil)
	_, err = a.Create(ctx, key, commit(store.Mark{}, "1"))
	wantKind(t, "a create through a closed handle", err, store.ErrUnavailable)
	_, err = b.Load(ctx, key)
	wantKind(t, "a load through the other handle", err, store.ErrNotFound)
}
