package scope_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/backends/redis"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
	"github.com/loophost/loophost/internal/redisserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bound = ticket.Binding{ScopeID: "work", SupervisorSessionID: "boss", BindingRevision: 1}

// place is where a store's data lies; each open gives a handle of its own.
type place func(tb testing.TB) store.Store

// places are the stores that the tests run on.
func places(tb testing.TB) map[string]place {
	tb.Helper()
	memory, dir := memstore.New(), tb.TempDir()
	return map[string]place{
		"memory": func(tb testing.TB) store.Store { return closing(tb, memory.Open()) },
		"fs": func(tb testing.TB) store.Store {
			st, err := fs.Open(fs.Config{Dir: dir, Insist: true})
			if err != nil {
				tb.Fatal(err)
			}
			return closing(tb, st)
		},
	}
}

func closing(tb testing.TB, st store.Store) store.Store {
	tb.Helper()
	tb.Cleanup(func() {
		if err := st.Close(); err != nil {
			tb.Errorf("closing the store: %v", err)
		}
	})
	return st
}

// everywhere runs a test on each place, and on a Redis server of its own.
func everywhere(t *testing.T, test func(t *testing.T, open place)) {
	t.Helper()
	for name, open := range places(t) {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
	t.Run("redis", func(t *testing.T) { test(t, redisPlace(t)) })
}

// redisPlace starts a server. A machine without one can't run the test, which is
// said; where CI is set, that is a failure.
func redisPlace(t *testing.T) place {
	t.Helper()
	server, err := redisserver.Start(t.Context())
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "" {
		t.Skip("redis-server is not installed; install the package redis-server to run this test")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return func(tb testing.TB) store.Store {
		st, err := redis.Open(tb.Context(), redis.Config{URL: "unix://" + server.Socket})
		if err != nil {
			tb.Fatal(err)
		}
		return closing(tb, st)
	}
}

func create(tb testing.TB, st store.Store, cfg scope.Config) *scope.Scope {
	tb.Helper()
	s, err := scope.Create(tb.Context(), st, bound, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func open(tb testing.TB, st store.Store, cfg scope.Config) *scope.Scope {
	tb.Helper()
	s, err := scope.Open(tb.Context(), st, bound, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// newTicket is a supervisor's command that makes one ticket.
func newTicket(id string) ticket.Command {
	c := ticket.Contract{Title: "t", Objective: "o <" + id + ">", Acceptance: []string{"done"}}
	return ticket.Command{
		OperationID: "create " + id, Principal: ticket.Supervisor("boss"),
		Request: ticket.Create{Tickets: []ticket.NewTicket{{ID: id, Contract: c}}},
	}
}

func do(tb testing.TB, s *scope.Scope, c ticket.Command) ticket.Receipt {
	tb.Helper()
	r, err := s.Do(tb.Context(), c)
	if err != nil {
		tb.Fatalf("%s: %v", c.OperationID, err)
	}
	return r
}

// fill makes tickets t0 … t(n-1), one command each.
func fill(tb testing.TB, s *scope.Scope, n int) {
	tb.Helper()
	for i := range n {
		do(tb, s, newTicket(fmt.Sprint("t", i)))
	}
}

func canonical(tb testing.TB, s *ticket.State) []byte {
	tb.Helper()
	data, err := s.Canonical()
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func wantSame(tb testing.TB, what string, got, want *ticket.State) {
	tb.Helper()
	if g, w := canonical(tb, got), canonical(tb, want); !bytes.Equal(g, w) {
		tb.Errorf("%s: got seq %d, want seq %d, or the same seq with other bytes\n%s\n%s", what, got.Seq(), want.Seq(), g, w)
	}
}

func wantKind(tb testing.TB, what string, err, kind error) {
	tb.Helper()
	if !errors.Is(err, kind) {
		tb.Errorf("%s: got %v, want %v", what, err, kind)
	}
}

// raw is the scope's record with its whole log, as bytes.
func raw(tb testing.TB, st store.Store) []byte {
	tb.Helper()
	key := store.Key{Kind: store.KindScope, ID: bound.ScopeID}
	rec, err := st.Load(context.WithoutCancel(tb.Context()), key)
	if err != nil {
		tb.Fatal(err)
	}
	out := fmt.Appendf(nil, "%+v %s\n", rec.Mark, rec.Head)
	for from := uint64(1); from <= rec.LogLength; {
		page, err := st.ReadLog(context.WithoutCancel(tb.Context()), key, from, 0)
		if err != nil {
			tb.Fatal(err)
		}
		for _, e := range page.Entries {
			out = append(append(out, e.Data...), '\n')
			from++
		}
	}
	return out
}
