package wasm

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Section ids of the binary format that are read here.
const (
	secCustom    = 0
	secType      = 1
	secImport    = 2
	secFunction  = 3
	secTable     = 4
	secMemory    = 5
	secGlobal    = 6
	secExport    = 7
	secStart     = 8
	secElement   = 9
	secCode      = 10
	secData      = 11
	secDataCount = 12
	secLast      = 13
)

// Errors of reader.
var (
	errShort = errors.New("it ends within a value")
	errLong  = errors.New("it holds a number that is too long")
)

var preamble = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// reader walks over module bytes. The first failure sticks.
type reader struct {
	b   []byte
	off int
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
		r.b, r.off = nil, 0
	}
}

func (r *reader) byte() byte {
	if r.off >= len(r.b) {
		r.fail(errShort)
		return 0
	}
	c := r.b[r.off]
	r.off++
	return c
}

// u32 reads an unsigned LEB128 of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := uint(0); shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.fail(errors.New("it holds a number of more than 32 bits"))
	return 0
}

// u64 reads an unsigned LEB128 of at most 64 bits.
func (r *reader) u64() uint64 {
	var v uint64
	for shift := uint(0); shift < 70; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			return v
		}
	}
	r.fail(errors.New("it holds a number of more than 64 bits"))
	return 0
}

// take is the next n bytes, not copied.
func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.off) {
		r.fail(errShort)
		return nil
	}
	s := r.b[r.off : r.off+int(n)]
	r.off += int(n)
	return s
}

func (r *reader) name() string {
	s := r.take(r.u32())
	if !utf8.Valid(s) {
		r.fail(errors.New("it holds a name that isn't UTF-8"))
	}
	return string(s)
}

// count reads a vector's length; every element takes at least one byte.
func (r *reader) count() int {
	n := r.u32()
	if uint64(n) > uint64(len(r.b)-r.off) {
		r.fail(errShort)
		return 0
	}
	return int(n)
}

// section is one section as it lies in the file.
type section struct {
	id   byte
	name string // of a custom section
	body []byte // after the name
	raw  []byte // with id and size
}

// sections splits a core module. It checks the frame only.
func sections(module []byte) ([]section, error) {
	if len(module) < len(preamble) || string(module[:4]) != string(preamble[:4]) {
		return nil, errors.New("it isn't a WebAssembly module: the first bytes are not \\0asm")
	}
	if string(module[4:8]) != string(preamble[4:]) {
		return nil, fmt.Errorf("it isn't a core module of version 1 (version bytes % x); components are not supported", module[4:8])
	}
	r := &reader{b: module, off: len(preamble)}
	var out []section
	for r.err == nil && r.off < len(r.b) {
		start := r.off
		s := section{id: r.byte()}
		body := reader{b: r.take(r.u32())}
		if r.err != nil {
			break
		}
		if s.id > secLast {
			return nil, fmt.Errorf("unknown section %d at offset %d", s.id, start)
		}
		if s.id == secCustom {
			s.name = body.name()
		}
		if body.err != nil {
			return nil, fmt.Errorf("section %d at offset %d: %w", s.id, start, body.err)
		}
		s.body, s.raw = body.b[body.off:], module[start:r.off]
		out = append(out, s)
	}
	if r.err != nil {
		return nil, fmt.Errorf("damaged module: %w", r.err)
	}
	return out, nil
}

// withoutCustom is a copy of a module without its custom sections. They mean
// nothing to the code, and the engine trusts the numbers in some of them.
func withoutCustom(secs []section) []byte {
	size := len(preamble)
	for _, s := range secs {
		size += len(s.raw)
	}
	out := append(make([]byte, 0, size), preamble...)
	for _, s := range secs {
		if s.id != secCustom {
			out = append(out, s.raw...)
		}
	}
	return out
}
