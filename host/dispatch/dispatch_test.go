package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/dispatch"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
	"github.com/loophost/loophost/pluginapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	binding = ticket.Binding{ScopeID: "s", SupervisorSessionID: "boss", BindingRevision: 1}
	boss    = ticket.Supervisor("boss")
)

const sweep = 20 * time.Millisecond

// place is one store, and what works over it as a process of its own would.
type place struct {
	t      *testing.T
	memory *memstore.Memory
	scope  *scope.Scope
	n      atomic.Int64
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, memory: memstore.New()}
	st := p.open()
	var err error
	if p.scope, err = scope.Create(t.Context(), st, binding, scope.Config{Poll: 5 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.scope.Close)
	return p
}

func (p *place) open() store.Store {
	st := p.memory.Open()
	p.t.Cleanup(func() { _ = st.Close() })
	return st
}

func (p *place) give(by ticket.Principal, r ticket.Request) {
	p.t.Helper()
	if _, err := p.scope.Do(context.Background(), ticket.Command{OperationID: strconv.FormatInt(p.n.Add(1), 10), Principal: by, Request: r}); err != nil {
		p.t.Fatalf("%s: %v", r.Type(), err)
	}
}

func (p *place) create(ready bool, c ticket.Contract, id string, dependsOn ...string) {
	p.t.Helper()
	if c.Title == "" {
		c.Title, c.Objective, c.Acceptance = "title", "objective of "+id, []string{"it is there"}
	}
	p.give(boss, ticket.Create{Tickets: []ticket.NewTicket{{ID: id, Contract: c, DependsOn: dependsOn}}})
	if ready {
		p.give(boss, ticket.MarkReady{Of: ticket.Of{Ticket: id}})
	}
}

// until waits for a state of the scope.
func (p *place) until(what string, is func(*ticket.State) bool) *ticket.State {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	s, err := p.scope.Refresh(ctx)
	for err == nil && !is(s) {
		s, err = p.scope.Wait(ctx, s.Seq())
	}
	if err != nil {
		p.t.Fatalf("%s did not happen: %v", what, err)
	}
	return s
}

func all(state ticket.TicketState) func(*ticket.State) bool {
	return func(s *ticket.State) bool {
		for t := range s.Tickets() {
			if t.State != state {
				return false
			}
		}
		return true
	}
}

// machine is a coordinator and a worker over one handle, as one process is.
type machine struct {
	coordinator *dispatch.Coordinator
	worker      *dispatch.Worker
	id          string
}

func (p *place) machine(policy dispatch.Policy, slots int, work child.Work) *machine {
	p.t.Helper()
	st := p.open()
	id := uuid.NewString()
	h, err := host.New(host.Config{Store: st, Owner: id})
	if err != nil {
		p.t.Fatal(err)
	}
	sc, err := scope.Open(p.t.Context(), st, binding, scope.Config{Poll: 5 * time.Millisecond})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(sc.Close)
	r, err := child.New(child.Config{Host: h, Scope: sc, ID: id + "/worker"})
	if err != nil {
		p.t.Fatal(err)
	}
	q := st.(store.Queue)
	return &machine{
		id:          id,
		coordinator: dispatch.NewCoordinator(dispatch.CoordinatorConfig{Scope: sc, Store: st, Queue: q, Runner: r, ID: id + "/coordinator", Policy: policy, Sweep: sweep}),
		worker:      dispatch.NewWorker(dispatch.WorkerConfig{Scope: sc, Store: st, Queue: q, Runner: r, Work: work, Name: id, Slots: slots, Sweep: sweep}),
	}
}

// run runs the machine until the test ends, or drain is called; ended waits for its end.
func (m *machine) run(t *testing.T) (drain, ended func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = m.coordinator.Run(ctx) }) // it ends with ctx
	group.Go(func() { m.worker.Run(ctx, context.Background()) })
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	return cancel, group.Wait
}

// answers is work whose answer is what say gives for the objective.
func answers(say func(ctx context.Context, objective string) (string, error)) child.Local {
	return child.Local{Spec: host.RunSpec{Iterations: 1, Rounds: 1, Provider: plugin.FuncProvider{
		Name: "answers",
		Fn: func(ctx context.Context, _ plugin.Session, req *plugin.Request, _ func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
			text, err := say(ctx, req.Messages[len(req.Messages)-1].Text)
			if err != nil {
				return nil, err
			}
			return &pluginapi.ProviderResult{Message: pluginapi.Message{Text: text}, Finish: pluginapi.FinishStop}, nil
		},
	}}}
}

func TestABatchIsDoneInItsOrder(t *testing.T) {
	p := newPlace(t)
	const n = 12
	for i := range n {
		var after []string
		if i >= 2 {
			after = []string{fmt.Sprint("t", i-2), fmt.Sprint("t", i/2)}
		}
		p.create(true, ticket.Contract{}, fmt.Sprint("t", i), slices.Compact(after)...)
	}
	var calls atomic.Int64
	work := answers(func(_ context.Context, objective string) (string, error) {
		calls.Add(1)
		return "did " + objective, nil
	})
	policy := dispatch.Policy{Start: true, Accept: true}
	for range 3 {
		p.machine(policy, 2, work).run(t)
	}
	s := p.until("all accepted", all(ticket.Accepted))
	if got := calls.Load(); got != n {
		t.Errorf("%d provider calls for %d tickets", got, n)
	}
	if c := s.Counts(); c.Assignments != n || c.Submissions != n || c.Intents != 0 {
		t.Errorf("got %+v", c)
	}
	for a := range s.Assignments() {
		if !a.ProcessStopped {
			t.Errorf("%s: its stop is not proved", a.ID)
		}
	}
}

// T-15: an attempt that fails is retried as its contract says, and then waits.
func TestAttemptsAreRetriedAsTheContractSays(t *testing.T) {
	p := newPlace(t)
	p.create(true, ticket.Contract{Title: "t", Objective: "o", Acceptance: []string{"x"}, Retry: ticket.Retry{MaxAttempts: 3}}, "a")
	var calls atomic.Int64
	m := p.machine(dispatch.Policy{Start: true}, 1, answers(func(context.Context, string) (string, error) {
		if calls.Add(1) < 3 {
			return "", &pluginapi.Failure{Kind: pluginapi.FailAuth, Message: "not yet"}
		}
		return "third time lucky", nil
	}))
	m.run(t)
	s := p.until("a submission", all(ticket.Submitted))
	if tk, _ := s.Ticket("a"); tk.Generation != 3 || tk.CurrentSubmission != "a@3" {
		t.Errorf("got %+v, want the third attempt's result, which nobody accepts by himself", tk)
	}
	p.give(ticket.User("ada"), ticket.Accept{Of: ticket.Of{Ticket: "a"}, Submission: "a@3"})

	p.create(true, ticket.Contract{}, "b")
	calls.Store(-10)
	p.until("b blocked", func(s *ticket.State) bool { b, ok := s.Ticket("b"); return ok && b.State == ticket.Blocked })
	if got := calls.Load(); got != -9 {
		t.Errorf("%d attempts at a ticket that allows one", got+10)
	}
}

// A result that can't be one ends the attempt, though its child completed (T-13).
func TestAnUnusableResultFailsItsAttempt(t *testing.T) {
	p := newPlace(t)
	p.create(true, ticket.Contract{}, "a")
	long := make([]byte, ticket.MaxArtifactBytes+1)
	for i := range long {
		long[i] = 'x'
	}
	p.machine(dispatch.Policy{Start: true}, 1, answers(func(context.Context, string) (string, error) { return string(long), nil })).run(t)
	s := p.until("the end of the attempt", all(ticket.Blocked))
	if a, _ := s.Assignment("a@1"); a.State != ticket.Failed || s.Counts().Submissions != 0 {
		t.Errorf("got %+v", a)
	}
}

// A contract that is revised before its attempt was admitted is not run as it was.
func TestARevisedContractIsNotRunAsItWas(t *testing.T) {
	p := newPlace(t)
	retry := ticket.Contract{Title: "t", Objective: "old", Acceptance: []string{"x"}, Retry: ticket.Retry{MaxAttempts: 2}}
	p.create(true, retry, "a")
	p.give(boss, ticket.Start{Of: ticket.Of{Ticket: "a"}})
	retry.Objective = "new"
	p.give(boss, ticket.Revise{Ticket: "a", Contract: &retry})
	var seen sync.Map
	p.machine(dispatch.Policy{Start: true, Accept: true}, 1, answers(func(_ context.Context, objective string) (string, error) {
		seen.Store(objective, true)
		return "done", nil
	})).run(t)
	p.until("all accepted", all(ticket.Accepted))
	if _, old := seen.Load("old"); old {
		t.Error("the old contract was run")
	}
}

// A worker that is told to end finishes what it has and takes no more; another one
// goes on.
func TestAWorkerDrains(t *testing.T) {
	p := newPlace(t)
	for i := range 4 {
		p.create(true, ticket.Contract{}, fmt.Sprint("t", i))
	}
	began, goOn := make(chan struct{}, 4), make(chan struct{})
	first := p.machine(dispatch.Policy{Start: true, Accept: true}, 1, answers(func(context.Context, string) (string, error) {
		began <- struct{}{}
		<-goOn
		return "done", nil
	}))
	drain, ended := first.run(t)
	<-began
	drain()
	close(goOn)
	ended()
	done := 0
	s, err := p.scope.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for a := range s.Assignments() {
		if a.Runtime != nil {
			if a.State != ticket.AssignmentSubmitted {
				t.Errorf("%s is %s: it was not finished", a.ID, a.State)
			}
			done++
		}
	}
	if done != 1 {
		t.Errorf("%d attempts by a worker of one slot that drained in its first", done)
	}
	p.machine(dispatch.Policy{Start: true, Accept: true}, 2, answers(func(context.Context, string) (string, error) { return "done", nil })).run(t)
	p.until("all accepted", all(ticket.Accepted))
}

// Whatever the queue loses is enqueued again from the scope.
func TestALostDispatchIsEnqueuedAgain(t *testing.T) {
	p := newPlace(t)
	p.create(true, ticket.Contract{}, "a")
	m := p.machine(dispatch.Policy{Start: true, Accept: true}, 1, answers(func(context.Context, string) (string, error) { return "done", nil }))
	if changed, err := m.coordinator.Pass(t.Context()); err != nil || !changed {
		t.Fatalf("got %v, %v; want a start", changed, err)
	}
	q := p.open().(store.Queue)
	leased, err := q.Lease(t.Context(), dispatch.QueueName("s"), "a thief", time.Minute, 1)
	if err != nil || len(leased) != 1 {
		t.Fatalf("got %v, %v; want the dispatch", leased, err)
	}
	if err := q.Done(t.Context(), dispatch.QueueName("s"), leased[0].Token); err != nil {
		t.Fatal(err)
	}
	p.machine(dispatch.Policy{Start: true, Accept: true}, 1, answers(func(context.Context, string) (string, error) { return "done", nil })).run(t)
	p.until("all accepted", all(ticket.Accepted))
}

func TestOneCoordinatorAtATime(t *testing.T) {
	p := newPlace(t)
	m, other := p.machine(dispatch.Policy{}, 1, child.Local{}), p.machine(dispatch.Policy{}, 1, child.Local{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		_ = m.coordinator.Run(ctx)
		close(ended)
	}()
	s := p.until("a coordinator", func(s *ticket.State) bool { return s.Authority().Epoch > 0 })
	if s.Authority().Coordinator != m.id+"/coordinator" {
		t.Errorf("got %+v", s.Authority())
	}
	if _, err := other.coordinator.Pass(t.Context()); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a second one: got %v, want %v", err, store.ErrBusy)
	}
	cancel()
	<-ended
	if _, err := other.coordinator.Pass(t.Context()); err != nil {
		t.Errorf("once the first gave it back: got %v, want none", err)
	}
	if s := p.scope.State(); s.Authority().Epoch != 1 {
		s, err := p.scope.Refresh(t.Context())
		if err != nil || s.Authority().Epoch != 2 {
			t.Errorf("got epoch %d, %v; want 2", s.Authority().Epoch, err)
		}
	}
}

// What was cancelled while it waited in the queue never runs.
func TestAQueuedTicketThatIsCancelledNeverRuns(t *testing.T) {
	p := newPlace(t)
	p.create(true, ticket.Contract{}, "a")
	p.create(true, ticket.Contract{}, "b")
	var ran sync.Map
	m := p.machine(dispatch.Policy{Start: true, Accept: true}, 1, answers(func(_ context.Context, objective string) (string, error) {
		ran.Store(objective, true)
		return "done", nil
	}))
	if _, err := m.coordinator.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.give(boss, ticket.Cancel{Of: ticket.Of{Ticket: "a"}})
	m.run(t)
	s := p.until("b accepted", func(s *ticket.State) bool { b, _ := s.Ticket("b"); return b.State == ticket.Accepted })
	if _, yes := ran.Load("objective of a"); yes {
		t.Error("the cancelled ticket was run")
	}
	if a, _ := s.Assignment("a@1"); a.State != ticket.AssignmentCancelled || a.Runtime != nil {
		t.Errorf("got %+v, want it cancelled and never admitted", a)
	}
}
