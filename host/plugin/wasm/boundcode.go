package wasm

import (
	"errors"
	"fmt"
)

// code counts the function bodies.
func (b *bounds) code(r *reader) {
	n := r.atMost("function bodies", maxFunctions)
	if defined := len(b.funcs) - b.imported; n != defined && r.err == nil {
		r.fail(fmt.Errorf("%d function bodies for %d functions", n, defined))
	}
	for i := 0; i < n && r.err == nil; i++ {
		body := &reader{b: r.take(r.u32())}
		if r.err != nil {
			return
		}
		effort := b.body(body, b.types[b.funcs[b.imported+i]])
		if body.err != nil {
			r.fail(fmt.Errorf("function %d: %w", b.imported+i, body.err))
			return
		}
		if b.effort += effort; b.effort > maxAllEffort {
			r.fail(fmt.Errorf("it would take too long to compile: more than %d units of effort in all functions", maxAllEffort))
		}
	}
}

// body counts one function. Its effort is an estimate of what the engine
// allocates for it, in values of some hundred bytes: at every block and every
// branch the compiler may keep one for each local, and at a call or a block one for
// each value that is passed.
func (b *bounds) body(r *reader, of arity) (effort uint64) {
	locals := uint64(of.params)
	for range r.count() {
		locals += uint64(r.u32())
		if locals > maxLocals {
			r.fail(fmt.Errorf("more than %d locals", maxLocals))
		}
		r.valueType()
		if r.err != nil {
			return 0
		}
	}
	if b.locals += locals; b.locals > maxAllLocals {
		r.fail(fmt.Errorf("more than %d locals in all functions", maxAllLocals))
	}
	effort = locals
	for depth := 1; depth > 0 && r.err == nil; {
		n, deeper := b.operator(r, locals)
		if depth += deeper; depth > maxNesting {
			r.fail(fmt.Errorf("more than %d blocks within each other", maxNesting))
		}
		if effort += n; effort > maxEffort {
			r.fail(fmt.Errorf("it would take too much to compile: more than %d units of effort (%d locals)", maxEffort, locals))
		}
	}
	if r.err == nil && r.off != len(r.b) {
		r.fail(errors.New("operators behind its end"))
	}
	return effort
}

// operator reads one and tells its effort, and whether it opens (1) or closes (-1) a block.
func (b *bounds) operator(r *reader, locals uint64) (effort uint64, deeper int) {
	switch op := r.byte(); op {
	case 0x02, 0x03, 0x04: // block, loop, if
		return 1 + locals + b.blockType(r), 1
	case 0x0b: // end
		return 0, -1
	case 0x0c, 0x0d: // br, br_if
		r.u32()
		return 1 + locals, 0
	case 0x0e: // br_table
		n := r.count() + 1
		for range n {
			r.u32()
		}
		return uint64(n) * (1 + locals), 0
	case 0x10: // call
		if f := r.u32(); uint64(f) < uint64(len(b.funcs)) {
			return b.types[b.funcs[f]].size(), 0
		}
	case 0x11: // call_indirect
		t := r.u32()
		r.zero()
		if uint64(t) < uint64(len(b.types)) {
			return b.types[t].size(), 0
		}
	case 0x20, 0x21, 0x22, 0x23, 0x24: // local, global
		r.u32()
	case 0x3f, 0x40: // memory.size, memory.grow
		r.zero()
	case 0x41: // i32.const
		r.varint(5)
	case 0x42: // i64.const
		r.varint(10)
	case 0x43: // f32.const
		r.take(4)
	case 0x44: // f64.const
		r.take(8)
	case 0xfc:
		r.bulk()
	case 0xfd:
		r.vector()
	case 0x00, 0x01, 0x05, 0x0f, 0x1a, 0x1b: // unreachable, nop, else, return, drop, select
	default:
		switch {
		case op >= 0x28 && op <= 0x3e: // load, store
			r.memarg()
		case op >= 0x45 && op <= 0xc4: // numeric
		default:
			r.unknown(uint32(op))
		}
	}
	return 0, 0
}

func (r *reader) unknown(op uint32) {
	if r.err == nil {
		r.fail(fmt.Errorf("operator 0x%02x, which needs a feature that this host does not compile", op))
	}
}

func (a arity) size() uint64 { return uint64(a.params + a.results) }

// blockType tells how many values a block takes and gives.
func (b *bounds) blockType(r *reader) uint64 {
	first := r.byte()
	if r.err != nil {
		return 0
	}
	if first&0xc0 == 0x40 { // a negative number of one byte: no type, or that of one result
		if first != 0x40 {
			r.off--
			r.valueType()
			return 1
		}
		return 0
	}
	r.off--
	if t := r.u32(); uint64(t) < uint64(len(b.types)) {
		return b.types[t].size()
	}
	r.fail(errors.New("a block of a type that isn't there"))
	return 0
}

// memarg reads alignment and offset.
func (r *reader) memarg() {
	if align := r.u32(); align >= 32 {
		r.fail(errors.New("an alignment that needs a feature that this host does not compile"))
	}
	r.u32()
}

// bulk reads the rest of an operator that starts with 0xfc.
func (r *reader) bulk() {
	switch op := r.u32(); op {
	case 8, 12: // memory.init, table.init
		r.u32()
		r.zero()
	case 10, 14: // memory.copy, table.copy
		r.zero()
		r.zero()
	case 9, 13: // data.drop, elem.drop
		r.u32()
	case 11: // memory.fill
		r.zero()
	default:
		if op > 7 {
			r.unknown(0xfc00 | op)
		}
	}
}

// vector reads the rest of an operator that starts with 0xfd. The engine reads one
// byte of its number, so only the shortest form is taken: another would hide what
// follows from one of us.
func (r *reader) vector() {
	op := r.byte()
	if op >= 0x80 && r.byte() != 1 {
		r.unknown(0xfd00 | uint32(op))
	}
	switch {
	case op <= 11, op == 92, op == 93: // loads and stores
		r.memarg()
	case op == 12, op == 13: // v128.const, i8x16.shuffle
		r.take(16)
	case op >= 21 && op <= 34: // of one lane
		r.byte()
	case op >= 84 && op <= 91: // loads and stores of one lane
		r.memarg()
		r.byte()
	}
}
