package wire

// MaxDepth is how deep arrays and objects may nest.
const MaxDepth = 1000

// Kind is the kind of a JSON value, seen from its first byte.
type Kind byte

// The kinds. KindNone: the text has ended or is malformed here.
const (
	KindNone Kind = iota
	KindNull
	KindBool
	KindNumber
	KindText
	KindArray
	KindObject
)

// Reader walks one JSON text. The zero value has no text; use NewReader or
// NewFrontReader. What it hands out are pieces of the text itself.
type Reader struct {
	s     string
	pos   int
	more  func() string // the whole text, of which s is the front; nil: s is the whole
	first bool          // right after '{' or '[': no comma is due
	err   error
}

// NewReader reads text.
func NewReader(text string) *Reader { return &Reader{s: text} }

// NewFrontReader reads a text of which only the front is at hand. When the
// reader comes to its end it calls more once, which gives the whole text,
// front included; nil when front is the whole.
func NewFrontReader(front string, more func() string) *Reader {
	return &Reader{s: front, more: more}
}

// Reset makes r what NewFrontReader makes, without a new Reader.
func (r *Reader) Reset(front string, more func() string) { *r = Reader{s: front, more: more} }

// Err is the first error, an *Error; nil while all is well.
func (r *Reader) Err() error { return r.err }

// Fail makes detail the reader's error at the current place, unless it has one.
func (r *Reader) Fail(detail string) { r.failAt(r.pos, detail) }

// Offset is how far the reader has come, in bytes.
func (r *Reader) Offset() int { return r.pos }

func (r *Reader) failAt(pos int, detail string) {
	if r.err == nil {
		r.err = &Error{Offset: pos, Detail: detail}
		r.s, r.more = "", nil // so that nobody needs to ask for an error before a byte
	}
}

// at reports whether byte i exists, loading the rest of the text when it must.
func (r *Reader) at(i int) bool {
	return i < len(r.s) || r.fetch(i)
}

// fetch loads the rest of the text, if there is any, and says whether byte i exists
// then. It is not inlined, so that at is.
//
//go:noinline
func (r *Reader) fetch(i int) bool {
	if r.more == nil {
		return false
	}
	r.s, r.more = r.more(), nil
	return i < len(r.s)
}

// peek skips white space and gives the next byte; 0 at the end or after an error.
// It is small so that it is inlined: calls are dear in a guest.
func (r *Reader) peek() byte {
	if i := r.pos; i < len(r.s) && r.s[i] > ' ' {
		return r.s[i]
	}
	return r.skipSpace()
}

//go:noinline
func (r *Reader) skipSpace() byte {
	for r.at(r.pos) {
		switch c := r.s[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// unexpected fails with what stands at the current place.
func (r *Reader) unexpected(want string) {
	if r.err != nil {
		return
	}
	if !r.at(r.pos) {
		r.Fail("unexpected end, want " + want)
		return
	}
	r.Fail("unexpected character, want " + want)
}

// Kind is the kind of the next value.
func (r *Reader) Kind() Kind {
	switch c := r.peek(); {
	case c == '{':
		return KindObject
	case c == '[':
		return KindArray
	case c == '"':
		return KindText
	case c == 't' || c == 'f':
		return KindBool
	case c == 'n':
		return KindNull
	case c == '-' || isDigit(c):
		return KindNumber
	}
	return KindNone
}

// End fails unless nothing but white space follows, and gives the reader's error.
func (r *Reader) End() error {
	if r.peek() != 0 || (r.err == nil && r.at(r.pos)) {
		r.Fail("unexpected bytes after the document")
	}
	return r.err
}

// Null takes a null; false where another value stands.
func (r *Reader) Null() bool { return r.peek() == 'n' && r.literal("null") }

// Bool takes true or false.
func (r *Reader) Bool() bool {
	switch r.peek() {
	case 't':
		return r.literal("true")
	case 'f':
		r.literal("false")
		return false
	}
	r.unexpected("true or false")
	return false
}

func (r *Reader) literal(word string) bool {
	for i := range len(word) {
		if !r.at(r.pos+i) || r.s[r.pos+i] != word[i] {
			r.unexpected(word)
			return false
		}
	}
	r.pos += len(word)
	return true
}

// Object takes the '{' of an object; its members are walked with Key.
func (r *Reader) Object() bool { return r.open('{', "an object") }

// Array takes the '[' of an array; its elements are walked with Elem.
func (r *Reader) Array() bool { return r.open('[', "an array") }

func (r *Reader) open(c byte, want string) bool {
	if r.peek() != c {
		r.unexpected(want)
		return false
	}
	r.pos++
	r.first = true
	return true
}

// Key takes the next member's name and its colon; false at the object's end,
// which is then behind the reader, and after an error. The caller takes the
// value before it asks for the next key.
func (r *Reader) Key() (string, bool) {
	if !r.step('}', "a comma or the object's end") {
		return "", false
	}
	if r.peek() != '"' {
		r.unexpected("a name")
		return "", false
	}
	key := r.Text()
	if r.peek() != ':' {
		r.unexpected("a colon")
		return "", false
	}
	r.pos++
	return key, true
}

// Elem reports whether an element follows, with the comma before it taken;
// false at the array's end, which is then behind the reader, and after an error.
func (r *Reader) Elem() bool {
	return r.step(']', "a comma or the array's end")
}

// step takes the closing byte (false) or the comma that is due (true).
func (r *Reader) step(closing byte, want string) bool {
	c := r.peek()
	first := r.first
	r.first = false
	switch {
	case r.err != nil:
		return false
	case c == closing:
		r.pos++
		return false
	case first:
		return true
	case c == ',':
		r.pos++
		return true
	}
	r.unexpected(want)
	return false
}
