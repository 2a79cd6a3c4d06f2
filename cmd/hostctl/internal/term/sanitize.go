// Package term makes foreign text safe and short enough to be shown to a person.
package term

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Safe replaces what could steer a terminal or mislead its reader: control
// characters but newline and tab, bytes that are not UTF-8, and characters that
// change the direction of text. They are shown, not dropped.
func Safe(s string) string {
	clean := true
	for _, r := range s {
		if unsafeRune(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for _, r := range s {
		switch {
		case !unsafeRune(r):
			b.WriteRune(r)
		case r == 0x7f:
			b.WriteRune('␡')
		case r < 0x20:
			b.WriteRune(0x2400 + r) // the picture of the control character
		case r == utf8.RuneError:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

func unsafeRune(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0, r == utf8.RuneError:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	case r == 0x2028, r == 0x2029, r >= 0xe0000 && r <= 0xe007f: // separators; tags, which nobody sees
		return true
	}
	return false
}

// Field makes s safe on one line without losing anything of it: also line ends
// and tabs are shown as pictures.
func Field(s string) string {
	return strings.NewReplacer("\n", "␊", "\t", "␉").Replace(Safe(s))
}

// Line makes s one safe line of at most limit runes, with an ellipsis where it was cut.
func Line(s string, limit int) string {
	s = Safe(strings.Join(strings.Fields(s), " "))
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	cut := 0
	for i := range s {
		if cut == limit-1 {
			return s[:i] + "…"
		}
		cut++
	}
	return s
}
