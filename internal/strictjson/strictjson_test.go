package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

func TestUnmarshalRefuses(t *testing.T) {
	for name, doc := range map[string]string{
		"an unknown member":                          `{"action":"deny","reson":"x"}`,
		"a member in another case":                   `{"Action":"deny"}`,
		"a duplicate member":                         `{"action":"deny","action":"allow"}`,
		"a duplicate member deep in a raw value":     `{"action":"mutate","document":{"a":{"b":1,"b":2}}}`,
		"a second document":                          `{"action":"allow"}{"action":"allow"}`,
		"bytes after the document":                   `{"action":"allow"} x`,
		"a zero byte after the document":             "{\"action\":\"allow\"}\x00",
		"invalid UTF-8 in a string":                  "{\"action\":\"\xff\"}",
		"invalid UTF-8 in a raw value":               "{\"action\":\"mutate\",\"document\":\"\xc3\"}",
		"half a surrogate pair":                      `{"action":"\ud800"}`,
		"a string where a number is asked for":       `{"action":5}`,
		"no document":                                ``,
		"a document cut short":                       `{"action":"allow"`,
		"a comment":                                  `{"action":"allow"/**/}`,
		"a comma before the end":                     `{"action":"allow",}`,
		"a byte order mark":                          "\ufeff{\"action\":\"allow\"}",
		"a document nested deeper than any real one": `{"action":"mutate","document":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			var d pluginapi.Decision
			if err := strictjson.Unmarshal([]byte(doc), &d); err == nil {
				t.Errorf("got %+v, want an error", d)
			}
		})
	}
}

func TestUnmarshalTakesWhatEncodingJSONWrites(t *testing.T) {
	in := pluginapi.Decision{Action: pluginapi.Mutate, Reason: "a <b> & \u2028", Document: json.RawMessage(`{"a":[1,2.5e3,null]}`)}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out pluginapi.Decision
	if err := strictjson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if out.Action != in.Action || out.Reason != in.Reason || string(out.Document) != string(in.Document) {
		t.Errorf("got %+v, want %+v", out, in)
	}
}

func TestUnmarshalKeepsNothingOfItsInput(t *testing.T) {
	data := []byte(`{"action":"mutate","reason":"because","document":{"a":1}}`)
	var d pluginapi.Decision
	if err := strictjson.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if d.Reason != "because" || string(d.Document) != `{"a":1}` {
		t.Errorf("got %q and %q after the input was cleared", d.Reason, d.Document)
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"action":"allow"}`))
	f.Add([]byte(`{"action":"mutate","document":{"a":1,"a":2}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d pluginapi.Decision
		if strictjson.Unmarshal(data, &d) != nil {
			return
		}
		// What strict decoding takes, lenient decoding reads the same way.
		var lenient pluginapi.Decision
		if err := json.Unmarshal(data, &lenient); err != nil {
			t.Fatalf("encoding/json refuses what was accepted: %v", err)
		}
		if d.Action != lenient.Action || d.Reason != lenient.Reason || d.Text != lenient.Text || string(d.Document) != string(lenient.Document) {
			t.Errorf("got %+v, want %+v", d, lenient)
		}
	})
}
