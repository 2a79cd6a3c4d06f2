package format

import (
	"encoding/binary"
	"unicode/utf8"
)

// plainJSON reports whether p is surely one JSON value in valid UTF-8 as isJSON means
// it. False says nothing: deep nesting and escaped surrogates are left to the general
// decoder. Every part of every commit is looked at, most of it text in strings, and the
// general decoder needs several times as long for that as the checksums do.
func plainJSON(p []byte) bool {
	s := plain{b: p}
	s.space()
	if !s.value(0) {
		return false
	}
	s.space()
	return s.at == len(p) && (!s.wide || utf8.Valid(p))
}

// plainDepth is how deep plainJSON looks.
const plainDepth = 64

// plain walks a JSON text. Its methods answer false where they can't go on.
type plain struct {
	b    []byte
	at   int
	wide bool // there are bytes that are not ASCII
}

func (s *plain) space() {
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// is takes c if it is next.
func (s *plain) is(c byte) bool {
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *plain) literal(text string) bool {
	if len(s.b)-s.at < len(text) || string(s.b[s.at:s.at+len(text)]) != text {
		return false
	}
	s.at += len(text)
	return true
}

func (s *plain) value(depth int) bool {
	if s.at >= len(s.b) || depth > plainDepth {
		return false
	}
	switch s.b[s.at] {
	case '"':
		s.at++
		return s.text()
	case '{':
		s.at++
		return s.members('}', depth+1, s.member)
	case '[':
		s.at++
		return s.members(']', depth+1, s.value)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

// members takes what stands between commas, and the end of an object or array.
func (s *plain) members(end byte, depth int, member func(depth int) bool) bool {
	s.space()
	if s.is(end) {
		return true
	}
	for {
		s.space()
		if !member(depth) {
			return false
		}
		s.space()
		if s.is(end) {
			return true
		}
		if !s.is(',') {
			return false
		}
	}
}

func (s *plain) member(depth int) bool {
	if !s.is('"') || !s.text() {
		return false
	}
	s.space()
	if !s.is(':') {
		return false
	}
	s.space()
	return s.value(depth)
}

// text takes the rest of a string, its end included.
func (s *plain) text() bool {
	for {
		s.run()
		if s.at >= len(s.b) {
			return false
		}
		switch c := s.b[s.at]; {
		case c == '"':
			s.at++
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		case c < ' ':
			return false
		default:
			s.wide = s.wide || c >= utf8.RuneSelf
			s.at++
		}
	}
}

// run goes past eight bytes at a time, as long as none of them needs a look.
func (s *plain) run() {
	rest := s.b[s.at:]
	for len(rest) >= 16 && (looks(binary.LittleEndian.Uint64(rest))|looks(binary.LittleEndian.Uint64(rest[8:])))&tops == 0 {
		rest = rest[16:]
	}
	for len(rest) >= 8 && looks(binary.LittleEndian.Uint64(rest))&tops == 0 {
		rest = rest[8:]
	}
	s.at = len(s.b) - len(rest)
}

const ones, tops = 0x0101010101010101, 0x8080808080808080

// looks has the top bit of a byte set where that of x is wide, a control character, a
// quote or a backslash. One above such a byte may be set as well; that costs a look.
func looks(x uint64) uint64 {
	return x | (x - ones*' ') | ((x ^ ones*'"') - ones) | ((x ^ ones*'\\') - ones)
}

func (s *plain) escape() bool {
	if len(s.b)-s.at < 2 {
		return false
	}
	c := s.b[s.at+1]
	s.at += 2
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
	default:
		return false
	}
	if len(s.b)-s.at < 4 {
		return false
	}
	var r rune
	for _, c := range s.b[s.at : s.at+4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return false
		}
	}
	s.at += 4
	return r < 0xd800 || r > 0xdfff
}

func (s *plain) number() bool {
	s.is('-')
	if !s.is('0') && !s.digits() {
		return false
	}
	if s.is('.') && !s.digits() {
		return false
	}
	if s.is('e') || s.is('E') {
		_ = s.is('+') || s.is('-')
		return s.digits()
	}
	return true
}

func (s *plain) digits() bool {
	from := s.at
	for s.at < len(s.b) && '0' <= s.b[s.at] && s.b[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}
