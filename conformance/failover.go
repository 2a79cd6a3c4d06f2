package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/loophost/loophost/host/store"
)

// Failover lets the suite end the node that serves the store, so that another takes its
// place: the profile cluster. A harness may have one node that is replaced again and
// again.
type Failover interface {
	// Copies is the number of replicas that a commit must reach (Durability.Replicas)
	// for its record to outlive the next failover. 0: every acknowledged commit does.
	Copies() int
	// FailOver ends the serving node as its death would, and returns when the heir
	// serves and has an heir of its own. Handles that were open stay in use: for a
	// while their calls may answer ErrUnavailable and ErrUnknownOutcome.
	FailOver(ctx context.Context) error
}

// LossyFailover lets the suite lose what was acknowledged by one node alone (S-6).
type LossyFailover interface {
	Failover
	// Isolate keeps what is written from now on away from the heir, up to the next
	// FailOver, while the serving node goes on acknowledging what asks for no replica.
	Isolate(ctx context.Context) error
}

// failoverPatience is how long a handle may take to find the heir.
const failoverPatience = time.Minute

// patient is a handle whose calls are repeated while the store can't be reached, or the
// outcome of a call that may be repeated is unknown: commits keep their id (S-3).
type patient struct{ store.Store }

func patiently[T any](ctx context.Context, try func() (T, error), also ...error) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, failoverPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		v, err := try()
		if kind := store.KindOf(err); kind == nil || kind != store.ErrUnavailable && !slices.Contains(also, kind) {
			return v, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return v, err
		}
	}
}

func (p patient) Create(ctx context.Context, key store.Key, c store.Commit) (store.Ack, error) {
	return patiently(ctx, func() (store.Ack, error) { return p.Store.Create(ctx, key, c) }, store.ErrUnknownOutcome)
}

func (p patient) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	return patiently(ctx, func() (store.Ack, error) { return p.Store.Commit(ctx, key, f, c) }, store.ErrUnknownOutcome)
}

func (p patient) Resolve(ctx context.Context, key store.Key, f store.Fence, id string) (store.Outcome, error) {
	return patiently(ctx, func() (store.Outcome, error) { return p.Store.Resolve(ctx, key, f, id) }, store.ErrUnknownOutcome)
}

func (p patient) Signal(ctx context.Context, key store.Key, sig store.Signal) error {
	_, err := patiently(ctx, func() (struct{}, error) { return struct{}{}, p.Store.Signal(ctx, key, sig) }, store.ErrUnknownOutcome)
	return err
}

func (p patient) Acquire(ctx context.Context, key store.Key, c store.Claim) (store.Fence, store.Record, error) {
	var fence store.Fence
	rec, err := patiently(ctx, func() (rec store.Record, err error) {
		fence, rec, err = p.Store.Acquire(ctx, key, c)
		return rec, err
	})
	return fence, rec, err
}

func (p patient) Renew(ctx context.Context, key store.Key, f store.Fence, ttl time.Duration) error {
	_, err := patiently(ctx, func() (struct{}, error) { return struct{}{}, p.Store.Renew(ctx, key, f, ttl) }, store.ErrUnknownOutcome)
	return err
}

func (p patient) Release(ctx context.Context, key store.Key, f store.Fence) error {
	_, err := patiently(ctx, func() (struct{}, error) { return struct{}{}, p.Store.Release(ctx, key, f) })
	return err
}

func (p patient) Delete(ctx context.Context, key store.Key, f store.Fence) error {
	_, err := patiently(ctx, func() (struct{}, error) { return struct{}{}, p.Store.Delete(ctx, key, f) })
	return err
}

func (p patient) Load(ctx context.Context, key store.Key) (store.Record, error) {
	return patiently(ctx, func() (store.Record, error) { return p.Store.Load(ctx, key) })
}

func (p patient) ReadLog(ctx context.Context, key store.Key, from uint64, limit int) (store.LogPage, error) {
	return patiently(ctx, func() (store.LogPage, error) { return p.Store.ReadLog(ctx, key, from, limit) })
}

func (p patient) List(ctx context.Context, q store.Query) (store.ListPage, error) {
	return patiently(ctx, func() (store.ListPage, error) { return p.Store.List(ctx, q) })
}

// nodes is the harness as a case of the profile cluster uses it.
type nodes struct {
	e    *Env
	s    store.Store // the handle of the owner under test
	fail Failover
}

func (e *Env) nodes(ctx context.Context) (nodes, error) {
	fail, ok := e.Harness.(Failover)
	if !ok {
		return nodes{}, failf("the harness is no conformance.Failover")
	}
	s, err := e.openPatient(ctx)
	return nodes{e, s, fail}, err
}

// openPatient opens a handle that is patient.
func (e *Env) openPatient(ctx context.Context) (store.Store, error) {
	return patiently(ctx, func() (store.Store, error) {
		s, err := e.Open(ctx)
		return patient{s}, err
	})
}

// copied requires of c what outlives a failover.
func (n nodes) copied(c store.Commit) store.Commit {
	c.Require = store.Durability{Level: n.e.Store.Durability.Level, Replicas: n.fail.Copies()}
	return c
}

// owner makes a record and owns it; the heir has both.
func (n nodes) owner(ctx context.Context, key store.Key) (*actor, error) {
	a, err := n.e.owner(ctx, n.s, key)
	if err != nil {
		return nil, err
	}
	return a, n.advance(ctx, a, 1)
}

// advance commits times; each commit outlives a failover, and so does what was written
// to the record before it.
func (n nodes) advance(ctx context.Context, a *actor, times int) error {
	for range times {
		c := n.copied(a.commit())
		ack, err := a.send(ctx, c)
		if err != nil {
			return failf("commit %q after revision %d: %w", a.key.ID, c.After.Revision, err)
		}
		if !ack.Durability.Reaches(c.Require) {
			return failf("commit %q: want it acknowledged with %s, got %s", a.key.ID, c.Require, ack.Durability)
		}
	}
	return nil
}

// failOver ends the serving node, and returns when the heir serves.
func (n nodes) failOver(ctx context.Context) error {
	if err := n.fail.FailOver(ctx); err != nil {
		return failf("fail over: %w", err)
	}
	return nil
}

// isolate lets the next failover lose what is written from now on.
func (n nodes) isolate(ctx context.Context) error {
	lossy, ok := n.fail.(LossyFailover)
	if !ok {
		return failf("the harness is no conformance.LossyFailover")
	}
	if err := lossy.Isolate(ctx); err != nil {
		return failf("isolate: %w", err)
	}
	return nil
}

// inFailover is a case of the profile cluster that loses nothing.
func inFailover(id, sentence string, run func(context.Context, *Env, nodes) error, needs ...Need) Case {
	return Case{ID: id, Sentence: sentence, Profile: ProfileCluster, Needs: append([]Need{NeedFailover}, needs...), Run: func(ctx context.Context, e *Env) error {
		n, err := e.nodes(ctx)
		if err != nil {
			return err
		}
		return run(ctx, e, n)
	}}
}

// inLoss is a case of the profile cluster in which a failover loses what was acknowledged.
func inLoss(id, sentence string, run func(context.Context, *Env, nodes) error) Case {
	return inFailover(id, sentence, run, NeedLoss)
}
