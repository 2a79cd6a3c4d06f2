package conformance

import (
	"context"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

// actor is one writer of one record through one handle: it knows its fence and
// the state it builds on, as a host does.
type actor struct {
	e     *Env
	s     store.Store
	key   store.Key
	fence store.Fence
	mark  store.Mark
	last  store.Commit // the latest commit it made
	ack   store.Ack    // and its answer
	n     int
}

// create makes the record of key with one entry, and an actor without a fence.
func (e *Env) create(ctx context.Context, s store.Store, key store.Key) (*actor, error) {
	a := &actor{e: e, s: s, key: key}
	c := a.commit()
	ack, err := s.Create(ctx, key, c)
	if err != nil {
		return nil, failf("create %q: %w", key.ID, err)
	}
	a.took(c, ack)
	if key.Kind.Shared() {
		a.fence = store.Fence{Birth: ack.Mark.Birth}
	}
	return a, nil
}

// owner makes the record of key and acquires it.
func (e *Env) owner(ctx context.Context, s store.Store, key store.Key) (*actor, error) {
	a, err := e.create(ctx, s, key)
	if err != nil {
		return nil, err
	}
	return a, a.acquire(ctx, e.claim())
}

// claim is a polite claim by a new run.
func (e *Env) claim() store.Claim {
	return store.Claim{Owner: "conformance", Run: e.UUID()}
}

// force is a take-over by a new run.
func (e *Env) force() store.Claim {
	c := e.claim()
	c.Force = true
	return c
}

func (a *actor) acquire(ctx context.Context, c store.Claim) error {
	f, r, err := a.s.Acquire(ctx, a.key, c)
	if err != nil {
		return failf("acquire %q: %w", a.key.ID, err)
	}
	a.fence, a.mark = f, r.Mark
	return nil
}

// rival takes the record over through s and returns the new owner.
func (a *actor) rival(ctx context.Context, s store.Store) (*actor, error) {
	b := &actor{e: a.e, s: s, key: a.key, n: 1000}
	return b, b.acquire(ctx, a.e.force())
}

// commit is the next commit of a, not sent yet: a head and one entry that say
// which one it is.
func (a *actor) commit() store.Commit {
	a.n++
	return a.with([]byte(fmt.Sprintf(`{"n":%d}`, a.n)), []byte(fmt.Sprintf(`{"entry":%d}`, a.n)))
}

// with is the next commit of a with the given content.
func (a *actor) with(head []byte, entries ...[]byte) store.Commit {
	return store.Commit{ID: a.e.UUID(), After: a.mark, Head: head, Entries: entries}
}

// send sends c, and builds on it when it is acknowledged.
func (a *actor) send(ctx context.Context, c store.Commit) (store.Ack, error) {
	ack, err := a.s.Commit(ctx, a.key, a.fence, c)
	if err == nil {
		a.took(c, ack)
	}
	return ack, err
}

// advance commits n times.
func (a *actor) advance(ctx context.Context, n int) error {
	for range n {
		if _, err := a.send(ctx, a.commit()); err != nil {
			return failf("commit %q after revision %d: %w", a.key.ID, a.mark.Revision, err)
		}
	}
	return nil
}

func (a *actor) took(c store.Commit, ack store.Ack) {
	a.mark, a.last, a.ack = ack.Mark, c, ack
}

func (a *actor) look(ctx context.Context) (snapshot, error) { return look(ctx, a.s, a.key) }
