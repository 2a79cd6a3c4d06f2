package fs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/host/store"
)

func TestTheHistorySaysWhoWroteAndWhoWasFenced(t *testing.T) {
	ctx := t.Context()
	s, err := fs.Open(fs.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := store.SessionKey("a session")
	ids := []string{uuid.NewString(), uuid.NewString(), uuid.NewString()}
	begin := time.Now()
	ack, err := s.Create(ctx, key, store.Commit{ID: ids[0], Head: []byte("{}"), Entries: [][]byte{[]byte("1"), []byte("2")}})
	if err != nil {
		t.Fatal(err)
	}
	first, _, err := s.Acquire(ctx, key, store.Claim{Owner: "first", Run: uuid.NewString()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Commit(ctx, key, first, store.Commit{ID: ids[1], After: ack.Mark, Head: []byte("{}"), Entries: [][]byte{[]byte("3")}}); err != nil {
		t.Fatal(err)
	}
	second, _, err := s.Acquire(ctx, key, store.Claim{Owner: "second", Run: uuid.NewString(), Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(ctx, key, second, ids[2]); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(ctx, key, second); err != nil {
		t.Fatal(err)
	}
	birth := store.Fence{Birth: ack.Mark.Birth}
	want := []store.Change{
		{Seq: 1, Kind: store.ChangeCreate, Revision: 1, Entries: 2, CommitID: ids[0], Fence: birth},
		{Seq: 2, Kind: store.ChangeAcquire, Revision: 1, Fence: first},
		{Seq: 3, Kind: store.ChangeCommit, Revision: 2, Entries: 1, CommitID: ids[1], Fence: first},
		{Seq: 4, Kind: store.ChangeAcquire, Revision: 2, Fence: second, Fenced: &first},
		{Seq: 5, Kind: store.ChangeNever, Revision: 3, CommitID: ids[2], Fence: second},
		{Seq: 6, Kind: store.ChangeRelease, Revision: 3, Fence: second},
	}
	var got []store.Change
	if err := s.History(ctx, key, func(c store.Change) bool {
		if c.Time.Before(begin.Add(-time.Second)) || c.Time.After(time.Now()) {
			t.Errorf("change %d: got the time %v, want one since %v", c.Seq, c.Time, begin)
		}
		got = append(got, c)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.Change{}, "Time")); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	n := 0
	if err := s.History(ctx, key, func(store.Change) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("got %d changes and %v, want two, since visit said so", n, err)
	}
}

func TestAHistoryEndsWhereTheRecordIsDamaged(t *testing.T) {
	ctx, h := t.Context(), harness{t.TempDir()}
	key := store.SessionKey("a session")
	s, err := h.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ack, err := s.Create(ctx, key, store.Commit{ID: uuid.NewString(), Head: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := s.Acquire(ctx, key, store.Claim{Owner: "me", Run: uuid.NewString()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, key, f, store.Commit{ID: uuid.NewString(), After: ack.Mark, Head: []byte("{}"), Entries: [][]byte{[]byte(`"an entry"`)}}); err != nil {
		t.Fatal(err)
	}
	if err := h.Damage(ctx, key, 2); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = h.Open(ctx); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var kinds []store.ChangeKind
	err = s.(store.Historian).History(ctx, key, func(c store.Change) bool { kinds = append(kinds, c.Kind); return true })
	if !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	if diff := cmp.Diff([]store.ChangeKind{store.ChangeCreate, store.ChangeAcquire}, kinds); diff != "" {
		t.Errorf("what is whole (-want +got):\n%s", diff)
	}
	err = s.(store.Historian).History(ctx, store.SessionKey("another"), func(store.Change) bool { return true })
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v for a record that is not there, want ErrNotFound", err)
	}
}
