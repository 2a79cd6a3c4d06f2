package meter_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

func TestModulesThatAreRefused(t *testing.T) {
	types := section(1, funcType(nil, nil), funcType(op(i32), op(i32)))
	fn := section(3, op(0))
	one := func(code ...[]byte) []byte { return module(types, fn, section(10, body(code...))) }
	huge := op(0xff, 0xff, 0xff, 0xff, 0x0f)
	for _, c := range []struct {
		name string
		wasm []byte
		want error
	}{
		{"nothing", nil, meter.ErrMalformed},
		{"a component", op(0, 'a', 's', 'm', 0x0d, 0, 1, 0), meter.ErrMalformed},
		{"a section longer than the module", module(op(1, 10, 0)), meter.ErrMalformed},
		{"a section with bytes left over", module(op(1, 2, 0, 0)), meter.ErrMalformed},
		{"a section twice", module(types, types), meter.ErrMalformed},
		{"sections out of order", module(fn, types), meter.ErrMalformed},
		{"an unknown section", module(op(13, 1, 0)), meter.ErrUnsupported},
		{"a length of six bytes", module(op(1, 0x80, 0x80, 0x80, 0x80, 0x80, 0)), meter.ErrMalformed},
		{"a length above 32 bits", module(op(1, 0x80, 0x80, 0x80, 0x80, 0x10)), meter.ErrMalformed},
		{"four billion types", module(cat(op(1), sized(huge))), meter.ErrMalformed},
		{"four billion parameters", module(section(1, cat(op(0x60), huge, op(0)))), meter.ErrMalformed},
		{"four billion functions in an element segment", module(types, fn, section(4, op(0x70, 0, 1)), section(9, cat(op(1, 0), huge)), section(10, body())), meter.ErrMalformed},
		{"four billion data segments", module(cat(op(11), sized(huge))), meter.ErrMalformed},
		{"four billion locals", module(types, fn, section(10, sized(cat(op(1), huge, op(i32, end))))), meter.ErrUnsupported},
		{"locals that overflow when added up", module(types, fn, section(10, sized(cat(op(2), huge, op(i32), huge, op(i32, end))))), meter.ErrUnsupported},
		{"a jump table of four billion labels", one(op(brTable), huge), meter.ErrMalformed},
		{"a table of a billion elements", module(section(4, cat(op(0x70, 0), uleb(1<<30)))), meter.ErrTooLarge},
		{"more bodies than functions", module(types, fn, section(10, body(), body())), meter.ErrMalformed},
		{"functions without bodies", module(types, fn), meter.ErrMalformed},
		{"a body without end", module(types, fn, section(10, sized(op(0, nop)))), meter.ErrMalformed},
		{"operators behind the last end", one(op(end, nop)), meter.ErrMalformed},
		{"else without if", one(op(else_)), meter.ErrMalformed},
		{"a second else", one(constI32(0), op(if_, void, else_, else_, end)), meter.ErrMalformed},
		{"a hundred thousand nested blocks", one(bytes.Repeat(op(block, void), 100_000)), meter.ErrUnsupported},

		{"a call of the function that asks the host", one(op(call, 1)), meter.ErrMalformed},
		{"a call of the function behind it", one(op(call, 2)), meter.ErrMalformed},
		{"a read of the fuel", one(op(globalGet, 0, drop)), meter.ErrMalformed},
		{"a write of the fuel", one(op(0x42, 0, globalSet, 0)), meter.ErrMalformed},
		{"an export of the fuel", module(section(7, export("x", 3, 0))), meter.ErrMalformed},
		{"an export of an added function", module(types, fn, section(7, export("x", 0, 1)), section(10, body())), meter.ErrMalformed},
		{"an added function as start", module(types, fn, cat(op(8), sized(op(1))), section(10, body())), meter.ErrMalformed},
		{"an added function in a table", module(types, fn, section(4, op(0x70, 0, 1)), section(9, cat(op(0), constI32(0), op(end, 1, 1))), section(10, body())), meter.ErrMalformed},
		{"an indirect call of an added type", one(constI32(0), op(0x11, 2, 0)), meter.ErrMalformed},
		{"a block of an added type", one(op(block, 2, end)), meter.ErrMalformed},
		{"a read of the scratch local", one(op(localGet, 0), constI32(0), constI32(0), op(0xfc, 11, 0)), meter.ErrMalformed},
		{"a branch out of the function", one(op(br, 1)), meter.ErrMalformed},
		{"an import of the meter's function", module(section(1, funcType(op(i64), op(i64))), section(2, cat(text(meter.ImportModule), text(meter.ImportName), op(0, 0)))), meter.ErrReserved},
		{"another import from the meter's module", module(section(2, cat(text(meter.ImportModule), text("x"), op(3, i32, 0)))), meter.ErrReserved},

		{"reference types", one(op(0xd0, 0x70, drop)), meter.ErrUnsupported},
		{"table.grow", one(op(0xfc, 15, 0)), meter.ErrUnsupported},
		{"a vector operator in a long form", one(op(0xfd, 0x8c, 0x80, 0x00)), meter.ErrUnsupported},
		{"a vector constant cut short", one(op(0xfd, 12)), meter.ErrMalformed},
		{"relaxed vectors", one(op(0xfd, 0x80, 0x02)), meter.ErrUnsupported},
		{"atomics", one(op(0xfe, 0, 2, 0)), meter.ErrUnsupported},
		{"tail calls", one(op(0x12, 0)), meter.ErrUnsupported},
		{"exceptions", one(op(0x06, void)), meter.ErrUnsupported},
		{"a second memory", module(section(5, op(0, 1), op(0, 1))), meter.ErrUnsupported},
		{"a shared memory", module(section(5, op(3, 1, 1))), meter.ErrUnsupported},
		{"a 64-bit memory", module(section(5, op(4, 1))), meter.ErrUnsupported},
		{"a memory argument with a memory index", one(constI32(0), op(0x28, 0x42, 0, 0, drop)), meter.ErrUnsupported},
		{"an element segment of expressions", module(types, fn, section(4, op(0x70, 0, 1)), section(9, cat(op(4), constI32(0), op(end, 1, 0xd2, 0, end))), section(10, body())), meter.ErrUnsupported},
		{"an extended constant expression", module(section(6, cat(op(i32, 0), constI32(1), constI32(1), op(0x6a, end)))), meter.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := meter.Rewrite(c.wasm, meter.Options{})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v (%d bytes), want %v", err, len(out), c.want)
			}
			var e *meter.Error
			if !errors.As(err, &e) {
				t.Errorf("got %T, want *meter.Error", err)
			}
		})
	}
}

func TestAnUnknownOperatorIsNamedWithItsPlace(t *testing.T) {
	wasm := module(section(1, funcType(nil, nil)), section(3, op(0)), section(10, body(op(nop, 0xfe, 12))))
	_, err := meter.Rewrite(wasm, meter.Options{})
	var e *meter.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want *meter.Error", err)
	}
	if want := bytes.IndexByte(wasm, 0xfe); e.Opcode != 0xfe || e.Offset != want {
		t.Errorf("got opcode %#x at %d, want 0xfe at %d", e.Opcode, e.Offset, want)
	}
	if got := err.Error(); !strings.Contains(got, "0xfe") {
		t.Errorf("got %q, want the opcode in it", got)
	}
}

func TestTheOutputIsBounded(t *testing.T) {
	// Two bytes of input for each loop, twenty of output.
	loops := program(body(bytes.Repeat(op(loop, void, end), 50_000)))
	_, err := meter.Rewrite(loops, meter.Options{MaxBytes: 500_000})
	if !errors.Is(err, meter.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, meter.ErrTooLarge)
	}
	out, err := meter.Rewrite(loops, meter.Options{MaxBytes: 2_000_000})
	if err != nil || len(out) > 2_000_000 {
		t.Errorf("got %d bytes, %v, want less than the limit", len(out), err)
	}
	for limit := 1; limit < 400; limit++ {
		out, err := meter.Rewrite(program(body()), meter.Options{MaxBytes: limit})
		if err == nil && len(out) > limit || err != nil && !errors.Is(err, meter.ErrTooLarge) {
			t.Errorf("limit %d: got %d bytes, %v", limit, len(out), err)
		}
	}
}

func TestCustomSectionsAreKeptUnlessTheyWouldBeWrong(t *testing.T) {
	wasm := module(
		custom("first", "kept-1"),
		section(1, funcType(nil, nil)),
		custom("loophost.manifest", "kept-2"),
		section(3, op(0)),
		section(10, body()),
		custom("name", "dropped-1"),
		custom(".debug_line", "dropped-2"),
		custom("producers", "kept-3"),
	)
	out := rewrite(t, wasm)
	var last int
	for _, want := range []string{"kept-1", "kept-2", "kept-3"} {
		at := bytes.Index(out, []byte(want))
		if at <= last {
			t.Errorf("%s is at %d, want it behind %d", want, at, last)
		}
		last = at
	}
	if bytes.Contains(out, []byte("dropped")) {
		t.Errorf("got a stale section in %q", out)
	}
}

func TestTheInputIsNeitherChangedNorShared(t *testing.T) {
	wasm := program(body(op(loop, void, end)))
	before := bytes.Clone(wasm)
	out := rewrite(t, wasm)
	clear(out)
	if !bytes.Equal(wasm, before) {
		t.Error("the input changed")
	}
}

func TestIndexesOfImportedAndDefinedFunctionsStayApart(t *testing.T) {
	// host.a and host.b are imported; f calls b, then itself is in the table
	// beside a, and is exported, as is a.
	types := section(1, funcType(nil, op(i32)))
	wasm := module(types,
		section(2, cat(text("host"), text("a"), op(0, 0)), cat(text("host"), text("b"), op(0, 0))),
		section(3, op(0), op(0)),
		section(4, op(0x70, 0, 4)),
		section(7, export("a", 0, 0), export("b", 0, 1), export("f", 0, 2), export("g", 0, 3)),
		section(9, cat(op(0), constI32(0), op(end), vec(op(0), op(1), op(2)))),
		section(10,
			body(op(call, 0, call, 1, 0x6a)),                                         // f: a + b
			body(constI32(0), op(0x11, 0, 0), constI32(2), op(0x11, 0, 0), op(0x6a)), // g: table[0] + table[2]
		),
	)
	ctx := context.Background()
	rt := newRuntime(t, 1, always(meter.Quantum))
	_, err := rt.NewHostModuleBuilder("host").
		NewFunctionBuilder().WithFunc(func() int32 { return 3 }).Export("a").
		NewFunctionBuilder().WithFunc(func() int32 { return 50 }).Export("b").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mod := instantiate(t, rt, rewrite(t, wasm))
	for name, want := range map[string]uint64{"a": 3, "b": 50, "f": 53, "g": 56} {
		got, err := mod.ExportedFunction(name).Call(ctx)
		if err != nil || got[0] != want {
			t.Errorf("%s() = %v, %v, want %d", name, got, err, want)
		}
	}
}
