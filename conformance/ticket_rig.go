package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// inTickets is a case of the tickets profile about tickets and stop receipts.
func inTickets(id, sentence string, run func(context.Context, *Env) error, needs ...Need) Case {
	return Case{ID: id, Sentence: sentence, Profile: ProfileTickets, Needs: needs, Run: run}
}

// scopePoll is how often a handle looks for what others committed, where a case waits for it.
const scopePoll = 10 * time.Millisecond

// ada is the person of every case.
var ada = ticket.User("ada")

// scopeRig is a worker of one ticket scope on a handle of its own, which can be made
// to fail, beside another handle onto the same data, through which the case looks.
type scopeRig struct {
	e       *Env
	binding ticket.Binding
	faulty  *Faulty // under host, scope and runner
	other   store.Store
	eyes    *host.Host // over other
	host    *host.Host
	scope   *scope.Scope
	runner  *child.Runner
	id      string // of this start of the host
	n       int    // commands given
}

// owns registers a record as this case's own, to be removed after it.
func (e *Env) owns(k store.Key) store.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keys[k] = true
	return k
}

// generations are how many attempts at one ticket a case makes at most.
const generations = 4

// bind names a scope that only this case uses, and registers what belongs to it: its
// record, its coordinator's, and the children of a few attempts at its tickets.
func (e *Env) bind(id string, tickets ...string) ticket.Binding {
	key := e.SharedKey(id)
	e.owns(store.Key{Kind: scope.KindCoordinator, ID: key.ID})
	b := ticket.Binding{ScopeID: key.ID, SupervisorSessionID: e.loopSession(id + "-boss"), BindingRevision: 1}
	for _, t := range tickets {
		for n := uint64(1); n <= generations; n++ {
			spec := ticket.DispatchSpec{Binding: b, Assignment: ticket.AssignmentID(t, n), Generation: n}
			e.owns(store.SessionKey(ticket.ChildSessionID(spec.DispatchKey())))
		}
	}
	return b
}

// answer is a result that nobody else gives: who removes it takes nothing of theirs.
func (e *Env) answer(words string) string {
	text := words + ", of " + e.name
	e.owns(store.Key{Kind: scope.KindArtifact, ID: ticket.NameArtifact([]byte(text)).SHA256})
	return text
}

// newScope makes a scope with the given tickets to come, and a worker of it.
func (e *Env) newScope(ctx context.Context, id string, tickets ...string) (*scopeRig, error) {
	r := &scopeRig{e: e, binding: e.bind(id, tickets...)}
	return r, r.join(ctx, scope.Create)
}

// another is a second worker of the scope, or one that was started anew.
func (r *scopeRig) another(ctx context.Context) (*scopeRig, error) {
	b := &scopeRig{e: r.e, binding: r.binding, n: r.n + 1000}
	return b, b.join(ctx, scope.Open)
}

// restarted ends the worker and its handles, and starts another one.
func (r *scopeRig) restarted(ctx context.Context) (*scopeRig, error) {
	r.scope.Close()
	if err := errors.Join(r.faulty.Store().Close(), r.other.Close()); err != nil {
		return nil, failf("close the handles: %w", err)
	}
	return r.another(ctx)
}

type openScope func(context.Context, store.Store, ticket.Binding, scope.Config) (*scope.Scope, error)

func (r *scopeRig) join(ctx context.Context, open openScope) error {
	own, other, err := r.e.Open2(ctx)
	if err != nil {
		return err
	}
	r.faulty, r.other = NewFaulty(own), other
	if r.eyes, err = host.New(host.Config{Store: other, Owner: "conformance, looking", SignalPoll: never}); err != nil {
		return err
	}
	if r.host, err = host.New(host.Config{Store: r.faulty.Store(), Owner: "conformance", SignalPoll: never}); err != nil {
		return err
	}
	if r.scope, err = open(ctx, r.faulty.Store(), r.binding, scope.Config{Poll: scopePoll}); err != nil {
		return failf("open the scope: %w", err)
	}
	r.e.atEnd(r.scope.Close)
	if r.id == "" {
		r.id = "worker-" + r.e.UUID()
	}
	r.runner, err = child.New(child.Config{Host: r.host, Scope: r.scope, ID: r.id})
	return err
}

func (r *scopeRig) key() store.Key { return store.Key{Kind: store.KindScope, ID: r.binding.ScopeID} }

func (r *scopeRig) boss() ticket.Principal {
	return ticket.Supervisor(r.binding.SupervisorSessionID)
}

// do gives a command under an operation id of its own.
func (r *scopeRig) do(ctx context.Context, p ticket.Principal, req ticket.Request) (ticket.Receipt, error) {
	r.n++
	return r.scope.Do(ctx, ticket.Command{OperationID: fmt.Sprintf("operation-%d", r.n), Principal: p, Request: req})
}

// give gives commands of the supervisor that must be carried out.
func (r *scopeRig) give(ctx context.Context, requests ...ticket.Request) error {
	for _, req := range requests {
		if _, err := r.do(ctx, r.boss(), req); err != nil {
			return failf("%s: want it carried out, got %w", req.Type(), err)
		}
	}
	return nil
}

func contractOf(attempts uint64) ticket.Contract {
	return ticket.Contract{Title: "a title", Objective: "prove it", Acceptance: []string{"it is proved"}, Retry: ticket.Retry{MaxAttempts: attempts}}
}

func newTicket(id string, attempts uint64) ticket.Create {
	return ticket.Create{Tickets: []ticket.NewTicket{{ID: id, Contract: contractOf(attempts)}}}
}

func of(id string) ticket.Of { return ticket.Of{Ticket: id} }

// start makes a ticket and starts it, and gives its assignment.
func (r *scopeRig) start(ctx context.Context, id string, attempts uint64) (string, error) {
	return ticket.AssignmentID(id, 1), r.give(ctx, newTicket(id, attempts), ticket.MarkReady{Of: of(id)}, ticket.Start{Of: of(id)})
}

// assignment is what the scope holds of an assignment now.
func (r *scopeRig) assignment(ctx context.Context, id string) (ticket.Assignment, error) {
	s, err := r.scope.Refresh(ctx)
	if err != nil {
		return ticket.Assignment{}, failf("read the scope: %w", err)
	}
	a, ok := s.Assignment(id)
	if !ok {
		return a, failf("want the assignment %s, got none", id)
	}
	return a, nil
}

// child is the session of an assignment's child, as the other handle reads it.
func (r *scopeRig) child(ctx context.Context, session string) (host.Child, error) {
	v, err := r.eyes.Show(ctx, session)
	if err != nil {
		return host.Child{}, failf("read the child: %w", err)
	}
	if v.Head.Child == nil {
		return host.Child{}, failf("want the session %s to be a child, got another one", session)
	}
	return *v.Head.Child, nil
}

// wantActor compares the status of a child's actor.
func (r *scopeRig) wantActor(ctx context.Context, what, session string, want ticket.ActivationStatus) error {
	c, err := r.child(ctx, session)
	if err != nil {
		return err
	}
	if c.Actor == nil {
		return failf("%s: want an actor that is %s, got none", what, want)
	}
	return wantEqual(what+": the actor", c.Actor.Status, want)
}

// still is what a refusal and a replay must leave as it is.
type still struct {
	record    snapshot
	canonical []byte
	counts    ticket.Counts
	stopped   map[string]bool
}

// still looks at the scope: its record, and what a handle that is opened now makes of it.
func (r *scopeRig) still(ctx context.Context) (out still, err error) {
	if out.record, err = look(ctx, r.other, r.key()); err != nil {
		return out, err
	}
	s, err := scope.Open(ctx, r.other, r.binding, scope.Config{})
	if err != nil {
		return out, failf("open the scope anew: %w", err)
	}
	defer s.Close()
	out.canonical, err = s.State().Canonical()
	out.counts, out.stopped = s.State().Counts(), map[string]bool{}
	for a := range s.State().Assignments() {
		out.stopped[a.ID] = a.ProcessStopped
	}
	return out, err
}

// wantStill checks that all of it is as it was, byte for byte, in the store and in the
// worker's own handle.
func (r *scopeRig) wantStill(ctx context.Context, what string, before still) error {
	now, err := r.still(ctx)
	if err != nil {
		return failf("%s: %w", what, err)
	}
	bad := []error{
		before.record.untouched("after "+what, now.record),
		wantBytes("the scope, opened anew after "+what, now.canonical, before.canonical),
		wantEqual("submissions after "+what, now.counts.Submissions, before.counts.Submissions),
	}
	for id, stopped := range before.stopped {
		bad = append(bad, wantEqual("process_stopped of "+id+" after "+what, now.stopped[id], stopped))
	}
	s, err := r.scope.Refresh(ctx)
	if err != nil {
		return errors.Join(append(bad, failf("read the scope after %s: %w", what, err))...)
	}
	mine, err := s.Canonical()
	return errors.Join(append(bad, err, wantBytes("the worker's state after "+what, mine, before.canonical))...)
}

// refused checks that something is refused as kind, says words, and changes nothing.
func (r *scopeRig) refused(ctx context.Context, what string, kind ticket.Kind, words string, try func() error) error {
	before, err := r.still(ctx)
	if err != nil {
		return err
	}
	return errors.Join(wantRefusal(what, try(), kind, words), r.wantStill(ctx, what, before))
}

// wantRefusal checks the kind of a refusal, and that it says words.
func wantRefusal(what string, err error, kind ticket.Kind, words string) error {
	switch {
	case err == nil:
		return failf("%s: want %s, got success", what, kind)
	case !errors.Is(err, kind):
		return failf("%s: want %s, got %w", what, kind, err)
	case !strings.Contains(err.Error(), words):
		return failf("%s: want a refusal that says %q, got %w", what, words, err)
	}
	for _, k := range ticket.Kinds() {
		if k != kind && errors.Is(err, k) {
			return failf("%s: want %s alone, got %w", what, kind, err)
		}
	}
	return nil
}

// wantReceipt compares two receipts by their bytes.
func wantReceipt(what string, got, want ticket.Receipt) error {
	a, errA := got.Canonical()
	b, errB := want.Canonical()
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return failf("%s: want the receipt %s, got %s", what, b, a)
	}
	return nil
}

// artifact reads a content by its hash through the other handle.
func (r *scopeRig) artifact(ctx context.Context, hash string) ([]byte, error) {
	return scope.NewArtifacts(r.other, scope.Config{}).Get(ctx, hash)
}
