package plugin_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

// FuzzParseManifest: what is accepted means the same when it is written and read again.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(goodManifest))
	f.Add([]byte(`{"schema":1,"name":"t","version":"1","api_min":1,"api_max":9,"kinds":["tool","provider"],"tools":[{"name":"T","description":"","input_schema":{}}],` +
		`"capabilities":["kv"],"lease":"fresh","limits":{"memory_pages":1},"config":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := plugin.ParseManifest(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("%+v can't be written: %v", m, err)
		}
		if len(again) > pluginapi.MaxManifestBytes {
			return // escapes made it longer than what may be read
		}
		n, err := plugin.ParseManifest(again)
		if err != nil {
			t.Fatalf("%s was accepted, %s is not: %v", data, again, err)
		}
		if third, err := json.Marshal(n); err != nil || !bytes.Equal(third, again) {
			t.Errorf("%s became %s, %v", again, third, err)
		}
	})
}

// FuzzDecision: a decision that a point accepts keeps the contract's promises.
func FuzzDecision(f *testing.F) {
	for i := range pluginapi.HookPoints() {
		f.Add([]byte(`{"action":"continue"}`), uint8(i), false)
		f.Add([]byte(`{"action":"mutate","document":{}}`), uint8(i), true)
		f.Add([]byte(`{"action":"inject","text":"t","reason":"r"}`), uint8(i), true)
		f.Add([]byte(`{"action":"stop","reason":"r","code":"no_progress"}`), uint8(i), false)
		f.Add([]byte(`{"action":"deny","reason":"r"}`), uint8(i), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint8, mutates bool) {
		var d pluginapi.Decision
		if strictjson.Unmarshal(data, &d) != nil {
			return
		}
		point := pluginapi.HookPoints()[int(n)%len(pluginapi.HookPoints())]
		if d.Validate(point, mutates) != nil {
			return
		}
		switch {
		case !point.Accepts(d.Action):
			t.Errorf("%s does not accept %s", point, d.Action)
		case len(d.Reason) > pluginapi.MaxDecisionReason || !utf8.ValidString(d.Reason):
			t.Errorf("the reason has %d bytes, or is not UTF-8", len(d.Reason))
		case d.Reason == "" && (d.Action.EndsChain() || d.Action == pluginapi.Stop):
			t.Errorf("%s without a reason", d.Action)
		case (d.Text != "") != (d.Action == pluginapi.Inject):
			t.Errorf("%s with text %q", d.Action, d.Text)
		case (len(d.Document) > 0) != (d.Action == pluginapi.Mutate), d.Action == pluginapi.Mutate && !mutates:
			t.Errorf("%s with document %s, mutates %v", d.Action, d.Document, mutates)
		case d.Code != "" && d.Action != pluginapi.Stop:
			t.Errorf("%s with code %s", d.Action, d.Code)
		}
	})
}

// FuzzRewrite: whatever a hook makes of a document, the host's later decoding of
// it works, and what L-9 rests on is as it was.
func FuzzRewrite(f *testing.F) {
	docs := documents(f)
	var points []pluginapi.HookPoint
	for _, p := range pluginapi.HookPoints() {
		if p.MayMutate() {
			f.Add(docs[p], uint8(len(points)))
			f.Add(bytes.Replace(docs[p], []byte("c1"), []byte("c2"), 1), uint8(len(points)))
			points = append(points, p)
		}
	}
	f.Fuzz(func(t *testing.T, after []byte, n uint8) {
		point := points[int(n)%len(points)]
		v := runRewrite(t, point, docs[point], after)
		if !v.Mutated {
			if v.End == nil || v.End.Action != pluginapi.Abort || !bytes.Equal(v.Document, docs[point]) {
				t.Fatalf("a refused rewrite: got end %+v and document %s", v.End, v.Document)
			}
			return
		}
		switch point {
		case pluginapi.BeforePrompt:
			if _, changed := both[pluginapi.PromptDoc](t, docs[point], v.Document); changed.Text == "" {
				t.Error("the prompt is empty")
			}
		case pluginapi.BeforeProvider:
			old, changed := both[pluginapi.ProviderRequest](t, docs[point], v.Document)
			if changed.Call != old.Call || len(changed.Messages) == 0 {
				t.Errorf("call %+v and %d messages", changed.Call, len(changed.Messages))
			}
		case pluginapi.AfterProvider:
			old, changed := both[pluginapi.AnswerDoc](t, docs[point], v.Document)
			if changed.Message.Role != pluginapi.RoleAssistant || !cmp.Equal(old.Usage, changed.Usage) {
				t.Errorf("role %s, usage %+v", changed.Message.Role, changed.Usage)
			}
			ids := map[string]bool{"": true}
			for _, call := range changed.Message.ToolCalls {
				if ids[call.ID] {
					t.Errorf("id %q is empty or used twice", call.ID)
				}
				ids[call.ID] = true
			}
		case pluginapi.BeforeTool:
			if old, changed := both[pluginapi.ToolCall](t, docs[point], v.Document); changed.ID != old.ID {
				t.Errorf("id %q, was %q", changed.ID, old.ID)
			}
		case pluginapi.AfterTool:
			old, changed := both[pluginapi.ToolResultDoc](t, docs[point], v.Document)
			if !sameRaw(old.Call.Arguments, changed.Call.Arguments) || changed.Call.ID != old.Call.ID || changed.Call.Name != old.Call.Name {
				t.Errorf("call %+v, was %+v", changed.Call, old.Call)
			}
			if r := changed.Result; r.CallID != old.Result.CallID || r.Name != old.Result.Name || (r.Status != pluginapi.ResultOK && r.Status != pluginapi.ResultError) {
				t.Errorf("result %+v, was %+v", r, old.Result)
			}
		}
	})
}

func both[T any](t *testing.T, before, after []byte) (old, changed T) {
	t.Helper()
	if err := json.Unmarshal(before, &old); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(after, &changed); err != nil {
		t.Fatalf("an accepted rewrite does not decode: %v", err)
	}
	return old, changed
}

// sameRaw compares JSON by value, with numbers as they are written.
func sameRaw(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var values [2]any
	for i, raw := range []json.RawMessage{a, b} {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if decoder.Decode(&values[i]) != nil {
			return false
		}
	}
	return cmp.Equal(values[0], values[1])
}
