package child_test

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
	"github.com/loophost/loophost/pluginapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var boss = ticket.Supervisor("boss")

// rig is a scope with a host over one store.
type rig struct {
	t      *testing.T
	store  store.Store
	host   *host.Host
	scope  *scope.Scope
	runner *child.Runner
	n      int
}

func newRig(t *testing.T, st store.Store) *rig {
	t.Helper()
	if st == nil {
		st = memstore.New().Open()
		t.Cleanup(func() { _ = st.Close() })
	}
	r := &rig{t: t, store: st}
	var err error
	if r.host, err = host.New(host.Config{Store: st, Owner: "test"}); err != nil {
		t.Fatal(err)
	}
	binding := ticket.Binding{ScopeID: "s", SupervisorSessionID: "boss", BindingRevision: 1}
	if r.scope, err = scope.Create(t.Context(), st, binding, scope.Config{Poll: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.scope.Close)
	r.runner = r.newRunner()
	return r
}

func (r *rig) newRunner() *child.Runner {
	r.t.Helper()
	runner, err := child.New(child.Config{Host: r.host, Scope: r.scope, ID: uuid.NewString()})
	if err != nil {
		r.t.Fatal(err)
	}
	return runner
}

// give gives a command that must be carried out.
func (r *rig) give(p ticket.Principal, req ticket.Request) {
	r.t.Helper()
	r.n++
	if _, err := r.scope.Do(context.Background(), ticket.Command{OperationID: strconv.Itoa(r.n), Principal: p, Request: req}); err != nil {
		r.t.Fatalf("%s: %v", req.Type(), err)
	}
}

func contract() ticket.Contract {
	return ticket.Contract{Title: "a title", Objective: "an objective", Acceptance: []string{"it is there"}}
}

// start makes a ticket and starts it; its assignment is <id>@1.
func (r *rig) start(id string, c ticket.Contract, dependsOn ...string) string {
	r.t.Helper()
	r.give(boss, ticket.Create{Tickets: []ticket.NewTicket{{ID: id, Contract: c, DependsOn: dependsOn}}})
	r.give(boss, ticket.MarkReady{Of: ticket.Of{Ticket: id}})
	r.give(boss, ticket.Start{Of: ticket.Of{Ticket: id}})
	return id + "@1"
}

func (r *rig) assignment(id string) ticket.Assignment {
	r.t.Helper()
	s, err := r.scope.Refresh(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	a, ok := s.Assignment(id)
	if !ok {
		r.t.Fatalf("no assignment %s", id)
	}
	return a
}

func (r *rig) ticket(id string) ticket.Ticket {
	r.t.Helper()
	t, ok := r.scope.State().Ticket(id)
	if !ok {
		r.t.Fatalf("no ticket %s", id)
	}
	return t
}

func (r *rig) bytes() []byte {
	r.t.Helper()
	s, err := r.scope.Refresh(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	data, err := s.Canonical()
	if err != nil {
		r.t.Fatal(err)
	}
	return data
}

func (r *rig) unchanged(what string, before []byte) {
	r.t.Helper()
	if after := r.bytes(); !bytes.Equal(before, after) {
		r.t.Errorf("%s changed the scope:\n%s\nwas\n%s", what, after, before)
	}
}

// stored is the child session as storage has it.
func (r *rig) stored(session string) host.Head {
	r.t.Helper()
	v, err := r.host.Show(context.Background(), session)
	if err != nil || v.Head.Child == nil {
		r.t.Fatalf("session %s: %+v, %v; want a child", session, v.Head.Child, err)
	}
	return v.Head
}

func (r *rig) artifact(hash string) string {
	r.t.Helper()
	data, err := scope.NewArtifacts(r.store, scope.Config{}).Get(context.Background(), hash)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

// says is a provider that answers with one text; during, if not nil, runs before it.
func says(text string, during func(ctx context.Context)) plugin.Provider {
	return plugin.FuncProvider{Name: "says", Fn: func(ctx context.Context, _ plugin.Session, _ *plugin.Request, emit func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
		if during != nil {
			during(ctx)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := emit(pluginapi.Chunk{Type: pluginapi.ChunkText, Text: text}); err != nil {
			return nil, err
		}
		return &pluginapi.ProviderResult{Message: pluginapi.Message{Text: text}, Finish: pluginapi.FinishStop}, nil
	}}
}

func local(p plugin.Provider) child.Local {
	return child.Local{Spec: host.RunSpec{Iterations: 1, Rounds: 3, Provider: p, Model: "a-model"}}
}

func needsLinux(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("process children need Linux")
	}
}
