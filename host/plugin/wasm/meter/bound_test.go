package meter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// refuseAfter grants a quantum n times and then refuses; asked counts.
func refuseAfter(n int, asked *int) refill {
	return func(context.Context, int64) int64 {
		if *asked++; *asked > n {
			return meter.Refuse
		}
		return meter.Quantum
	}
}

var (
	endless     = body(op(loop, void), op(br, 0), op(end))
	callTree    = tree(30)
	fillForever = body(
		constI32(1023), op(0x40, 0, drop), // memory.grow
		op(loop, void),
		constI32(0), constI32(1), constI32(1024<<16), op(0xfc, 11, 0), // memory.fill
		op(br, 0), op(end))
	growForever = body(op(loop, void), constI32(1), op(0x40, 0, drop), op(br, 0), op(end))
)

// tree is functions that call the next one twice: 2^depth calls without a loop.
func tree(depth int) (bodies [][]byte) {
	for i := range depth {
		next := uleb(uint64(i + 1))
		bodies = append(bodies, body(op(call), next, op(call), next))
	}
	return append(bodies, body())
}

func TestWhatNeverEndsIsEndedWhenTheHostRefuses(t *testing.T) {
	const grants = 10
	for name, wasm := range map[string][]byte{
		"an endless loop":                          program(endless),
		"a loop-free call tree":                    program(callTree...),
		"a flood of memory.fill":                   program(fillForever),
		"a flood of memory.grow":                   program(growForever),
		"an endless loop in the start function":    startEndless(),
		"an endless loop in _initialize":           initializeEndless(),
		"mutual recursion through call_indirect":   indirectForever(),
		"a loop that is left and entered by br_if": program(body(op(block, void, loop, void), constI32(1), op(brIf, 0, br, 1, end, end))),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			var asked int
			rt := newRuntime(t, 1024, refuseAfter(grants, &asked))
			compiled, err := rt.CompileModule(ctx, rewrite(t, wasm))
			if err != nil {
				t.Fatal(err)
			}
			mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
			if err == nil {
				_, err = mod.ExportedFunction("f0").Call(ctx)
			}
			if err == nil || !strings.Contains(err.Error(), "unreachable") {
				t.Errorf("got %v, want the trap that ends a refused guest", err)
			}
			if asked != grants+1 {
				t.Errorf("the host was asked %d times, want %d: once for each grant and once for the refusal", asked, grants+1)
			}
		})
	}
}

func startEndless() []byte {
	return module(section(1, funcType(nil, nil)), section(3, op(0)), cat(op(8), sized(op(0))), section(10, endless))
}

func initializeEndless() []byte {
	return module(section(1, funcType(nil, nil)), section(3, op(0)), section(7, export("_initialize", 0, 0)), section(10, endless))
}

// indirectForever calls, from f0 in a loop, a function through the table.
func indirectForever() []byte {
	return module(
		section(1, funcType(nil, nil)),
		section(3, op(0), op(0)),
		section(4, op(0x70, 0, 1)),
		section(7, export("f0", 0, 0)),
		section(9, cat(op(0), constI32(0), op(end), vec(op(1)))),
		section(10, body(op(loop, void), constI32(0), op(0x11, 0, 0, br, 0, end)), body()),
	)
}

func TestWhatTheHostIsAskedFor(t *testing.T) {
	// With an empty tank every check asks, and owes exactly what it costs.
	for _, c := range []struct {
		name string
		wasm []byte
		want []int64
	}{
		{"an empty function costs its entry and its end", program(body()), []int64{2}},
		{"operators cost one unit each", program(body(op(nop, nop, nop))), []int64{5}},
		{"a callee pays for itself", program(body(op(call, 1, nop)), body(op(nop))), []int64{4, 3}},
		{"of two arms the longer one counts", program(body(constI32(1), op(if_, void, nop, else_, nop, nop, nop, end))), []int64{1 + 2 + 3 + 2}},
		{"an if without else may be skipped, and is paid", program(body(constI32(0), op(if_, void, nop, nop, end))), []int64{1 + 2 + 3 + 1}},
		{"what is behind a branch isn't reached", program(body(op(block, void, br, 0, nop, nop, nop, end))), []int64{1 + 1 + 1 + 1}},
		{"what is behind a return isn't reached", program(body(op(return_, nop, nop))), []int64{2}},
		{"the longest way to a label counts", program(body(op(block, void), constI32(0), op(brIf, 0, nop, nop, br, 0, end))), []int64{1 + 1 + 2 + 3 + 1}},
		{"a label is reached by br_if though the way to it is closed", program(body(op(block, void), constI32(1), op(brIf, 0, unreachable, end, nop, nop, nop))), []int64{1 + 3 + 3 + 1}},
		{
			"a jump table reaches all its labels", program(body(
				op(block, void, block, void), constI32(0), op(brTable, 1, 0, 1, end, nop, nop, nop, br, 0, end, nop))),
			[]int64{1 + 2 + 2 + 4 + 2},
		},
		{
			"a loop pays on every pass", program(cat(sized(cat(
				op(1, 1, i32), constI32(3), op(localSet, 0, loop, void), op(localGet, 0), constI32(-1), op(0x6a, localTee, 0, brIf, 0, end, end))))),
			[]int64{1 + 3 + 1, 7, 7, 7},
		},
		{"code behind a loop belongs to whom it follows", program(body(op(loop, void, nop, end, nop, nop))), []int64{1 + 1 + 2 + 1, 3}},
		{"code behind a loop that isn't left is free", program(body(op(block, void, loop, void, br, 1, end, nop, nop, end))), []int64{1 + 2 + 1, 2}},
		{"memory.fill pays for its bytes, before it traps", program(body(constI32(0), constI32(0), constI32(1<<20), op(0xfc, 11, 0))), []int64{6, 1 << 20}},
		{"memory.fill beyond the memory traps before it pays for a piece", program(body(constI32(0), constI32(0), constI32(-1), op(0xfc, 11, 0))), []int64{6}},
		{"a large memory.fill pays piece by piece", program(body(constI32(39), op(0x40, 0, drop), constI32(0), constI32(0), constI32(5<<19), op(0xfc, 11, 0))), []int64{9, 40 << 16, 1 << 20, 1 << 20, 1 << 19}},
		{"memory.copy pays for its bytes", program(body(constI32(0), constI32(8), constI32(4096), op(0xfc, 10, 0, 0))), []int64{6, 4096}},
		{"memory.grow pays for all of the memory", program(body(constI32(2), op(0x40, 0, drop))), []int64{5, 3 << 16}},
		{"memory.grow that must fail is no negative cost", program(body(constI32(-1), op(0x40, 0, drop))), []int64{5, 1 << 48}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []int64
			rt := newRuntime(t, 1024, func(_ context.Context, left int64) int64 {
				got = append(got, -left)
				return 0
			})
			mod := instantiate(t, rt, rewrite(t, c.wasm))
			_, err := mod.ExportedFunction("f0").Call(context.Background())
			if err != nil && cause(err) != "out of bounds memory access" {
				t.Fatal(err)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("asked for %v, want %v", got, c.want)
			}
		})
	}
}

func TestBulkOperatorsOnSegmentsAndTablesPayForTheirLength(t *testing.T) {
	wasm := module(
		section(1, funcType(nil, nil)),
		section(3, op(0), op(0)),
		section(4, op(0x70, 0, 16)),
		section(5, op(0, 1)),
		section(7, export("f0", 0, 0)),
		section(9, cat(op(0), constI32(0), op(end), vec(op(1), op(1), op(0)))),
		cat(op(12), sized(op(1))),
		section(10, body(
			constI32(0), constI32(0), constI32(64), op(0xfc, 8, 0, 0), // memory.init
			constI32(4), constI32(0), constI32(3), op(0xfc, 14, 0, 0), // table.copy
			constI32(4), op(0x11, 0, 0), // the copied function 1
			op(0xfc, 9, 0),                                            // data.drop
			constI32(0), constI32(0), constI32(9), op(0xfc, 12, 0, 0), // table.init of a dropped segment traps
		), body()),
		section(11, cat(op(1), text(strings.Repeat("x", 64)))),
	)
	var got []int64
	rt := newRuntime(t, 1, func(_ context.Context, left int64) int64 {
		got = append(got, -left)
		return 0
	})
	_, err := instantiate(t, rt, rewrite(t, wasm)).ExportedFunction("f0").Call(context.Background())
	if cause(err) != "invalid table access" {
		t.Errorf("got %v, want the trap of table.init", err)
	}
	if want := []int64{1 + 4 + 4 + 2 + 16 + 1 + 4 + 1, 64, 3, 2, 9}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("asked for %v, want %v", got, want)
	}
}

// A guest that calls its host again and again asks as often as one that does not.
func TestCallsOfTheHostCostMoreThanAnOperator(t *testing.T) {
	calls := 0
	asked := 0
	rt := newRuntime(t, 1, refuseAfter(1, &asked))
	_, err := rt.NewHostModuleBuilder("host").NewFunctionBuilder().WithFunc(func() { calls++ }).Export("f").Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	wasm := module(section(1, funcType(nil, nil)), section(2, cat(text("host"), text("f"), op(0, 0))), section(3, op(0)),
		section(7, export("f0", 0, 1)), section(10, body(op(loop, void, call, 0, br, 0, end))))
	_, err = instantiate(t, rt, rewrite(t, wasm)).ExportedFunction("f0").Call(context.Background())
	if cause(err) != "unreachable" {
		t.Errorf("got %v, want the meter's trap", err)
	}
	if most := int(meter.Quantum / 64); calls > most || calls < most/2 {
		t.Errorf("the host was called %d times in a grant, want nearly %d", calls, most)
	}
}

// Costs of a function that would not fit into its check stay at the most that does.
func TestCostsDoNotOverflow(t *testing.T) {
	many := make([]byte, 0, 4<<20)
	for range 2 << 20 {
		many = append(many, call, 0)
	}
	wasm := module(section(1, funcType(nil, nil)), section(2, cat(text("host"), text("f"), op(0, 0))), section(3, op(0)),
		section(7, export("f0", 0, 1)), section(10, body(many)))
	out := rewrite(t, wasm)
	if !strings.Contains(string(out), "\xff\xff\xff\x3f") {
		t.Error("the check does not cost 2^27 - 1")
	}
}
