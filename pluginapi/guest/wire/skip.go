package wire

import (
	"unsafe"

	"github.com/loophost/loophost/pluginapi"
)

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

// raw is Raw as bytes: still a piece of the reader's text, which whoever writes to it
// changes.
func (r *Reader) raw() pluginapi.Raw {
	s := r.Raw()
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// nest remembers, one bit a level, which open containers are objects. Few texts
// nest deeper than its first word.
type nest struct {
	top   uint64
	deep  []uint64
	depth int
}

func (n *nest) word(i int) *uint64 {
	if i < 64 {
		return &n.top
	}
	return &n.deep[i/64-1]
}

func (n *nest) push(object bool) bool {
	if n.depth == MaxDepth {
		return false
	}
	if n.depth/64 > len(n.deep) {
		n.deep = append(n.deep, 0)
	}
	word, bit := n.word(n.depth), uint(n.depth%64)
	*word &^= 1 << bit
	if object {
		*word |= 1 << bit
	}
	n.depth++
	return true
}

func (n *nest) object() bool {
	i := n.depth - 1
	return *n.word(i)>>(uint(i)%64)&1 == 1
}

// Skip takes the next value without looking at more than its syntax. It does
// not recurse, so that no text can exhaust a guest's stack. Most of an input is
// skipped, so what hosts write (no white space, few escapes) is walked here without
// a call for each byte; all else is left to the reader's other methods.
func (r *Reader) Skip() {
	var n nest
	for {
		// One value, or the start of one.
		switch c := r.peek(); {
		case c == '"':
			if end := plainEnd(r.s, r.pos+1); end < len(r.s) && r.s[end] == '"' {
				r.pos = end + 1
			} else {
				r.skipText()
			}
		case isDigit(c) && c != '0':
			if end := digitsEnd(r.s, r.pos); end < len(r.s) && (r.s[end] == ',' || r.s[end] == '}' || r.s[end] == ']') {
				r.pos = end
			} else {
				r.Number()
			}
		case c == '{' || c == '[':
			r.pos++
			if !n.push(c == '{') {
				r.Fail("nested too deep")
				return
			}
			r.first = true
		case c == 't':
			r.literal("true")
		case c == 'f':
			r.literal("false")
		case c == 'n':
			r.literal("null")
		case c == '-' || c == '0':
			r.Number()
		default:
			r.unexpected("a value")
		}
		// Close what ends here, then step to the next value.
		for n.depth > 0 {
			object := n.object()
			if r.quick(object) || r.next(object) {
				break
			}
			n.depth--
		}
		if r.err != nil || n.depth == 0 {
			return
		}
	}
}

// quick is next where a comma stands right here and, in an object, a plain name
// behind it; false: nothing was taken, and next knows more.
func (r *Reader) quick(object bool) bool {
	s, i := r.s, r.pos
	if r.first || i+1 >= len(s) || s[i] != ',' {
		return false
	}
	if !object {
		r.pos++
		return true
	}
	if s[i+1] != '"' {
		return false
	}
	end := plainEnd(s, i+2)
	if end+1 >= len(s) || s[end] != '"' || s[end+1] != ':' {
		return false
	}
	r.pos = end + 2
	return true
}

// digitsEnd is the first place from i on that is no digit.
func digitsEnd(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
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
