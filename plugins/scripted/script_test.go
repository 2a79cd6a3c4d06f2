package main

import (
	"strings"
	"testing"
)

func TestScriptErrorsSayWhatIsWrong(t *testing.T) {
	cases := []struct{ name, config, want string }{
		{"not JSON", `{"script": "{steps: []}"}`, "the script: json: unexpected character, want a name at byte 1"},
		{"an unknown setting", `{"scirpt": {}}`, "unknown field"},
		{"no steps", `{"script": {"steps": []}}`, `"steps" is empty`},
		{"a step without content", `{"script": {"steps": [{"text": "a"}, {"delay_ms": 5}]}}`, "step 2 has none of text, tool_calls and error"},
		{"an unknown field of a step", `{"script": {"steps": [{"txt": "a"}]}}`, `unknown field "txt"`},
		{"a duplicate field", `{"script": {"steps": [{"text": "a", "text": "b"}]}}`, `duplicate field "text"`},
		{"a tool call without a name", `{"script": {"steps": [{"tool_calls": [{"arguments": {}}]}]}}`, "a tool call has no name"},
		{"arguments that are no object", `{"script": {"steps": [{"tool_calls": [{"name": "a", "arguments": [1]}]}]}}`, "is not an object"},
		{"an unknown error kind", `{"script": {"steps": [{"error": {"kind": "sad"}}]}}`, "unknown error kind sad"},
		{"a delay over an hour", `{"script": {"steps": [{"text": "", "delay_ms": 3600001}]}}`, "delay_ms over"},
		{"no chunks", `{"script": {"steps": [{"text": "", "chunks": 0}]}}`, "chunks is not in"},
		{"a finish that isn't one", `{"script": {"steps": [{"text": "", "finish": "done"}]}}`, "finish is not"},
		{"bytes after it", `{"script": "{\"steps\":[{\"text\":\"\"}]} x"}`, "unexpected bytes after"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := decodeConfig(c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
