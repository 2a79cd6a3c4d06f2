package wasm

import (
	"errors"
	"fmt"
)

// What a module may hold. The engine trusts the numbers that it reads: a module of
// a few bytes can make it allocate gigabytes, which ends the whole process, so
// nothing reaches it that isn't counted first. The bounds are far above what
// toolchains build.
const (
	maxTypes     = 100_000
	maxArity     = 1_000 // parameters, and results, of a type
	maxImports   = 1_000
	maxFunctions = 500_000
	maxGlobals   = 100_000
	maxExports   = 10_000
	maxElements  = 1 << 20 // of a table, and of all element segments together
	maxSegments  = 100_000 // of elements, and of data
	maxLocals    = 50_000  // of a function
	maxNesting   = 10_000  // blocks within blocks
	// maxAllLocals is of all functions together, parameters included.
	maxAllLocals = 1 << 23
	// maxEffort and maxAllEffort bound what compiling a function, and the module, may
	// cost; see effort.
	maxEffort    = 1 << 20
	maxAllEffort = 1 << 25
)

// bounds walks over a whole module and counts.
type bounds struct {
	types    []arity
	funcs    []uint32 // type indexes of the imported functions, then of the others
	imported int
	elements uint64
	locals   uint64
	effort   uint64
}

// arity is a function type's size.
type arity struct{ params, results int }

// checkBounds refuses a module that would make the engine allocate or work out of
// proportion to the module's size, and one that can't be counted, since it has
// something that this host doesn't compile. Whatever passes can be metered: a
// hostile module must not choose to run without. It is no validator.
func checkBounds(secs []section) error {
	b := &bounds{}
	last := -1
	for _, s := range secs {
		if s.id == secCustom {
			continue
		}
		rank := sectionRank(s.id)
		if rank <= last {
			return fmt.Errorf("section %d twice or out of order", s.id)
		}
		last = rank
		r := &reader{b: s.body}
		b.section(s.id, r)
		if r.err == nil && r.off != len(r.b) {
			r.fail(fmt.Errorf("%d bytes left over", len(r.b)-r.off))
		}
		if r.err != nil {
			return fmt.Errorf("section %d: %w", s.id, r.err)
		}
	}
	return nil
}

// sectionRank is a section's place in a module: by number, but for the data count,
// which comes before the code.
func sectionRank(id byte) int {
	switch id {
	case secDataCount:
		return 2*secCode - 1
	default:
		return 2 * int(id)
	}
}

func (b *bounds) section(id byte, r *reader) {
	switch id {
	case secType:
		for range r.atMost("types", maxTypes) {
			b.functype(r)
		}
	case secImport:
		for range r.atMost("imports", maxImports) {
			b.importOf(r)
		}
	case secFunction:
		for range r.atMost("functions", maxFunctions) {
			b.function(r)
		}
	case secTable:
		for range r.atMost("tables", 1) {
			r.table()
		}
	case secMemory:
		for range r.atMost("memories", 1) {
			r.limits()
		}
	case secGlobal:
		for range r.atMost("globals", maxGlobals) {
			r.valueType()
			r.flag()
			r.constant()
		}
	case secExport:
		for range r.atMost("exports", maxExports) {
			r.take(r.u32())
			if kind := r.byte(); kind > 3 {
				r.fail(fmt.Errorf("an export of kind %d", kind))
			}
			r.u32()
		}
	case secStart, secDataCount:
		r.u32()
	case secElement:
		for range r.atMost("element segments", maxSegments) {
			b.segment(r)
		}
	case secCode:
		b.code(r)
	case secData:
		for range r.atMost("data segments", maxSegments) {
			form := r.u32()
			if form > 2 {
				r.fail(fmt.Errorf("a data segment of form %d", form))
			}
			if form == 2 {
				r.zero()
			}
			if form != 1 {
				r.constant()
			}
			r.take(r.u32())
		}
	default:
		r.fail(errors.New("it needs a feature that this host does not compile"))
	}
}

// atMost reads the length of a vector, and fails for more than the bound.
func (r *reader) atMost(what string, limit int) int {
	n := r.count()
	if n > limit {
		r.fail(fmt.Errorf("%d %s; at most %d are taken", n, what, limit))
		return 0
	}
	return n
}

func (r *reader) valueType() {
	switch t := r.byte(); t {
	case 0x7f, 0x7e, 0x7d, 0x7c, 0x7b:
	default:
		if r.err == nil {
			r.fail(fmt.Errorf("value type 0x%02x, which needs a feature that this host does not compile", t))
		}
	}
}

func (r *reader) limits() (least uint32) {
	flags := r.byte()
	if flags > 1 && r.err == nil {
		r.fail(fmt.Errorf("limits of kind 0x%02x, which need a feature that this host does not compile", flags))
	}
	least = r.u32()
	if flags == 1 {
		r.u32()
	}
	return least
}

func (r *reader) table() {
	if t := r.byte(); t != 0x70 && r.err == nil {
		r.fail(fmt.Errorf("a table of type 0x%02x; only functions are taken", t))
	}
	if n := r.limits(); n > maxElements {
		r.fail(fmt.Errorf("a table of %d elements; at most %d are taken", n, maxElements))
	}
}

// constant reads a constant expression of one operator.
func (r *reader) constant() {
	switch op := r.byte(); op {
	case 0x41, 0x23: // i32.const, global.get
		r.varint(5)
	case 0x42: // i64.const
		r.varint(10)
	case 0x43: // f32.const
		r.take(4)
	case 0x44: // f64.const
		r.take(8)
	case 0xfd:
		if sub := r.byte(); sub != 0x0c && r.err == nil {
			r.unknown(0xfd00 | uint32(sub))
		}
		r.take(16) // v128.const
	default:
		if r.err == nil {
			r.fail(fmt.Errorf("operator 0x%02x in a constant", op))
		}
	}
	if end := r.byte(); end != 0x0b && r.err == nil {
		r.fail(errors.New("a constant of several operators, which needs a feature that this host does not compile"))
	}
}

// flag reads whether a global can change.
func (r *reader) flag() {
	if v := r.byte(); v > 1 {
		r.fail(fmt.Errorf("a global of mutability %d", v))
	}
}

// zero reads the index of the only table or memory there may be.
func (r *reader) zero() {
	if i := r.u32(); i != 0 {
		r.fail(errors.New("a second table or memory, which needs a feature that this host does not compile"))
	}
}

// varint skips a LEB128 number of at most so many bytes.
func (r *reader) varint(most int) {
	for range most {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail(errLong)
}

func (b *bounds) functype(r *reader) {
	if r.err != nil {
		return
	}
	if form := r.byte(); form != 0x60 {
		r.fail(fmt.Errorf("a type of form 0x%02x: only function types are taken", form))
		return
	}
	var a arity
	for _, n := range []*int{&a.params, &a.results} {
		*n = r.atMost("values in a type", maxArity)
		for range *n {
			r.valueType()
		}
	}
	b.types = append(b.types, a)
}

func (b *bounds) importOf(r *reader) {
	r.take(r.u32())
	r.take(r.u32())
	switch kind := r.byte(); kind {
	case 0:
		b.function(r)
		b.imported = len(b.funcs)
	case 1:
		r.table()
	case 2:
		r.limits()
	case 3:
		r.valueType()
		r.flag()
	default:
		r.fail(fmt.Errorf("an import of kind %d", kind))
	}
}

// function reads a function's type.
func (b *bounds) function(r *reader) {
	t := r.u32()
	if r.err == nil && uint64(t) >= uint64(len(b.types)) {
		r.fail(fmt.Errorf("type %d of %d", t, len(b.types)))
	}
	b.funcs = append(b.funcs, t)
}

// segment reads an element segment of the forms that need no reference types.
func (b *bounds) segment(r *reader) {
	form := r.u32()
	if form > 2 {
		r.fail(fmt.Errorf("an element segment of form %d, which needs a feature that this host does not compile", form))
	}
	if form == 2 {
		r.zero() // table
	}
	if form != 1 {
		r.constant()
	}
	if form != 0 {
		r.zero() // the kind of elements
	}
	n := r.count()
	if b.elements += uint64(n); b.elements > maxElements {
		r.fail(fmt.Errorf("more than %d elements in all segments", maxElements))
	}
	for range n {
		if r.err != nil {
			return
		}
		r.u32()
	}
}
