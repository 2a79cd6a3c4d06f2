package conformance

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

// workload is one thing that every backend is measured at.
type workload struct {
	name  string
	bytes int // of payload in one step; what the floor writes as well
	// start prepares and returns one step.
	start func(ctx context.Context, e *Env, bytes int) (func() error, error)
}

func workloads() []workload {
	return []workload{
		{"commit-1KiB", 1 << 10, commitLoad(0)},
		{"commit-4KiB", 4 << 10, commitLoad(0)},
		{"commit-4KiB-after-2000-entries", 4 << 10, commitLoad(2000)},
		{"acquire-release", 256, ownerLoad},
		{"load", 0, loadLoad},
		{"read-tail-of-2000", 0, tailLoad},
	}
}

// benched is a record with its owner and a log of n small entries. Its ids are
// random: a benchmark makes more commits than a seed should have to name.
func benched(ctx context.Context, e *Env, n int) (*actor, error) {
	s, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	a, err := e.owner(ctx, s, e.Key("bench "+uuid.NewString()))
	if err != nil {
		return nil, err
	}
	const batch = 200
	for left := n; left > 0; left -= batch {
		entries := make([][]byte, min(left, batch))
		for i := range entries {
			entries[i] = []byte(`{"small":"entry"}`)
		}
		if _, err := a.send(ctx, a.with([]byte("h"), entries...)); err != nil {
			return nil, fmt.Errorf("prepare a log of %d entries: %w", n, err)
		}
	}
	return a, nil
}

func commitLoad(entries int) func(context.Context, *Env, int) (func() error, error) {
	return func(ctx context.Context, e *Env, bytes int) (func() error, error) {
		a, err := benched(ctx, e, entries)
		if err != nil {
			return nil, err
		}
		head, entry := filled(256), filled(int64(bytes-256))
		return func() error {
			_, err := a.send(ctx, store.Commit{ID: uuid.NewString(), After: a.mark, Head: head, Entries: [][]byte{entry}})
			return err
		}, nil
	}
}

func ownerLoad(ctx context.Context, e *Env, _ int) (func() error, error) {
	a, err := benched(ctx, e, 0)
	if err != nil {
		return nil, err
	}
	if err := a.s.Release(ctx, a.key, a.fence); err != nil {
		return nil, err
	}
	return func() error {
		if err := a.acquire(ctx, e.claim()); err != nil {
			return err
		}
		return a.s.Release(ctx, a.key, a.fence)
	}, nil
}

func loadLoad(ctx context.Context, e *Env, _ int) (func() error, error) {
	a, err := benched(ctx, e, 0)
	if err != nil {
		return nil, err
	}
	return func() error { _, err := a.s.Load(ctx, a.key); return err }, nil
}

func tailLoad(ctx context.Context, e *Env, _ int) (func() error, error) {
	a, err := benched(ctx, e, 2000)
	if err != nil {
		return nil, err
	}
	return func() error {
		p, err := a.s.ReadLog(ctx, a.key, a.ack.LogLength-9, 10)
		if err == nil && len(p.Entries) != 10 {
			err = failf("read the tail: want 10 entries, got %d", len(p.Entries))
		}
		return err
	}, nil
}

// floorOf is the harness's floor, or an append in the temporary directory.
func floorOf(ctx context.Context, h Harness) (Floor, error) {
	if f, ok := h.(Floorer); ok {
		return f.Floor(ctx)
	}
	return AppendFloor("")
}
