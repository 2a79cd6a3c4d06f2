package wire

import (
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Text takes a string. One without escapes is a piece of the reader's text.
func (r *Reader) Text() string {
	if r.peek() != '"' {
		r.unexpected("a string")
		return ""
	}
	start := r.pos + 1
	escapes := r.skipText()
	if r.err != nil {
		return ""
	}
	body := r.s[start : r.pos-1]
	if !escapes {
		return body
	}
	return unescape(body)
}

// skipText takes a string, checking it, and reports whether it holds escapes.
// The next byte is its opening quote.
func (r *Reader) skipText() (escapes bool) {
	i := r.pos + 1
	for {
		i = plainEnd(r.s, i)
		if !r.at(i) {
			break
		}
		switch c := r.s[i]; {
		case c == '"':
			r.pos = i + 1
			return escapes
		case c == '\\':
			escapes = true
			n := r.escapeLen(i)
			if n == 0 {
				r.failAt(i, "invalid escape")
				return false
			}
			i += n
		case c < 0x20:
			r.failAt(i, "control character in a string")
			return false
		case c >= utf8.RuneSelf:
			r.at(i + utf8.UTFMax - 1) // a rune may cross the end of the front
			ru, n := utf8.DecodeRuneInString(r.s[i:])
			if ru == utf8.RuneError && n == 1 {
				r.failAt(i, "invalid UTF-8")
				return false
			}
			i += n
		}
	}
	r.failAt(i, "unexpected end in a string")
	return false
}

// One in each byte of a word, and each byte's high bit.
const (
	each = 0x0101010101010101
	high = 0x80 * each
)

// plainEnd is the first place from i on where s holds a byte that doesn't stand
// for itself inside a JSON string: a control character, quote or backslash, or
// one of a longer rune. It looks at eight bytes at a time; most of a document is
// such text, and in a metered guest every turn of a loop costs.
func plainEnd(s string, i int) int {
	for i+8 <= len(s) {
		w := load(s, i)
		// A byte's high bit is set where it was set, where less than 0x20 was left
		// of it, or where it was equal and becomes -1. Borrows only start at such a
		// byte, so no bit says that all eight are plain, and the lowest bit is the first
		// byte that is not.
		if found := (w | (w - 0x20*each) | ((w ^ '"'*each) - each) | ((w ^ '\\'*each) - each)) & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		i += 8
	}
	for i < len(s) && s[i] >= 0x20 && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

// escapeLen is the length of the escape at i; 0: it is not valid.
func (r *Reader) escapeLen(i int) int {
	if !r.at(i + 1) {
		return 0
	}
	switch r.s[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if r.at(i+5) && hex4(r.s[i+2:i+6]) >= 0 {
			return 6
		}
	}
	return 0
}

// unescape resolves the escapes of a checked string's body.
func unescape(body string) string {
	out := make([]byte, len(body)+8) // room for the last word; no escape is shorter than what it means
	n := 0
	for i := 0; ; {
		i, n = copyPlain(out, n, body, i)
		if i == len(body) {
			break
		}
		if e := body[i+1]; e != 'u' {
			out[n] = plainEscape(e)
			i, n = i+2, n+1
			continue
		}
		ru := hex4(body[i+2 : i+6])
		i += 6
		if utf16.IsSurrogate(ru) {
			low := rune(-1)
			if i+6 <= len(body) && body[i] == '\\' && body[i+1] == 'u' {
				low = hex4(body[i+2 : i+6])
			}
			if ru = utf16.DecodeRune(ru, low); ru != utf8.RuneError {
				i += 6
			}
		}
		n += utf8.EncodeRune(out[n:], ru)
	}
	return unsafe.String(unsafe.SliceData(out), n) // nobody else holds out
}

// copyPlain copies body from i on to out at n, up to a backslash or the end, and gives
// both places behind it. Whole words are copied, also the one that holds the backslash:
// turns of a loop and calls are dear in a guest, and what is too much is written over.
// out has eight bytes more than are needed.
func copyPlain(out []byte, n int, body string, i int) (int, int) {
	for i+8 <= len(body) {
		w := load(body, i)
		store(out, n, w)
		if x := w ^ '\\'*each; (x-each)&^x&high != 0 {
			k := bits.TrailingZeros64((x-each)&^x&high) / 8
			return i + k, n + k
		}
		i, n = i+8, n+8
	}
	for i < len(body) && body[i] != '\\' {
		out[n] = body[i]
		i, n = i+1, n+1
	}
	return i, n
}

func plainEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hex4 is the value of four hexadecimal digits; -1: they are not.
func hex4(s string) rune {
	var v rune
	for i := range 4 {
		c := s[i]
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		v = v<<4 | rune(c)
	}
	return v
}
