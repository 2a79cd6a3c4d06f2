package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loophost/loophost/pluginapi"
)

// FuzzScrub checks that a known secret never stays, that whatever changes is
// counted, and that JSON stays JSON.
func FuzzScrub(f *testing.F) {
	s, err := decodeConfig(`{"literals":[{"name":"pw","text":"hunter22"}],"patterns":[{"name":"pin","regexp":"pin=(?P<secret>[0-9]+)"}]}`)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"hunter22", "pin=1234 hunhunter22ter22", "postgres://a:hunter22@b", "Bearer abcdefghijklmnop1", join("-----BEGIN PRIVATE", " KEY-----"),
		"password=[redacted:pw]abcdefghijklmnop1", "api_key: \"AAAAaaaa11112222\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := scrubber{rules: s.rules}
		got := once.text(text)
		if (once.total == 0) != (got == text) {
			t.Fatalf("%q became %q, counted %d", text, got, once.total)
		}
		if strings.Contains(got, "hunter22") {
			t.Fatalf("%q keeps a secret: %q", text, got)
		}
		raw, err := json.Marshal(map[string]any{text: []any{text, 1.5, nil, map[string]any{"k": text}}})
		if err != nil {
			t.Fatal(err)
		}
		var out any
		x := scrubber{rules: s.rules}
		if err := json.Unmarshal(x.json(pluginapi.Raw(raw)), &out); err != nil {
			t.Fatalf("%s is no JSON any more: %v", raw, err)
		}
	})
}
