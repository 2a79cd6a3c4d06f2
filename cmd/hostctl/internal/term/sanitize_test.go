package term

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain, ünï\tcode\n":       "plain, ünï\tcode\n",
		"\x1b[2J\x1b]0;title\a":    "␛[2J␛]0;title␇",
		"over\rwritten\b":          "over␍written␈",
		"del\x7f nul\x00":          "del␡ nul␀",
		"c1 \u009b31m":             "c1 <U+009B>31m",
		"bidi \u202etxt.exe":       "bidi <U+202E>txt.exe",
		"isolate \u2066x\u2069":    "isolate <U+2066>x<U+2069>",
		"line\u2028separator":      "line<U+2028>separator",
		"bad \xff byte":            "bad \uFFFD byte",
		"family 👨‍👩‍👧 stays whole": "family 👨‍👩‍👧 stays whole",
	} {
		if got := Safe(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{{"a\n b\tc", 10, "a b c"}, {"äöüß", 4, "äöüß"}, {"äöüßx", 4, "äöü…"}, {"", 3, ""}, {"x\x1by", 3, "x␛y"}} {
		if got := Line(c.in, c.limit); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("a\x1b[0mb\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		out := Safe(s)
		if !utf8.ValidString(out) {
			t.Errorf("%q: %q is not valid UTF-8", s, out)
		}
		if i := strings.IndexFunc(out, func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }); i >= 0 {
			t.Errorf("%q: a control character is left at %d in %q", s, i, out)
		}
		if Safe(out) != out {
			t.Errorf("%q: safe text changed again", s)
		}
	})
}
