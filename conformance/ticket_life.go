package conformance

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// ticketLife is the life of one ticket from the making of its scope to its acceptance,
// the same every time: rows 1 to 12 of the life cycle of tickets.md.
type ticketLife struct {
	Binding ticket.Binding `json:"binding"`
	// Host names the worker's start. Where Coordinated, it coordinates the scope, and
	// the attempt is to run inside it.
	Host        string        `json:"host"`
	Coordinated bool          `json:"coordinated"`
	Answer      string        `json:"answer"`            // of the child
	Process     *processChild `json:"process,omitempty"` // nil: the child is a local task
}

// fact is a step of a life that was acknowledged, and must never be lost.
type fact struct {
	Step   string             `json:"step"`
	Run    string             `json:"run,omitempty"`    // from stepAdmitted on
	Status ticket.ChildStatus `json:"status,omitempty"` // how the run ended, from stepStopped on
}

// The steps of a life.
const (
	stepScope     = "scope"
	stepRole      = "role"
	stepCreated   = "created"
	stepReady     = "ready"
	stepStarted   = "started"
	stepAdmitted  = "admitted"
	stepStopped   = "stopped" // written to the child's record and published
	stepSaved     = "saved"
	stepSubmitted = "submitted"
	stepFinished  = "finished"
	stepAccepted  = "accepted"
)

// lifeTicket is the ticket of every life, and lifeAttempts how often it may be tried.
const (
	lifeTicket   = "work"
	lifeAttempts = generations
)

// newLife is a life in a scope that only this case uses.
func (e *Env) newLife(id string) ticketLife {
	return ticketLife{Binding: e.bind(id, lifeTicket), Host: "worker-" + uuid.NewString(), Answer: e.answer("the result of " + id)}
}

func (l ticketLife) boss() ticket.Principal { return ticket.Supervisor(l.Binding.SupervisorSessionID) }

// step is a command of a life, under the id that makes it happen once.
type step struct {
	name    string
	request ticket.Request
}

// steps are row 1 of the life cycle; host is where the attempt is to run.
func (l ticketLife) steps(host string) []step {
	start := ticket.Start{Of: of(lifeTicket)}
	if l.Coordinated {
		start.Host = host
	}
	return []step{
		{stepCreated, newTicket(lifeTicket, lifeAttempts)},
		{stepReady, ticket.MarkReady{Of: of(lifeTicket)}},
		{stepStarted, start},
	}
}

// command is a step's command.
func (l ticketLife) command(s step) ticket.Command {
	return ticket.Command{OperationID: "life-" + s.name, Principal: l.boss(), Request: s.request}
}

func acceptance(assignment string) step {
	return step{stepAccepted, ticket.Accept{Of: of(lifeTicket), Submission: assignment}}
}

// live is the life. It tells of each step that was acknowledged before it takes the
// next one; called is told when a local task's agent is called. It stops at the first
// error, and gives back what it holds, as far as that can be done.
func (l ticketLife) live(ctx context.Context, st store.Store, tell func(fact), called func()) (err error) {
	s, err := scope.Create(ctx, st, l.Binding, scope.Config{Poll: never})
	if err != nil {
		return err
	}
	defer s.Close()
	tell(fact{Step: stepScope})
	h, err := host.New(host.Config{Store: st, Owner: "conformance, a life", SignalPoll: never})
	if err != nil {
		return err
	}
	runner, err := child.New(child.Config{Host: h, Scope: s, ID: l.Host})
	if err != nil {
		return err
	}
	if l.Coordinated {
		role, err := s.Coordinate(ctx, scope.Claim{Host: l.Host})
		if err != nil {
			return err
		}
		defer role.Close()
		tell(fact{Step: stepRole})
	}
	for _, x := range l.steps(l.Host) {
		if _, err := s.Do(ctx, l.command(x)); err != nil {
			return err
		}
		tell(fact{Step: x.name})
	}
	task, err := runner.Prepare(ctx, ticket.AssignmentID(lifeTicket, 1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, task.Abandon(context.WithoutCancel(ctx))) }() // after Finish it is nothing
	admitted := func(step string) fact { return fact{step, task.RunID(), task.Outcome().Status} }
	tell(admitted(stepAdmitted))
	if err := task.Track(ctx.Done()); err != nil {
		return err
	}
	for _, x := range []struct {
		name string
		take func() error
	}{
		{stepStopped, func() error { return task.Execute(ctx, l.work(called)) }},
		{stepSaved, func() error { return task.Save(ctx) }},
		{stepSubmitted, func() error { return l.submit(ctx, task) }},
		{stepFinished, func() error { return task.Finish(ctx) }},
	} {
		if err := x.take(); err != nil {
			return err
		}
		tell(admitted(x.name))
	}
	if _, err := s.Do(ctx, l.command(acceptance(task.Assignment()))); err != nil {
		return err
	}
	tell(admitted(stepAccepted))
	return nil
}

// submit takes the result checkpoint of a run that must have a result.
func (l ticketLife) submit(ctx context.Context, task *child.Task) error {
	_, ok, err := task.Checkpoint(ctx)
	if err == nil && !ok {
		err = failf("the run ended without a result: %s, %w", task.Outcome().Status, orNone(task.Outcome().Err))
	}
	return err
}

func (l ticketLife) work(called func()) child.Work {
	if l.Process != nil {
		return l.Process.work()
	}
	a := &agent{text: l.Answer, during: func(context.Context) { called() }}
	return a.work()
}

// has reports whether a step was acknowledged.
func has(facts []fact, step string) bool {
	return slices.ContainsFunc(facts, func(f fact) bool { return f.Step == step })
}
