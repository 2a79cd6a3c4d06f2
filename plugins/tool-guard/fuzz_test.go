package main

import (
	"encoding/json"
	"testing"

	"github.com/loophost/loophost/pluginapi"
)

// FuzzJudge compares what the guard sees with what encoding/json sees.
func FuzzJudge(f *testing.F) {
	f.Add(`{"path":"secrets/a","n":1,"o":{"x":[]}}`)
	f.Add(`{"\u0070ath":"\ud83c\udf0a"}`)
	f.Add(`{"a":1,"a":2}`)
	p, err := decodeConfig(`{"rules":[{"arguments":{"path":"^secrets/"},"action":"deny"},{"action":"mutate","set":{"limit":20}}]}`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		d := p.judge(&pluginapi.ToolCall{ID: "1", Name: "n", Arguments: pluginapi.Raw(args)})
		if err := d.Validate(pluginapi.BeforeTool, true); err != nil {
			t.Fatal(err)
		}
		members, err := readMembers(args)
		if err != nil {
			if d.Action != pluginapi.Deny {
				t.Fatalf("arguments that can't be read: got %+v, want deny", d)
			}
			return
		}
		var std map[string]json.RawMessage
		if err := json.Unmarshal([]byte(args), &std); err != nil || len(std) != len(members) {
			t.Fatalf("%q: the guard reads %d members, encoding/json %d (%v)", args, len(members), len(std), err)
		}
		for _, m := range members {
			var text string
			if json.Unmarshal([]byte(m.raw), &text) == nil && m.raw[0] == '"' && text != m.text() {
				t.Fatalf("%q: the guard reads %q, encoding/json %q", args, m.text(), text)
			}
		}
		if d.Action == pluginapi.Deny {
			return
		}
		var changed struct {
			Arguments map[string]json.RawMessage `json:"arguments"`
		}
		if err := json.Unmarshal(d.Document, &changed); err != nil || string(changed.Arguments["limit"]) != "20" {
			t.Fatalf("%q becomes %s (%v)", args, d.Document, err)
		}
		for name := range std {
			if _, kept := changed.Arguments[name]; !kept {
				t.Fatalf("%q becomes %s: %q is gone", args, d.Document, name)
			}
		}
	})
}
