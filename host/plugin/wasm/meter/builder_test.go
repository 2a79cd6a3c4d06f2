package meter_test

import "encoding/binary"

// Hand-assembled modules: every piece is bytes, cat joins them.

const (
	i32, i64, f32, f64 = 0x7f, 0x7e, 0x7d, 0x7c

	// Operators that tests name; the others are written as numbers.
	unreachable = 0x00
	nop         = 0x01
	block       = 0x02
	loop        = 0x03
	if_         = 0x04
	else_       = 0x05
	end         = 0x0b
	br          = 0x0c
	brIf        = 0x0d
	brTable     = 0x0e
	return_     = 0x0f
	call        = 0x10
	drop        = 0x1a
	localGet    = 0x20
	localSet    = 0x21
	localTee    = 0x22
	globalGet   = 0x23
	globalSet   = 0x24
	i32Const    = 0x41
	void        = 0x40
)

func cat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func op(b ...byte) []byte { return b }

func uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func sleb(v int64) []byte {
	var out []byte
	for v < -64 || v > 63 {
		out = append(out, byte(v)&0x7f|0x80)
		v >>= 7
	}
	return append(out, byte(v)&0x7f)
}

func constI32(v int32) []byte { return cat(op(i32Const), sleb(int64(v))) }

func sized(b []byte) []byte { return cat(uleb(uint64(len(b))), b) }

func text(s string) []byte { return sized([]byte(s)) }

func vec(items ...[]byte) []byte { return cat(uleb(uint64(len(items))), cat(items...)) }

func section(id byte, items ...[]byte) []byte { return cat(op(id), sized(vec(items...))) }

func custom(name, content string) []byte {
	return cat(op(0), sized(cat(text(name), []byte(content))))
}

func module(sections ...[]byte) []byte {
	return cat([]byte("\x00asm\x01\x00\x00\x00"), cat(sections...))
}

func funcType(params, results []byte) []byte { return cat(op(0x60), sized(params), sized(results)) }

// body is a function without declared locals, its end included.
func body(code ...[]byte) []byte { return sized(cat(op(0), cat(code...), op(end))) }

func export(name string, kind byte, index uint64) []byte {
	return cat(text(name), op(kind), uleb(index))
}

// program is a module with one memory, one page large and growing to 1024, and
// functions without parameters and results, all exported by the names f0, f1 ….
func program(bodies ...[]byte) []byte {
	var types, exports [][]byte
	for i := range bodies {
		types = append(types, op(0))
		exports = append(exports, export("f"+string(rune('0'+i)), 0, uint64(i)))
	}
	return module(
		section(1, funcType(nil, nil)),
		section(3, types...),
		section(5, cat(op(1, 1), uleb(1024))),
		section(7, exports...),
		section(10, bodies...),
	)
}
