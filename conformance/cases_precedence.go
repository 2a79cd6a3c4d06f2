package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

func precedenceCases() []Case {
	return []Case{
		core("S-2/error-precedence", "Where several errors apply to a commit, the one that the port names first is returned.", errorPrecedence),
		core("S-2/errors-name-key-and-operation", "Errors name the key and the operation.", errorsNameKey),
	}
}

// errorPrecedence gives a commit every fault of a list from some place on; the
// fault at that place must be the answer.
func errorPrecedence(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("faults"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 3); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	type try struct {
		key   store.Key
		fence store.Fence
		c     store.Commit
	}
	faults := []struct {
		name  string
		kind  error
		apply func(*try)
	}{
		{"invalid id", store.ErrInvalidID, func(t *try) { t.key.ID = "" }},
		{"too large", store.ErrTooLarge, func(t *try) { t.c.Head = filled(e.limits().HeadBytes + 1) }},
		{"no such record", store.ErrNotFound, func(t *try) {
			if t.key.ID != "" {
				t.key.ID = "not there"
			}
		}},
		{"reused commit id", store.ErrCommitIDReused, func(t *try) { t.c.ID = a.last.ID }},
		{"stale fence", store.ErrFenced, func(t *try) { t.fence.Generation = e.UUID() }},
		{"older revision", store.ErrConflict, func(t *try) { t.c.After.Revision--; t.c.After.Chain = "" }},
		{"durability out of reach", store.ErrNotDurable, func(t *try) { t.c.Require = outOfReach }},
	}
	var bad []error
	for first := range faults {
		t := try{key: a.key, fence: a.fence, c: a.commit()}
		for i := len(faults) - 1; i >= first; i-- {
			faults[i].apply(&t)
		}
		_, err := s.Commit(ctx, t.key, t.fence, t.c)
		at := fmt.Sprintf("a commit with %q and every fault after it", faults[first].name)
		kinds := []error{faults[first].kind}
		bad = append(bad, wantKind(at, err, kinds...))
		if faults[first].kind != store.ErrNotDurable { // see S-5: it may be applied then
			bad = append(bad, expectUntouched(ctx, s, at, a.key, before))
		}
	}
	return errors.Join(bad...)
}

func errorsNameKey(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("named"))
	if err != nil {
		return err
	}
	missing := &actor{e: e, s: s, key: e.Key("missing"), fence: a.fence, mark: a.mark}
	var bad []error
	for _, c := range missing.calls() {
		if c.name == "create" {
			continue
		}
		err := c.do(ctx, s)
		got := asError(err)
		bad = append(bad, wantKind(c.name, err, store.ErrNotFound), wantEqual(c.name+": key in the error", got.Key, missing.key), wantEqual(c.name+": the operation is named", got.Op != "", true))
	}
	return errors.Join(bad...)
}
