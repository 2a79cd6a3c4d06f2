package format

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// general is what isJSON asks where plainJSON says nothing.
func general(p []byte) bool {
	return jsontext.Value(p).IsValid(jsontext.AllowDuplicateNames(true))
}

func TestPlainTextIsKnownWithoutTheGeneralDecoder(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `""`, ` { "a" : [ 1 , -0.5e+10 , true , false , null ] , "a" : "twice" } `, `0`, `-1E5`,
		`"an answer of the usual length, or somewhat less"`, `"line\nline \"quoted\" \u003ctag\u003e \\ \/ \u2028"`,
		`"naïve ‒ 日本"`, `{"text":"` + strings.Repeat("m", 4_000) + `"}`,
	} {
		if !plainJSON([]byte(text)) || !general([]byte(text)) {
			t.Errorf("%.60s: got plain %t, general %t, want both", text, plainJSON([]byte(text)), general([]byte(text)))
		}
	}
}

func TestWhatIsNotPlainIsLeftToTheGeneralDecoder(t *testing.T) {
	for _, c := range []struct {
		text  string
		valid bool
	}{
		{`"\ud83d\ude00"`, true}, // surrogates
		{strings.Repeat("[", 100) + strings.Repeat("]", 100), true},
		{``, false},
		{` `, false},
		{`{`, false},
		{`{"a"}`, false},
		{`{"a":1,}`, false},
		{`[1,]`, false},
		{`[1 2]`, false},
		{`01`, false},
		{`-`, false},
		{`1.`, false},
		{`1e`, false},
		{`.5`, false},
		{`+1`, false},
		{`tru`, false},
		{`1 1`, false},
		{`"\ud83d"`, false},
		{`"\x"`, false},
		{`"\u12g4"`, false},
		{`"\u12"`, false},
		{`"`, false},
		{`"\`, false},
		{"\"\xff\"", false},
		{"\"eight by\x00\"", false},
		{"\"a\ttab of eight\"", false},
		{"'a'", false},
	} {
		if plainJSON([]byte(c.text)) || isJSON([]byte(c.text)) != c.valid {
			t.Errorf("%.40q: got plain %t, valid %t, want false, %t", c.text, plainJSON([]byte(c.text)), isJSON([]byte(c.text)), c.valid)
		}
	}
}

// What is plain is valid for the general decoder too.
func FuzzPlainJSON(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0.5e+10,true,false,null],"b":"line\n\u003c\"\\ of eight or more bytes"}`, `"\ud83d\ude00"`, `"naïve ‒ 日本"`,
		"\"\x1f in a run of many bytes \x7f\"", `"a \\" `, `[[[["\u00e9"]]]]`, `-0`, `1e400`, "\"\xed\xa0\x80\"", "\"\xc0\x80 overlong\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if plainJSON(p) && !general(p) {
			t.Errorf("%q is plain and not valid", p)
		}
		if isJSON(p) != general(p) {
			t.Errorf("%q: got valid %t, want %t", p, isJSON(p), general(p))
		}
	})
}

func BenchmarkIsJSON(b *testing.B) {
	text := []byte(`{"type":"message","message":{"role":"assistant","text":"` + strings.Repeat("some words ", 340) + `"}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if !isJSON(text) {
			b.Fatal("it is valid")
		}
	}
}
