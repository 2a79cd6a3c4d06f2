package meter_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

const (
	mib   = 1 << 20
	pages = 64 // 4 MiB
)

// bulk exports memory.fill and memory.copy as functions of three parameters.
func bulk(memories ...[]byte) []byte {
	code := func(operator ...byte) []byte {
		return body(op(localGet, 0, localGet, 1, localGet, 2), operator)
	}
	return module(
		section(1, funcType(op(i32, i32, i32), nil)),
		section(3, op(0), op(0)),
		section(5, memories...),
		section(7, export("fill", 0, 0), export("copy", 0, 1), export("memory", 2, 0)),
		section(10, code(0xfc, 11, 0), code(0xfc, 10, 0, 0)),
	)
}

func TestFillingAndCopyingInPiecesIsLikeDoingItAtOnce(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, pages, always(meter.Quantum))
	wasm := bulk(op(0, pages))
	plain, metered := instantiate(t, rt, wasm), instantiate(t, rt, rewrite(t, wasm))
	pattern := make([]byte, pages<<16)
	for i := range pattern {
		pattern[i] = byte(i*7 + i>>8*13 + i>>16)
	}
	for _, c := range []struct {
		name      string
		export    string
		dst, b, n uint32
	}{
		{"nothing", "fill", 0, 1, 0},
		{"nothing at the end", "fill", 4 * mib, 1, 0},
		{"nothing beyond the end", "fill", 4*mib + 1, 1, 0},
		{"a little", "fill", 3, 1, 100},
		{"one piece", "fill", 3, 0x1ff, mib},
		{"one piece and a byte", "fill", 3, 2, mib + 1},
		{"everything", "fill", 0, 3, 4 * mib},
		{"up to the end", "fill", mib + 1, 4, 3*mib - 1},
		{"a byte beyond the end", "fill", mib + 1, 5, 3 * mib},
		{"around the end of the addresses", "fill", 1<<32 - mib, 6, 2 * mib},
		{"as much as can be said", "fill", 0, 7, 1<<32 - 1},
		{"a little", "copy", 3, 50, 100},
		{"one piece", "copy", 2*mib + 3, 1, mib},
		{"apart, upwards", "copy", 2 * mib, 5, 2*mib - 7},
		{"apart, downwards", "copy", 5, 2 * mib, 2*mib - 7},
		{"onto itself", "copy", 9, 9, 3 * mib},
		{"overlapping by all but a byte, upwards", "copy", 1, 0, 4*mib - 1},
		{"overlapping by all but a byte, downwards", "copy", 0, 1, 4*mib - 1},
		{"overlapping by half, upwards", "copy", mib + 3, 11, 2*mib + 5},
		{"overlapping by half, downwards", "copy", 11, mib + 3, 2*mib + 5},
		{"to a byte beyond the end", "copy", mib + 1, 0, 3 * mib},
		{"from a byte beyond the end", "copy", 0, mib + 1, 3 * mib},
		{"around the end of the addresses", "copy", 1<<32 - mib, 0, 2 * mib},
		{"from around the end of the addresses", "copy", 0, 1<<32 - mib, 2 * mib},
		{"as much as can be said", "copy", 0, 0, 1<<32 - 1},
	} {
		t.Run(c.export+" "+c.name, func(t *testing.T) {
			plain.Memory().Write(0, pattern)
			metered.Memory().Write(0, pattern)
			_, want := plain.ExportedFunction(c.export).Call(ctx, uint64(c.dst), uint64(c.b), uint64(c.n))
			_, got := metered.ExportedFunction(c.export).Call(ctx, uint64(c.dst), uint64(c.b), uint64(c.n))
			if cause(got) != cause(want) {
				t.Errorf("ends with %q, want %q", cause(got), cause(want))
			}
			wantMem, _ := plain.Memory().Read(0, pages<<16)
			gotMem, _ := metered.Memory().Read(0, pages<<16)
			if !bytes.Equal(gotMem, wantMem) {
				t.Error("the memories differ")
			}
		})
	}
}

func TestALargeFillIsEndedBetweenTwoPieces(t *testing.T) {
	var asked int
	rt := newRuntime(t, pages, refuseAfter(2, &asked))
	mod := instantiate(t, rt, rewrite(t, bulk(op(0, pages))))
	_, err := mod.ExportedFunction("fill").Call(context.Background(), 0, 1, 4*mib)
	if cause(err) != "unreachable" {
		t.Errorf("got %v, want the trap that ends a refused guest", err)
	}
	// Each of the two grants lasts for a piece, and each debt is forgiven.
	mem, _ := mod.Memory().Read(0, pages<<16)
	if filled := bytes.Count(mem, []byte{1}); filled == 0 || filled > 3*mib {
		t.Errorf("%d bytes were filled, want some and at most three pieces", filled)
	}
}

func TestBulkOperatorsWithoutMemoryAreRefused(t *testing.T) {
	wasm := module(
		section(1, funcType(nil, nil)), section(3, op(0)),
		section(10, body(constI32(0), constI32(0), constI32(0), op(0xfc, 11, 0))),
	)
	if _, err := meter.Rewrite(wasm, meter.Options{}); !errors.Is(err, meter.ErrMalformed) {
		t.Errorf("got %v, want %v", err, meter.ErrMalformed)
	}
}
