package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/loophost/loophost/host/store"
)

func leaseCases() []Case {
	return []Case{
		core("S-8/owner-outlives-its-lease", "An owner whose lease ran out still commits while nobody else acquired: clocks don't decide who may write.", outlivesLease),
		core("S-8/gone-owner", "A record whose owner is gone can be acquired without force: at once where the store knows who lives, else when the lease ran out.", goneOwner),
		core("S-8/renewed-lease", "A renewed lease keeps others out.", renewedLease),
		core("S-8/expiry-alone-fences-nobody", "It is the next acquire that fences an owner, not the end of its lease.", expiryFencesNobody),
	}
}

// shortest is a lease that has run out when the answer arrives, or soon after.
const shortest = time.Nanosecond

func outlivesLease(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("expired"))
	if err != nil {
		return err
	}
	claim := e.claim()
	claim.TTL = shortest
	if err := a.acquire(ctx, claim); err != nil {
		return err
	}
	if c, ok := e.Harness.(LeaseClock); ok {
		c.AdvanceLeases(time.Hour)
	}
	for i := range 3 {
		if err := a.advance(ctx, 1); err != nil {
			return failf("commit %d after the lease ran out: %w", i+1, err)
		}
	}
	r, err := s.Load(ctx, a.key)
	return errors.Join(
		wantOK("load", err), wantEqual("fence after the lease ran out", r.Fence, a.fence),
		wantOK("renew after the lease ran out", s.Renew(ctx, a.key, a.fence, time.Minute)),
		wantOK("release", s.Release(ctx, a.key, a.fence)),
	)
}

// acquireWhenFree tries until the record is not busy any more: a lease of one
// nanosecond may be rounded up to the store's smallest one.
func (e *Env) acquireWhenFree(ctx context.Context, s store.Store, key store.Key, c store.Claim) (store.Fence, error) {
	ctx, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		f, _, err := s.Acquire(ctx, key, c)
		if !errors.Is(err, store.ErrBusy) {
			return f, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return f, err
		}
	}
}

func goneOwner(ctx context.Context, e *Env) error {
	s, gone, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	old, err := e.create(ctx, gone, e.Key("left behind"))
	if err != nil {
		return err
	}
	claim := e.claim()
	knows := e.Store.Has("liveness")
	if !knows {
		claim.TTL = shortest
	}
	if err := errors.Join(old.acquire(ctx, claim), old.advance(ctx, 1)); err != nil {
		return err
	}
	if knows {
		if err := wantOK("close the owner's handle", gone.Close()); err != nil {
			return err
		}
	}
	now := &actor{e: e, s: s, key: old.key, mark: old.mark, n: 1000}
	if now.fence, err = e.acquireWhenFree(ctx, s, old.key, e.claim()); err != nil {
		return failf("acquire after the owner is gone: want success, got %w", err)
	}
	if err := now.advance(ctx, 1); err != nil {
		return err
	}
	before, err := now.look(ctx)
	if err != nil {
		return err
	}
	old.s = s // it wakes up, with another handle where its own is closed
	return errors.Join(old.refusedUnder(ctx, "after somebody else acquired", old.fence, before), now.advance(ctx, 1))
}

func renewedLease(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("renewed"))
	if err != nil {
		return err
	}
	claim := e.claim()
	claim.TTL = shortest
	if err := a.acquire(ctx, claim); err != nil {
		return err
	}
	if err := wantOK("renew for an hour", s.Renew(ctx, a.key, a.fence, time.Hour)); err != nil {
		return err
	}
	_, _, first := other.Acquire(ctx, a.key, e.claim())
	bad := []error{wantKind("acquire beside a renewed lease", first, store.ErrBusy)}
	if c, ok := e.Harness.(LeaseClock); ok {
		c.AdvanceLeases(59 * time.Minute)
		_, _, err := other.Acquire(ctx, a.key, e.claim())
		bad = append(bad, wantKind("acquire 59 minutes into an hour's lease", err, store.ErrBusy))
		c.AdvanceLeases(2 * time.Minute)
		if !e.Store.Has("liveness") {
			_, _, err = other.Acquire(ctx, a.key, e.claim())
			bad = append(bad, wantOK("acquire after the hour", err))
			return errors.Join(bad...)
		}
	}
	return errors.Join(append(bad, a.advance(ctx, 1))...)
}

func expiryFencesNobody(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	old, err := e.create(ctx, s, e.Key("paused"))
	if err != nil {
		return err
	}
	claim := e.claim()
	claim.TTL = shortest
	if err := errors.Join(old.acquire(ctx, claim), old.advance(ctx, 1)); err != nil {
		return err
	}
	now, err := old.rival(ctx, other) // by force: some stores know that the owner lives
	if err != nil {
		return err
	}
	before, err := now.look(ctx)
	if err != nil {
		return err
	}
	return errors.Join(old.refusedUnder(ctx, "after the take-over", old.fence, before), now.advance(ctx, 1))
}
