package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loophost/loophost/pluginapi/guest/wire"
)

func TestText(t *testing.T) {
	cases := []struct{ name, in, want, fails string }{
		{"plain", `"abc"`, "abc", ""},
		{"empty", `""`, "", ""},
		{"two-byte escapes", `"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t", ""},
		{"a NUL", `"a\u0000b"`, "a\x00b", ""},
		{"hexadecimal digits of both cases", `"\u00e4\u00E4"`, "ää", ""},
		{"a surrogate pair", `"\ud83c\udf0a!"`, "🌊!", ""},
		{"a lone high surrogate", `"\ud83cx"`, "\ufffdx", ""},
		{"a lone low surrogate", `"\udf0a"`, "\ufffd", ""},
		{"a high surrogate before another escape", `"\ud83c\u0041"`, "\ufffdA", ""},
		{"two high surrogates before a low one", `"\ud83c\ud83c\udf0a"`, "\ufffd🌊", ""},
		{"UTF-8 as it is", `"äöü🌊"`, "äöü🌊", ""},
		{"U+FFFD as it is", "\"\ufffd\"", "\ufffd", ""},
		{"an unknown escape", `"\x"`, "", "invalid escape at byte 1"},
		{"a short escape", `"\u12"`, "", "invalid escape at byte 1"},
		{"an escape cut off", `"\`, "", "invalid escape at byte 1"},
		{"a control character", "\"a\nb\"", "", "control character in a string at byte 2"},
		{"a stray byte", "\"a\xffb\"", "", "invalid UTF-8 at byte 2"},
		{"an overlong form", "\"\xc0\x80\"", "", "invalid UTF-8 at byte 1"},
		{"a surrogate in UTF-8", "\"\xed\xa0\x80\"", "", "invalid UTF-8 at byte 1"},
		{"a rune cut off", "\"\xf0\x9f\x8c\"", "", "invalid UTF-8 at byte 1"},
		{"no end", `"abc`, "", "unexpected end in a string at byte 4"},
		{"not a string", `1`, "", "unexpected character, want a string at byte 0"},
		{"nothing", ` `, "", "unexpected end, want a string at byte 1"},
		{"something behind it", `"a" "b"`, "a", "unexpected bytes after the document at byte 4"},
		{"a NUL behind it", "\"a\"\x00", "a", "unexpected bytes after the document at byte 3"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := wire.NewReader(c.in)
			got := r.Text()
			check(t, r.End(), c.fails)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.fails == "" {
				var std string
				if err := json.Unmarshal([]byte(c.in), &std); err != nil || std != got {
					t.Errorf("encoding/json reads %q (%v), this package %q", std, err, got)
				}
			}
		})
	}
}

func TestEveryByteIsSeenAtEveryPlaceOfAString(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			s := strings.Repeat("x", at) + string([]byte{byte(c)}) + strings.Repeat("~ ", 6)
			r := wire.NewReader(`"` + s + `"`)
			got := r.Text()
			plain := c >= 0x20 && c < 0x80 && c != '"' && c != '\\'
			if err := r.End(); plain != (err == nil) || (plain && got != s) {
				t.Errorf("byte %#x at %d: got %q, %v", c, at, got, err)
			}
			var back string
			if err := json.Unmarshal(wire.AppendText(nil, s), &back); err != nil || (c < 0x80 && back != s) {
				t.Errorf("byte %#x at %d: written as %s (%v)", c, at, wire.AppendText(nil, s), err)
			}
		}
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("got error %v, want none", err)
		}
		return
	}
	var e *wire.Error
	if !errors.As(err, &e) || err.Error() != "json: "+want {
		t.Errorf("got error %v, want json: %s", err, want)
	}
}

func TestNumbers(t *testing.T) {
	u64 := func(r *wire.Reader) any { return r.Uint64() }
	u32 := func(r *wire.Reader) any { return r.Uint32() }
	i64 := func(r *wire.Reader) any { return r.Int64() }
	lit := func(r *wire.Reader) any { return r.Number() }
	cases := []struct {
		name, in string
		read     func(*wire.Reader) any
		want     any
		fails    string
	}{
		{"the greatest u64", "18446744073709551615", u64, uint64(18446744073709551615), ""},
		{"one more", "18446744073709551616", u64, uint64(0), "want a whole number in range at byte 0"},
		{"far more", "99999999999999999999999", u64, uint64(0), "want a whole number in range at byte 0"},
		{"the greatest u32", "4294967295", u32, uint32(4294967295), ""},
		{"a u32 and one more", "4294967296", u32, uint32(0), "want a whole number in range at byte 0"},
		{"zero", "0", u64, uint64(0), ""},
		{"a leading zero", "01", u64, uint64(0), "unexpected bytes after the document at byte 1"},
		{"negative where none may be", "-1", u64, uint64(0), "want a whole number in range at byte 0"},
		{"a fraction", "1.0", u64, uint64(0), "want a whole number in range at byte 0"},
		{"an exponent", "1e3", u64, uint64(0), "want a whole number in range at byte 0"},
		{"the least i64", "-9223372036854775808", i64, int64(-9223372036854775808), ""},
		{"one less", "-9223372036854775809", i64, int64(0), "want a whole number of 64 bits at byte 0"},
		{"a negative fraction", "-1.5", i64, int64(0), "want a whole number of 64 bits at byte 0"},
		{"the greatest i64", "9223372036854775807", i64, int64(9223372036854775807), ""},
		{"a literal", "-0.25e+10", lit, "-0.25e+10", ""},
		{"a literal with a bare point", "1.", lit, "", "unexpected end, want a digit at byte 2"},
		{"a literal with a bare exponent", "1e-", lit, "", "unexpected end, want a digit at byte 3"},
		{"a sign alone", "-", lit, "", "unexpected end, want a digit at byte 1"},
		{"a plus sign", "+1", lit, "", "unexpected character, want a digit at byte 0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := wire.NewReader(c.in)
			got := c.read(r)
			check(t, r.End(), c.fails)
			if c.fails == "" && got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestRawTakesOneValueAndRefusesWhatIsNoJSON(t *testing.T) {
	good := []string{
		`{}`, `[]`, `{"a":[1,{"b":null},"]"],"c":{}}`, ` [ true , false , null ] `, `-1.5e3`, `"\ud800"`,
		`[[[[]]]]`, `{"a":{"a":{"a":1}},"a":2}`,
		strings.Repeat("[", wire.MaxDepth) + strings.Repeat("]", wire.MaxDepth),
	}
	for _, in := range good {
		r := wire.NewReader(in)
		got := r.Raw()
		if err := r.End(); err != nil || got != strings.TrimSpace(in) {
			t.Errorf("%.40s: got %.40q, %v", in, got, err)
		}
	}
	bad := []string{
		``, `{`, `[`, `{]`, `[}`, `[1,]`, `{"a":1,}`, `{"a"}`, `{"a" 1}`, `{a:1}`, `{1:1}`, `[1 2]`, `{"a":1 "b":2}`, `{,}`, `[,1]`,
		`tru`, `nulls`, `[nul]`, `'a'`, `[1]]`, `{}{}`, "[\"\xff\"]", "[\"\x01\"]", `[01]`, `NaN`, "\ufeff{}",
		strings.Repeat("[", wire.MaxDepth+1) + strings.Repeat("]", wire.MaxDepth+1),
	}
	for _, in := range bad {
		r := wire.NewReader(in)
		r.Raw()
		if err := r.End(); err == nil {
			t.Errorf("%.40q: want an error", in)
		}
	}
}

func TestTheFirstErrorSticks(t *testing.T) {
	r := wire.NewReader(`{"a": tru, "b": 2}`)
	f := r.Fields([]string{"a", "b"})
	walked := 0
	for _, ok := f.Next(); ok; _, ok = f.Next() {
		walked++
		r.Bool()
	}
	if walked != 1 {
		t.Errorf("walked %d fields, want 1", walked)
	}
	if r.Text() != "" || r.Uint64() != 0 || r.Raw() != "" || r.Array() || r.Elem() || r.Null() || r.Kind() != wire.KindNone {
		t.Error("a read after the error gave a value")
	}
	check(t, r.End(), "unexpected character, want true at byte 6")
}

func TestAnErrorShowsLittleOfForeignText(t *testing.T) {
	r := wire.NewReader(`{"` + strings.Repeat("k", 5000) + `": 1}`)
	f := r.Fields([]string{"a"})
	f.Next()
	if err := r.Err(); err == nil || len(err.Error()) > 100 {
		t.Errorf("got %v", err)
	}
}

func TestTheRestIsLoadedOnlyWhenItIsNeeded(t *testing.T) {
	const doc = `{"call":{"ordinal":18,"iteration":2,"round":3,"attempt":1},"model":"m\ud83c\udf0aä","system":"🌊",` +
		`"max_tokens":5,"options":{"a":[true,false,null,-1.5e3]},"tools":[],"messages":[{"role":"user","text":"hi"}]}  `
	whole := wire.NewReader(doc).ProviderRequest()
	for front := range len(doc) {
		loads := 0
		r := wire.NewFrontReader(doc[:front], func() string { loads++; return doc })
		w := r.RequestWalk()
		if got := w.Call(); got != whole.Call || w.Err() != nil {
			t.Fatalf("front of %d bytes: call %+v, %v", front, got, w.Err())
		}
		if end := strings.Index(doc, `,"model"`); loads != 0 && front >= end {
			t.Errorf("front of %d bytes: the rest was loaded for the call's numbers", front)
		}
		got := w.All()
		if err := w.End(); err != nil {
			t.Fatalf("front of %d bytes: %v", front, err)
		}
		if got.Model != whole.Model || got.System != whole.System || string(got.Options) != string(whole.Options) || len(got.Messages) != 1 {
			t.Errorf("front of %d bytes: got %+v, want %+v", front, got, whole)
		}
		if loads > 1 {
			t.Errorf("front of %d bytes: loaded %d times", front, loads)
		}
	}
}

func TestMessagesComeLast(t *testing.T) {
	r := wire.NewReader(`{"messages":[],"model":"m"}`)
	r.ProviderRequest()
	if err := r.End(); err == nil || !strings.Contains(err.Error(), "a field after messages") {
		t.Errorf("got %v, want an error about the order", err)
	}
}
