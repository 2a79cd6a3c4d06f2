package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

func faultCases() []Case {
	return []Case{
		core("S-3/nth-call-fails", "A writer that repeats a failed call ends with every commit applied exactly once, whichever call fails, before or after the store did it, or cut in between.", nthCallFails),
		core("S-4/nth-commit-unknown", "A writer that resolves a commit of unknown outcome ends with every commit applied exactly once, whichever commit it is.", nthCommitUnknown),
	}
}

// script is a small life of one record, written as a careful host would write
// it: a failed call is repeated with the same commit id.
func script(ctx context.Context, e *Env, s store.Store, key store.Key) (heads int, err error) {
	const tries = 3
	again := func(what string, do func() error) error {
		var err error
		for range tries {
			if err = do(); err == nil {
				return nil
			}
		}
		return failf("%s, tried %d times: want success, got %w", what, tries, err)
	}
	a := &actor{e: e, s: s, key: key}
	first := a.commit()
	if err := again("create", func() error {
		ack, err := s.Create(ctx, key, first)
		if err == nil {
			a.took(first, ack)
		}
		return err
	}); err != nil {
		return 0, err
	}
	// A lost answer of acquire leaves the record held by nobody who knows: force.
	if err := again("acquire", func() error { return a.acquire(ctx, e.force()) }); err != nil {
		return 0, err
	}
	for range 3 {
		c := a.commit()
		if err := again("commit", func() error { _, err := a.send(ctx, c); return err }); err != nil {
			return 0, err
		}
	}
	err = again("release", func() error {
		err := s.Release(ctx, key, a.fence)
		if errors.Is(err, store.ErrFenced) {
			return nil // the answer of a release that worked was lost
		}
		return err
	})
	return a.n, err
}

func nthCallFails(ctx context.Context, e *Env) error {
	inner, err := e.Open(ctx)
	if err != nil {
		return err
	}
	for _, when := range []When{Before, After, Torn} {
		// n grows until the script ends without being struck: then every call has failed once.
		for n, more := 1, true; more; n++ {
			f := NewFaulty(inner, Fault{Nth: n, When: when})
			key := e.Key(fmt.Sprintf("call %d fails %s", n, when))
			heads, err := script(ctx, e, f.Store(), key)
			if err == nil {
				err = exactlyOnce(ctx, inner, key, heads)
			}
			if err != nil {
				return failf("call %d fails %s: %w", n, when, err)
			}
			more = f.Struck() > 0
		}
	}
	return nil
}

// exactlyOnce checks that the log of key is entries 1 to n, each once and in order.
func exactlyOnce(ctx context.Context, s store.Store, key store.Key, n int) error {
	got, err := look(ctx, s, key)
	if err != nil {
		return err
	}
	bad := []error{
		wantEqual("log entries", len(got.log), n),
		wantBytes("head", got.record.Head, []byte(fmt.Sprintf(`{"n":%d}`, n))),
		wantEqual("fence", got.record.Fence, store.Fence{}),
	}
	for i := range min(len(got.log), n) {
		bad = append(bad, wantBytes(fmt.Sprintf("entry %d", i+1), got.log[i].Data, []byte(fmt.Sprintf(`{"entry":%d}`, i+1))))
	}
	return errors.Join(bad...)
}

func nthCommitUnknown(ctx context.Context, e *Env) error {
	inner, err := e.Open(ctx)
	if err != nil {
		return err
	}
	const commits = 4
	for _, when := range []When{Before, After, Torn} {
		for n := 1; n <= commits; n++ {
			at := fmt.Sprintf("commit %d of unknown outcome, failed %s", n, when)
			a, err := e.owner(ctx, inner, e.Key(at))
			if err != nil {
				return err
			}
			f := NewFaulty(inner, Fault{Op: OpCommit, Nth: n, When: when, Err: &store.Error{Op: "commit", Key: a.key, Kind: store.ErrUnknownOutcome}})
			a.s = f.Store()
			for range commits {
				if err := commitOrResolve(ctx, a, when); err != nil {
					return failf("%s: %w", at, err)
				}
			}
			if f.Struck() != 1 {
				return failf("%s: want 1 fault, got %d", at, f.Struck())
			}
			if err := wantOK("release", a.s.Release(ctx, a.key, a.fence)); err != nil {
				return failf("%s: %w", at, err)
			}
			if err := exactlyOnce(ctx, inner, a.key, commits+1); err != nil {
				return failf("%s: %w", at, err)
			}
		}
	}
	return nil
}

// commitOrResolve makes one commit of a durable, once: an unknown outcome is
// resolved, and what will never apply is sent again under a new id.
func commitOrResolve(ctx context.Context, a *actor, when When) error {
	c := a.commit()
	_, err := a.send(ctx, c)
	if !errors.Is(err, store.ErrUnknownOutcome) {
		return err
	}
	out, err := a.s.Resolve(ctx, a.key, a.fence, c.ID)
	if err != nil {
		return failf("resolve: want success, got %w", err)
	}
	if when != Torn { // only the store knows whether a torn commit applied
		if err := wantEqual("applied", out.Applied, when == After); err != nil {
			return err
		}
	}
	a.took(c, out.Ack)
	if out.Applied {
		return nil
	}
	again := c
	again.ID, again.After = a.e.UUID(), a.mark
	_, err = a.send(ctx, again)
	return err
}
