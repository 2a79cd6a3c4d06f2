package wire

// Raw takes the next value, whatever it is, and gives its text.
func (r *Reader) Raw() string {
	r.peek()
	start := r.pos
	r.Skip()
	if r.err != nil {
		return ""
	}
	return r.s[start:r.pos]
}

// nest remembers, one bit a level, which open containers are objects.
type nest struct {
	bits  [(MaxDepth + 63) / 64]uint64
	depth int
}

func (n *nest) push(object bool) bool {
	if n.depth == MaxDepth {
		return false
	}
	word, bit := n.depth/64, uint(n.depth%64)
	n.bits[word] &^= 1 << bit
	if object {
		n.bits[word] |= 1 << bit
	}
	n.depth++
	return true
}

func (n *nest) object() bool {
	i := n.depth - 1
	return n.bits[i/64]>>(uint(i)%64)&1 == 1
}

// Skip takes the next value without looking at more than its syntax. It does
// not recurse, so that no text can exhaust a guest's stack.
func (r *Reader) Skip() {
	var n nest
	for {
		// One value, or the start of one.
		switch c := r.peek(); {
		case c == '{' || c == '[':
			r.pos++
			if !n.push(c == '{') {
				r.Fail("nested too deep")
				return
			}
			r.first = true
		case c == '"':
			r.skipText()
		case c == 't':
			r.literal("true")
		case c == 'f':
			r.literal("false")
		case c == 'n':
			r.literal("null")
		case c == '-' || isDigit(c):
			r.Number()
		default:
			r.unexpected("a value")
		}
		// Close what ends here, then step to the next value.
		for n.depth > 0 && !r.next(n.object()) {
			n.depth--
		}
		if r.err != nil || n.depth == 0 {
			return
		}
	}
}

// next steps to the next value of an object or array; false when it is closed.
func (r *Reader) next(object bool) bool {
	if !object {
		return r.Elem()
	}
	if !r.step('}', "a comma or the object's end") {
		return false
	}
	if r.peek() != '"' {
		r.unexpected("a name")
		return false
	}
	r.skipText()
	if r.peek() != ':' {
		r.unexpected("a colon")
		return false
	}
	r.pos++
	return true
}
