package meter

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	numSections
)

const preamble = "\x00asm\x01\x00\x00\x00"

// order is that of the binary format; the data count goes before the code.
var order = [...]byte{
	secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport,
	secStart, secElement, secDataCount, secCode, secData,
}

// layout is a module cut into sections.
type layout struct {
	found  [numSections]reader // over the content of a section
	exists [numSections]bool   // whether the module has it
	custom [numSections][]byte // the custom sections that follow a section (0: that precede all)
}

// split cuts a module into its sections and drops custom sections that would be
// wrong after rewriting.
func split(module []byte) (*layout, error) {
	if !bytes.HasPrefix(module, []byte(preamble)) {
		return nil, &Error{Kind: ErrMalformed, Opcode: -1, Detail: "no preamble of a version 1 core module"}
	}
	l := &layout{}
	for id := range l.found {
		// A section that isn't there means the same as an empty vector.
		l.found[id] = reader{buf: []byte{0}}
	}
	r := &reader{buf: module, pos: len(preamble)}
	rank, last := 0, byte(0)
	for r.more() {
		start := r.pos
		id := r.u8()
		size := r.u32()
		content := reader{pos: r.pos}
		r.take(size)
		if r.err != nil {
			break
		}
		content.buf = module[:r.pos]
		if id == secCustom {
			name := string(content.take(content.u32()))
			if content.err != nil {
				return nil, content.err
			}
			if !utf8.ValidString(name) {
				r.fail(ErrMalformed, start, "the name of a custom section is not valid UTF-8")
				break
			}
			if !stale(name) {
				l.custom[last] = append(l.custom[last], module[start:r.pos]...)
			}
			continue
		}
		if id >= numSections {
			r.fail(ErrUnsupported, start, "unknown section %d", id)
			break
		}
		for rank < len(order) && order[rank] != id {
			rank++
		}
		if rank == len(order) {
			r.fail(ErrMalformed, start, "section %d twice or out of order", id)
			break
		}
		rank++
		last = id
		l.found[id], l.exists[id] = content, true
	}
	return l, r.err
}

// stale tells whether a custom section speaks of function indexes or offsets
// in the code, which the pass changes.
func stale(name string) bool {
	switch name {
	case "name", "linking", "sourceMappingURL", "external_debug_info":
		return true
	}
	return strings.HasPrefix(name, ".debug_") || strings.HasPrefix(name, "reloc.") ||
		strings.HasPrefix(name, "metadata.code.")
}
