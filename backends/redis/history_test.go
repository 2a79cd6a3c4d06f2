package redis

import (
	"fmt"
	"strings"
	"testing"

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

	words := func(changes []Change) string {
		var w []string
		for _, c := range changes {
			if c.Time.IsZero() {
				t.Errorf("a %s without a time", c.Kind)
			}
			w = append(w, fmt.Sprintf("%s %d %s %d %v", c.Kind, c.Revision, c.Owner, c.Entries, c.Force))
		}
		return strings.Join(w, "\n")
	}
	want := "create 1  1 false\ncommit 2 me 2 false\nnever 3 me 0 false\ncommit 4 somebody \"else\" 1 false"
	if got := words(must[[]Change](t)(s.History(t.Context(), key, 0, 0))); got != want {
		t.Errorf("history: got\n%s\nwant\n%s", got, want)
	}
	want = "acquire 0 me 0 false\nacquire 0 somebody \"else\" 0 true\nrelease 0 somebody \"else\" 0 false"
	if got := words(must[[]Change](t)(s.Owners(t.Context(), key, 1, 10))); got != want {
		t.Errorf("owners: got\n%s\nwant\n%s", got, want)
	}
	if got := must[[]Change](t)(s.History(t.Context(), key, 2, 1)); len(got) != 1 || got[0].Revision != 2 {
		t.Errorf("one change from 2: got %+v", got)
	}
	if got := must[[]Change](t)(s.History(t.Context(), key, 5, 0)); got != nil {
		t.Errorf("past the end: got %+v, want none", got)
	}
	_, err = s.Owners(t.Context(), store.SessionKey("none"), 1, 0)
	wantKind(t, "a record that is not there", err, store.ErrNotFound)
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
