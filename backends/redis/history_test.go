package redis

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

func TestHistoryTellsWhoWroteAndWhoWasFenced(t *testing.T) {
	server := startServer(t, everysec...)
	s := openStore(t, server.url())
	f, mark := owner(t, s, key)
	must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(mark, "head", "a", "b")))
	out := must[store.Outcome](t)(s.Resolve(t.Context(), key, f, uuid.NewString()))
	other := claim("somebody \"else\"")
	other.Force = true
	g, _, err := s.Acquire(t.Context(), key, other)
	wantKind(t, "take over", err, nil)
	must[store.Ack](t)(s.Commit(t.Context(), key, g, commit(out.Ack.Mark, "head", "c")))
	wantKind(t, "release", s.Release(t.Context(), key, g), nil)

	var got []string
	if err := s.History(t.Context(), key, func(c store.Change) bool {
		if c.Time.IsZero() || c.Seq != uint64(len(got)+1) || c.Fence.Birth != mark.Birth {
			t.Errorf("got %+v, want a time, the number %d and the record's birth", c, len(got)+1)
		}
		if want := map[string]store.Fence{"me": f, other.Owner: g}[c.Fence.Owner]; want.Run != "" && c.Fence != want {
			t.Errorf("%s: got the fence %+v, want %+v", c.Kind, c.Fence, want)
		}
		line := fmt.Sprintf("%s %d %s %d", c.Kind, c.Revision, c.Fence.Owner, c.Entries)
		if c.Fenced != nil {
			line += " fenced " + c.Fenced.Owner
		}
		got = append(got, line)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"create 1  1", "acquire 1 me 0", "commit 2 me 2", "never 3 me 0",
		`acquire 3 somebody "else" 0 fenced me`, `commit 4 somebody "else" 1`, `release 4 somebody "else" 0`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	n := 0
	if err := s.History(t.Context(), key, func(store.Change) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("got %d changes and %v, want two, since visit said so", n, err)
	}
	err = s.History(t.Context(), store.SessionKey("none"), func(store.Change) bool { return true })
	wantKind(t, "a record that is not there", err, store.ErrNotFound)
}

func TestALongHistoryIsToldWhole(t *testing.T) {
	server := startServer(t, everysec...)
	s := openStore(t, server.url())
	f, mark := owner(t, s, key)
	for range 2 * historyPage {
		ack := must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(mark, "head")))
		mark = ack.Mark
	}
	n := uint64(0)
	if err := s.History(t.Context(), key, func(c store.Change) bool { n = c.Seq; return true }); err != nil || n != mark.Revision+1 {
		t.Errorf("got %d changes and %v, want those of %d revisions and one owner", n, err, mark.Revision)
	}
	wantKind(t, "damage", server.client().HSet(t.Context(), format.Record("loophost", key), "u:300", "x").Err(), nil)
	n = 0
	err := s.History(t.Context(), key, func(c store.Change) bool { n = c.Revision; return true })
	wantKind(t, "the history of a damaged record", err, store.ErrCorrupt)
	if n != 299 {
		t.Errorf("got told up to revision %d, want 299, all that is whole", n)
	}
}

// Whatever byte of the stored record changes, it is found, and reading says so.
func TestDamageAnywhereIsFound(t *testing.T) {
	server := startServer(t, everysec...)
	s := openStore(t, server.url())
	// start and exp are the lease: nothing but an attempt to acquire depends on them (S-8).
	for _, field := range []string{"birth", "rev", "chain", "log", "last", "head", "fence", "gen", "turns", "e:1", "e:2", "u:1", "u:2", "o:1", "c:"} {
		k := store.SessionKey("damaged " + field)
		f, mark := owner(t, s, k)
		last := commit(mark, "a head", "an entry")
		must[store.Ack](t)(s.Commit(t.Context(), k, f, last))
		name, c := format.Record("loophost", k), server.client()
		if field == "c:" {
			field += last.ID
		}
		text := must[string](t)(c.HGet(t.Context(), name, field).Result())
		for _, i := range []int{0, len(text) / 2, len(text) - 1} {
			b := []byte(text)
			b[i] ^= 1
			wantKind(t, "damage", c.HSet(t.Context(), name, field, b).Err(), nil)
			rep, err := s.Check(t.Context(), k)
			if err == nil && len(rep.Findings) == 0 {
				t.Errorf("byte %d of %s changed: the check finds nothing", i, field)
			}
		}
		wantKind(t, "mend", c.HSet(t.Context(), name, field, text).Err(), nil)
		wantKind(t, "delete the field", c.HDel(t.Context(), name, field).Err(), nil)
		if rep, err := s.Check(t.Context(), k); err == nil && len(rep.Findings) == 0 {
			t.Errorf("without %s: the check finds nothing", field)
		}
		wantKind(t, "close", c.Close(), nil)
	}
}
