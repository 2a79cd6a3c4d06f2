package wasm

// rope is a call's input: segments that are never joined, since a provider's
// request holds the whole history and most guests read its start only. The zero
// value is empty.
type rope struct {
	head  []byte
	items [][]byte // between them a comma
	tail  []byte
	size  int64

	// The cursor is the part where the last read ended and that part's offset, so
	// that reading on costs nothing for what lies before. Part -1 is head, then come
	// items and commas in turn, then tail.
	part  int
	start int64
}

var comma = []byte{','}

// newRope joins head, the items with commas between them, and tail.
func newRope(head []byte, items [][]byte, tail []byte) rope {
	size := int64(0)
	for _, it := range items {
		size += int64(len(it))
	}
	return ropeOf(head, items, tail, size)
}

// ropeOf is newRope for who knows the sum of the items' lengths. A wrong one gives
// the guest a document that ends early or is shorter than it was told.
func ropeOf(head []byte, items [][]byte, tail []byte, sum int64) rope {
	size := int64(len(head)) + sum + int64(max(len(items)-1, 0)) + int64(len(tail))
	return rope{head: head, items: items, tail: tail, size: size, part: -1}
}

// segment is part i and whether there is one.
func (r *rope) segment(i int) ([]byte, bool) {
	last := max(2*len(r.items)-1, 0) // the tail's number
	switch {
	case i < 0:
		return r.head, true
	case i < last && i%2 == 0:
		return r.items[i/2], true
	case i < last:
		return comma, true
	case i == last:
		return r.tail, true
	}
	return nil, false
}

// readAt copies from offset off and reports how much; 0 at or after the end.
func (r *rope) readAt(dst []byte, off int64) int {
	if off < 0 || off >= r.size {
		return 0
	}
	if off < r.start {
		r.part, r.start = -1, 0
	}
	n := 0
	for n < len(dst) {
		seg, ok := r.segment(r.part)
		if !ok {
			break
		}
		end := r.start + int64(len(seg))
		if off >= end {
			r.part, r.start = r.part+1, end
			continue
		}
		c := copy(dst[n:], seg[off-r.start:])
		n += c
		off += int64(c)
	}
	return n
}
