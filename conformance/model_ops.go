package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/loophost/loophost/host/store"
)

func modelCases() []Case {
	return []Case{
		core("S-1/model", "Random operations by several handles give exactly the answers and the state of a small model of the port.", modelCase),
	}
}

// modelOp is one operation in a form that means something in every state: x, y
// and z choose among what the state offers. So any part of a sequence is a
// sequence, and a failing one can be shortened.
type modelOp struct {
	what        string
	key, handle int
	x, y, z     int
}

func (o modelOp) String() string {
	return fmt.Sprintf("%s key %d handle %d (%d %d %d)", o.what, o.key, o.handle, o.x, o.y, o.z)
}

const (
	modelRuns    = 6
	modelLength  = 80
	modelKeys    = 2
	modelHandles = 3
	// modelShrinkTime bounds the search for a shorter failing sequence.
	modelShrinkTime = 10 * time.Second
)

// modelWeights is how often each operation is drawn.
var modelWeights = []struct {
	what string
	n    int
}{{"create", 10}, {"acquire", 14}, {"commit", 40}, {"repeat", 10}, {"resolve", 8}, {"renew", 3}, {"release", 6}, {"signal", 8}, {"delete", 3}}

func drawOps(r *rand.Rand, n int) []modelOp {
	total := 0
	for _, w := range modelWeights {
		total += w.n
	}
	ops := make([]modelOp, n)
	for i := range ops {
		at := r.IntN(total)
		for _, w := range modelWeights {
			if at -= w.n; at < 0 {
				ops[i].what = w.what
				break
			}
		}
		ops[i].key, ops[i].handle = r.IntN(modelKeys), r.IntN(modelHandles)
		ops[i].x, ops[i].y, ops[i].z = r.IntN(1000), r.IntN(1000), r.IntN(1000)
	}
	return ops
}

func modelCase(ctx context.Context, e *Env) error {
	var handles []store.Store
	for range modelHandles {
		s, err := e.Open(ctx)
		if err != nil {
			return err
		}
		handles = append(handles, s)
	}
	attempt := 0
	play := func(ops []modelOp) (int, error) {
		attempt++
		w := &world{e: e, handles: handles, prefix: fmt.Sprintf("attempt %d record ", attempt), records: make([]modelRecord, modelKeys)}
		for i, op := range ops {
			if err := w.step(ctx, op); err != nil {
				return i, err
			}
		}
		return len(ops), nil
	}
	for run := range modelRuns {
		ops := drawOps(e.Rand, modelLength)
		i, err := play(ops)
		if err == nil {
			continue
		}
		ops, err = shrink(ctx, ops[:i+1], err, play)
		var b strings.Builder
		for n, op := range ops {
			fmt.Fprintf(&b, "\n  %2d. %s", n+1, op)
		}
		return failf("sequence %d, after %d operations: %w\nthe operations:%s", run+1, len(ops), err, b.String())
	}
	return nil
}

// shrink leaves out what the failure doesn't need: halves first, single
// operations last.
func shrink(ctx context.Context, ops []modelOp, err error, play func([]modelOp) (int, error)) ([]modelOp, error) {
	end := time.Now().Add(modelShrinkTime)
	for size := len(ops) / 2; size >= 1; size /= 2 {
		for from := 0; from+size <= len(ops); {
			if ctx.Err() != nil || time.Now().After(end) {
				return ops, err
			}
			shorter := slices.Delete(slices.Clone(ops), from, from+size)
			if i, e := play(shorter); e != nil {
				ops, err = shorter[:i+1], e
			} else {
				from += size
			}
		}
	}
	return ops, err
}
