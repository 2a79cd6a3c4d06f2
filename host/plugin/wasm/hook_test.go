package wasm

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loophost/loophost/pluginapi"
)

// The hook's input is encoded by hand: it must not fall behind the contract.
func TestHookInputIsWhatEncodingJSONWrites(t *testing.T) {
	value := func(t *rapid.T, data []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		return v
	}
	rapid.Check(t, func(t *rapid.T) {
		in := &pluginapi.HookInput{
			Point:   rapid.SampledFrom(pluginapi.HookPoints()).Draw(t, "point"),
			Session: rapid.Make[pluginapi.SessionInfo]().Draw(t, "session"),
			Loop:    rapid.Make[pluginapi.LoopInfo]().Draw(t, "loop"),
		}
		if doc := rapid.SampledFrom([]string{"", "null", `{"a":[1,{}]}`}).Draw(t, "document"); doc != "" {
			in.Document = pluginapi.Raw(doc)
		}
		want, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		r := hookInput(in)
		got := make([]byte, r.size)
		if n := r.readAt(got, 0); int64(n) != r.size {
			t.Fatalf("read %d bytes of %d", n, r.size)
		}
		if d := cmp.Diff(value(t, want), value(t, got)); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	})
	got := hookInput(&pluginapi.HookInput{Session: pluginapi.SessionInfo{ID: "a\xffb"}})
	b := make([]byte, got.size)
	got.readAt(b, 0)
	if !json.Valid(b) || !bytes.Contains(b, []byte("a\ufffdb")) {
		t.Errorf("an id that isn't UTF-8 gave %q", b)
	}
}
