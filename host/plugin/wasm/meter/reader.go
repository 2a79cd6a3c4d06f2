package meter

import "fmt"

// reader walks over module bytes. The first failure sticks: from then on every
// method returns zero and consumes nothing, so that callers check once per item
// and a hostile length can't keep a loop busy.
type reader struct {
	buf []byte // the module up to the end of what may be read
	pos int    // absolute offset in the module
	err error
}

func (r *reader) fail(kind error, at int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Kind: kind, Offset: at, Opcode: -1, Detail: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) failOp(kind error, at, opcode int, detail string) {
	if r.err == nil {
		r.err = &Error{Kind: kind, Offset: at, Opcode: opcode, Detail: detail}
	}
}

func (r *reader) left() int { return len(r.buf) - r.pos }

// more tells whether there is something to read and nothing went wrong.
func (r *reader) more() bool { return r.err == nil && r.pos < len(r.buf) }

func (r *reader) u8() byte {
	if r.err != nil {
		return 0
	}
	if r.pos >= len(r.buf) {
		r.fail(ErrMalformed, r.pos, "unexpected end")
		return 0
	}
	b := r.buf[r.pos]
	r.pos++
	return b
}

// u32 reads an unsigned LEB128 number of at most 32 bits in at most 5 bytes.
func (r *reader) u32() uint32 {
	at := r.pos
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		b := r.u8()
		if r.err != nil {
			return 0
		}
		if shift == 28 && b > 0x0f {
			break
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.fail(ErrMalformed, at, "number doesn't fit into 32 bits")
	return 0
}

// signed reads a signed LEB128 number of at most the given bits (32, 33 or 64).
func (r *reader) signed(bits int) int64 {
	at := r.pos
	var v int64
	for shift := 0; shift < bits; shift += 7 {
		b := r.u8()
		if r.err != nil {
			return 0
		}
		v |= int64(b&0x7f) << shift
		if b&0x80 != 0 {
			continue
		}
		if rest := bits - shift; rest < 7 {
			// The bits beyond the number must repeat its sign.
			if ext := int8(b<<1) >> rest; ext != 0 && ext != -1 {
				break
			}
		}
		if width := 64 - shift - 7; width > 0 {
			v = v << width >> width
		}
		return v
	}
	r.fail(ErrMalformed, at, "number doesn't fit into %d bits", bits)
	return 0
}

func (r *reader) take(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(r.left()) {
		r.fail(ErrMalformed, r.pos, "%d bytes announced, %d left", n, r.left())
		return nil
	}
	b := r.buf[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// count reads the length of a vector whose elements take at least size bytes
// each, and refuses one that can't fit, before anybody allocates for it.
func (r *reader) count(size int) int {
	at := r.pos
	n := r.u32()
	if r.err == nil && uint64(n) > uint64(r.left()/size) {
		r.fail(ErrMalformed, at, "vector of %d elements in %d bytes", n, r.left())
		return 0
	}
	return int(n)
}

// index reads an index that has to be below limit.
func (r *reader) index(what string, limit int) uint32 {
	at := r.pos
	i := r.u32()
	if r.err == nil && uint64(i) >= uint64(limit) {
		r.fail(ErrMalformed, at, "%s %d of %d", what, i, limit)
		return 0
	}
	return i
}

// zero reads the index of the only memory or table there may be.
func (r *reader) zero(what string) {
	at := r.pos
	if i := r.u32(); i != 0 {
		r.fail(ErrUnsupported, at, "%s other than 0", what)
	}
}

// done fails unless everything was read.
func (r *reader) done(what string) {
	if r.err == nil && r.pos != len(r.buf) {
		r.fail(ErrMalformed, r.pos, "%d bytes too many in the %s", r.left(), what)
	}
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
