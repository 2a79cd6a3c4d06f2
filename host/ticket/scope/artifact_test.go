package scope_test

import (
	"bytes"
	"testing"

	"github.com/google/uuid"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

func TestArtifactsAreKeptByTheirHash(t *testing.T) {
	everywhere(t, func(t *testing.T, at place) {
		st := at(t)
		a := scope.NewArtifacts(st, scope.Config{})
		for name, data := range map[string][]byte{"one byte": {0}, "1 MiB": bytes.Repeat([]byte("m"), ticket.MaxArtifactBytes), "no text": []byte("\xff\x00<>")} {
			art, err := a.Put(t.Context(), data)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if again, err := a.Put(t.Context(), data); err != nil || again != art {
				t.Errorf("%s again: got %+v, %v, want %+v", name, again, err, art)
			}
			got, err := scope.NewArtifacts(at(t), scope.Config{}).Get(t.Context(), art.SHA256)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: got %d bytes, %v, want %d", name, len(got), err, len(data))
			}
		}
		_, err := a.Put(t.Context(), nil)
		wantKind(t, "no byte", err, ticket.InvalidTransition)
		_, err = a.Put(t.Context(), make([]byte, ticket.MaxArtifactBytes+1))
		wantKind(t, "a byte too many", err, ticket.ContextBudgetExceeded)
		_, err = a.Get(t.Context(), "../x")
		wantKind(t, "a name that is no hash", err, store.ErrInvalidID)
		hash := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		_, err = a.Get(t.Context(), hash)
		wantKind(t, "a content that is not there", err, store.ErrNotFound)
		forged := store.Key{Kind: scope.KindArtifact, ID: hash}
		if _, err := st.Create(t.Context(), forged, store.Commit{ID: uuid.NewString(), Head: []byte("{}"), Entries: [][]byte{[]byte("other")}}); err != nil {
			t.Fatal(err)
		}
		_, err = a.Get(t.Context(), hash)
		wantKind(t, "other content under the hash", err, store.ErrCorrupt)
	})
}

func TestAnArtifactIsPutDespiteALostAnswer(t *testing.T) {
	for _, when := range []conformance.When{conformance.Before, conformance.After, conformance.Torn} {
		f := conformance.NewFaulty(places(t)["memory"](t), conformance.Fault{Op: conformance.OpCreate, When: when, Err: &store.Error{Op: "create", Kind: store.ErrUnknownOutcome}})
		a := scope.NewArtifacts(f.Store(), scope.Config{})
		art, err := a.Put(t.Context(), []byte("result"))
		if err != nil {
			t.Errorf("%v: %v", when, err)
			continue
		}
		if got, err := a.Get(t.Context(), art.SHA256); err != nil || string(got) != "result" {
			t.Errorf("%v: got %q, %v", when, got, err)
		}
	}
}
