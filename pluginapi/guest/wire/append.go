package wire

import (
	"strconv"
	"unicode/utf8"

	"github.com/loophost/loophost/pluginapi"
)

const hexDigits = "0123456789abcdef"

// AppendText appends s as a JSON string. Bytes that aren't UTF-8 become U+FFFD.
func AppendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := plainEnd(s, 0); i < len(s); i = plainEnd(s, i) {
		c := s[i]
		if c >= utf8.RuneSelf {
			ru, n := utf8.DecodeRuneInString(s[i:])
			if ru == utf8.RuneError && n == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// AppendRaw appends a JSON value without its insignificant white space. An empty one is null.
func AppendRaw(dst []byte, raw pluginapi.Raw) []byte {
	if len(raw) == 0 {
		return append(dst, "null"...)
	}
	inText := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case inText && c == '\\' && i+1 < len(raw):
			dst = append(dst, c)
			i++
			c = raw[i]
		case c == '"':
			inText = !inText
		case !inText && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// object appends the members of one JSON object.
type object struct {
	dst  []byte
	some bool
}

func newObject(dst []byte) object { return object{dst: append(dst, '{')} }

func (o *object) key(name string) {
	if o.some {
		o.dst = append(o.dst, ',')
	}
	o.some = true
	o.dst = append(o.dst, '"')
	o.dst = append(o.dst, name...)
	o.dst = append(o.dst, '"', ':')
}

func (o *object) text(name, v string) {
	o.key(name)
	o.dst = AppendText(o.dst, v)
}

// maybe leaves an empty text out.
func (o *object) maybe(name, v string) {
	if v != "" {
		o.text(name, v)
	}
}

func (o *object) number(name string, v uint64) {
	o.key(name)
	o.dst = strconv.AppendUint(o.dst, v, 10)
}

// flag leaves false out.
func (o *object) flag(name string, v bool) {
	if v {
		o.key(name)
		o.dst = append(o.dst, "true"...)
	}
}

func (o *object) raw(name string, v pluginapi.Raw) {
	o.key(name)
	o.dst = AppendRaw(o.dst, v)
}

func (o *object) end() []byte { return append(o.dst, '}') }

// array appends vs as the member name.
func array[T any](o *object, name string, vs []T, elem func([]byte, *T) []byte) {
	o.key(name)
	o.dst = append(o.dst, '[')
	for i := range vs {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		o.dst = elem(o.dst, &vs[i])
	}
	o.dst = append(o.dst, ']')
}
