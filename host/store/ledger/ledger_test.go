package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

// What the rules answer is proved by the conformance suite on the store in memory,
// which has no others. Here is what only an engine that fails can show.

var key = store.SessionKey("a session")

// failing is an engine whose transactions and lists end with err.
type failing struct {
	ledger.Engine
	err error
}

func (f failing) Do(context.Context, store.Key, bool, func(ledger.Tx) error) error { return f.err }

func (f failing) Rows(context.Context, store.Kind, string, int) ([]ledger.Row, error) {
	return []ledger.Row{{ID: "damaged", Err: f.err}}, nil
}

func TestErrorsOfAnEngineBecomeThePortsOwn(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	original := &store.Error{Op: "commit", Key: key, Kind: store.ErrFenced}
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"any error is unavailable", io.ErrUnexpectedEOF, store.ErrUnavailable},
		{"a sentinel keeps its kind", fmt.Errorf("row 3: %w", store.ErrCorrupt), store.ErrCorrupt},
		{"an uncertain transaction stays uncertain", fmt.Errorf("commit: %w", store.ErrUnknownOutcome), store.ErrUnknownOutcome},
		{"the port's own error stays as it is", original, store.ErrFenced},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ledger.Over(failing{err: c.err}, store.Durability{}, nil)
			_, err := s.Load(t.Context(), key)
			var e *store.Error
			if !errors.As(err, &e) || !errors.Is(e.Kind, c.want) || !errors.Is(err, c.err) {
				t.Errorf("got %v, want a *store.Error of the kind %v around %v", err, c.want, c.err)
			}
			if e != original && e != nil && (e.Op != "load" || e.Key != key) {
				t.Errorf("got operation %q on %v, want load on %v", e.Op, e.Key, key)
			}
			if got := ledger.Error(ended, "load", key, io.ErrUnexpectedEOF); !errors.Is(got, context.Canceled) {
				t.Errorf("got %v after the context ended, want its error", got)
			}
		})
	}
}

func TestADamagedRecordIsListedWithItsError(t *testing.T) {
	s := ledger.Over(failing{err: store.ErrCorrupt}, store.Durability{}, nil)
	page, err := s.List(t.Context(), store.Query{Kind: store.KindSession})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("got %+v, %v, want one item", page, err)
	}
	if got := page.Items[0]; got.Record.Key.ID != "damaged" || !errors.Is(got.Err, store.ErrCorrupt) {
		t.Errorf("got %+v, want the record's key and ErrCorrupt", got)
	}
}

func TestAStateSurvivesJSON(t *testing.T) {
	c := store.Commit{ID: uuid.NewString(), Head: []byte("h"), Entries: [][]byte{[]byte("e")}}
	s, settled, err := ledger.Create(key, c, time.Unix(1000, 5).UTC(), 0, store.Durability{Level: store.LevelPower})
	if err != nil {
		t.Fatal(err)
	}
	claim := store.Claim{Owner: "me", Run: uuid.NewString()}
	if _, err := s.Acquire(key, claim, time.Unix(1001, 7).UTC(), uuid.New(), nil); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []store.SignalKind{store.SignalCancel, store.SignalStop} {
		if _, err := s.Signal(key, store.Signal{Kind: kind, Run: claim.Run, Reason: "r", Time: time.Unix(1002, 9)}); err != nil {
			t.Fatal(err)
		}
	}
	s.Mark.Revision = 1<<53 + 1 // a float would lose it
	again, settledAgain := new(ledger.State), ledger.Settled{}
	roundTrip(t, s, again)
	roundTrip(t, settled, &settledAgain)
	if diff := cmp.Diff(s, again); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(settled, settledAgain); diff != "" {
		t.Errorf("settled (-want +got):\n%s", diff)
	}
}

func roundTrip(t *testing.T, from, to any) {
	t.Helper()
	doc, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(doc, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}
