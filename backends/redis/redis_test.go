package redis

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/loophost/loophost/host/store"
)

func TestMain(m *testing.M) {
	SilenceClient()
	if serveOwner() {
		return
	}
	goleak.VerifyTestMain(m)
}

var key = store.SessionKey("a session")

func openStore(t testing.TB, url string) *Store {
	t.Helper()
	return openWith(t, Config{URL: url})
}

// openPatient waits long for replicas: a busy machine may need it to.
func openPatient(t testing.TB, url string) *Store {
	t.Helper()
	return openWith(t, Config{URL: url, ReplicaWait: time.Minute})
}

func openWith(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatalf("open: got %v, want none", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: got %v, want none", err)
		}
	})
	return s
}

func commit(after store.Mark, head string, entries ...string) store.Commit {
	c := store.Commit{ID: uuid.NewString(), After: after, Head: []byte(head)}
	for _, e := range entries {
		c.Entries = append(c.Entries, []byte(e))
	}
	return c
}

func claim(owner string) store.Claim { return store.Claim{Owner: owner, Run: uuid.NewString()} }

func wantKind(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || (want == nil && err != nil) {
		t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		return v
	}
}

// owner makes a record and owns it.
func owner(t testing.TB, s *Store, k store.Key) (store.Fence, store.Mark) {
	t.Helper()
	ack := must[store.Ack](t)(s.Create(t.Context(), k, commit(store.Mark{}, "{}", "first")))
	f, _, err := s.Acquire(t.Context(), k, claim("me"))
	wantKind(t, "acquire", err, nil)
	return f, ack.Mark
}
