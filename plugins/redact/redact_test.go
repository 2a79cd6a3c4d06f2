package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

// join keeps secret-shaped test values out of the source as a whole, so that
// scanners of repositories stay quiet.
func join(parts ...string) string { return strings.Join(parts, "") }

const filler = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"

func TestBuiltinPatterns(t *testing.T) {
	key := join("-----BEGIN RSA PRIVATE", " KEY-----\nMIIE\nabc\n-----END RSA PRIVATE", " KEY-----")
	cases := []struct{ name, in, want string }{
		{"private-key", "k:\n" + key + "\nend", "k:\n[redacted:private-key]\nend"},
		{"private-key", "cut " + key[:45], "cut [redacted:private-key]"},
		{"aws-access-key", "id " + join("AK", "IA", "ABCDEFGHIJKLMNOP") + ".", "id [redacted:aws-access-key]."},
		{"aws-secret-key", "aws_secret_access_key = " + filler[:40], "aws_secret_access_key = [redacted:aws-secret-key]"},
		{"github-token", join("gh", "p_", filler[:36]), "[redacted:github-token]"},
		{"github-token", join("github", "_pat_", filler[:30]), "[redacted:github-token]"},
		{"gitlab-token", "x " + join("glp", "at-", filler[:20]), "x [redacted:gitlab-token]"},
		{"slack-token", join("xo", "xb-", "1234567890-abcdef"), "[redacted:slack-token]"},
		{"slack-webhook", join("https://hooks.slack", ".com/services/", "T00000000/B00000000/", filler[:24]), "[redacted:slack-webhook]"},
		{"google-api-key", join("AI", "za", filler[:35]), "[redacted:google-api-key]"},
		{"stripe-key", join("sk", "_live_", filler[:24]), "[redacted:stripe-key]"},
		{"npm-token", join("np", "m_", filler[:36]), "[redacted:npm-token]"},
		{"api-key", "use " + join("sk", "-proj-", filler[:30]) + " now", "use [redacted:api-key] now"},
		{"jwt", join("ey", "JhbGciOiJI", ".ey", "JzdWIiOiIx", ".", filler[:20]), "[redacted:jwt]"},
		{"bearer-token", "Authorization: Bearer " + filler[:20], "Authorization: Bearer [redacted:bearer-token]"},
		{"basic-auth", "authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted:basic-auth]"},
		{"url-password", "postgres://app:hunter22@db/x", "postgres://app:[redacted:url-password]@db/x"},
		{"assigned-secret", `{"api_key": "` + filler[:24] + `"}`, `{"api_key": "[redacted:assigned-secret]"}`},
	}
	found := map[string]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found[c.name] = true
			d := prompt(t, "", c.in)
			if d.Action != pluginapi.Mutate || d.Reason != "redacted 1: "+c.name {
				t.Fatalf("got %q, %q; want a mutate by %s", d.Action, d.Reason, c.name)
			}
			if got := text(t, d); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			// What was redacted once is left alone.
			if again := prompt(t, "", c.want); again.Action != pluginapi.Continue {
				t.Errorf("again: got %+v, want continue", again)
			}
			if off := prompt(t, `{"builtin": false}`, c.in); off.Action != pluginapi.Continue {
				t.Errorf("without built-in patterns: got %+v, want continue", off)
			}
		})
	}
	for _, p := range builtins {
		if !found[p.name] {
			t.Errorf("the built-in %s has no case", p.name)
		}
	}
}

func TestHarmlessTextStaysAsItIs(t *testing.T) {
	for _, s := range []string{
		"", "nothing to see", "a bearer of bad news arrives tomorrow morning", "password := readPasswordFromTerminal()",
		"const apiKey = process.env.API_KEY", "sk-learn-compatible-estimators-everywhere", "http://localhost:8080/a@b", "https://example.org/x:y",
		"commit 9c19bd5f6a1e2d3c4b5a69788796a5b4c3d2e1f0", "token_bucket_refill_interval", "basic authorisation is explained below",
	} {
		if d := prompt(t, "", s); d.Action != pluginapi.Continue {
			t.Errorf("%q: got %+v, want continue", s, d)
		}
	}
}

// prompt runs the hook on a prompt.
func prompt(t *testing.T, config, s string) pluginapi.Decision {
	t.Helper()
	h := &guesttest.Host{Config: config}
	d, err := h.Hook(newPlugin(), pluginapi.BeforePrompt, pluginapi.PromptDoc{Text: s})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func text(t *testing.T, d pluginapi.Decision) string {
	t.Helper()
	var p pluginapi.PromptDoc
	if err := json.Unmarshal(d.Document, &p); err != nil {
		t.Fatal(err)
	}
	return p.Text
}

func TestOwnSecrets(t *testing.T) {
	cases := []struct{ name, config, in, want, reason string }{
		{
			"a literal, everywhere", `{"literals": [{"name": "pw", "text": "s3same"}]}`,
			"s3same and s3same", "[redacted:pw] and [redacted:pw]", "redacted 2: pw",
		},
		{
			"the longer of two literals goes first", `{"literals": [{"name": "short", "text": "open"}, {"name": "long", "text": "open s3same"}]}`,
			"open s3same, open", "[redacted:long], [redacted:short]", "redacted 2: long, short",
		},
		{
			"a pattern's whole match", `{"patterns": [{"name": "ticket", "regexp": "T-[0-9]+"}]}`,
			"see T-12", "see [redacted:ticket]", "redacted 1: ticket",
		},
		{
			"a pattern's group", `{"patterns": [{"name": "pin", "regexp": "pin=(?P<secret>[0-9]{4})"}]}`,
			"pin=1234 pin=12 pin=9876", "pin=[redacted:pin] pin=12 pin=[redacted:pin]", "redacted 2: pin",
		},
		{
			"own ones before the built-in", `{"literals": [{"name": "mine", "text": "postgres://app:hunter22"}]}`,
			"postgres://app:hunter22@db", "[redacted:mine]@db", "redacted 1: mine",
		},
		{
			"a built-in left out", `{"except": ["url-password"]}`,
			"postgres://app:hunter22@db Bearer " + filler[:20], "postgres://app:hunter22@db Bearer [redacted:bearer-token]", "redacted 1: bearer-token",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := prompt(t, c.config, c.in)
			if got := text(t, d); got != c.want || d.Reason != c.reason {
				t.Errorf("got %q (%s), want %q (%s)", got, d.Reason, c.want, c.reason)
			}
		})
	}
}

func TestEveryPointOfTheManifestIsLookedThrough(t *testing.T) {
	const s, r = "hunter22", "[redacted:pw]"
	call := func(v string) pluginapi.ToolCall {
		return pluginapi.ToolCall{ID: "c", Name: "n", Arguments: pluginapi.Raw(`{"hunter22":["` + v + `",1,{"x":"` + v + `"},null,true],"n":-1.5}`)}
	}
	message := func(v string) pluginapi.Message {
		return pluginapi.Message{Role: pluginapi.RoleAssistant, Text: v, Reasoning: "so " + v, ToolCalls: []pluginapi.ToolCall{call(v)}}
	}
	result := func(v string) pluginapi.ToolResult {
		return pluginapi.ToolResult{CallID: "c", Name: "n", Status: pluginapi.ResultOK, Text: v + "!"}
	}
	tool := func(v string) pluginapi.Message {
		res := result(v)
		return pluginapi.Message{Role: pluginapi.RoleTool, Result: &res}
	}
	n := uint64(7)
	cases := []struct {
		point     pluginapi.HookPoint
		doc, want any
		count     string
	}{
		{pluginapi.BeforePrompt, pluginapi.PromptDoc{Text: s}, pluginapi.PromptDoc{Text: r}, "1"},
		{
			pluginapi.BeforeProvider,
			pluginapi.ProviderRequest{Call: pluginapi.CallInfo{Ordinal: 2}, Model: "m", System: s, Options: pluginapi.Raw(`{"a":1}`), Tools: []pluginapi.ToolSpec{}, Messages: []pluginapi.Message{message(s), tool(s)}},
			pluginapi.ProviderRequest{Call: pluginapi.CallInfo{Ordinal: 2}, Model: "m", System: r, Options: pluginapi.Raw(`{"a":1}`), Tools: []pluginapi.ToolSpec{}, Messages: []pluginapi.Message{message(r), tool(r)}},
			"6",
		},
		{
			pluginapi.AfterProvider,
			pluginapi.AnswerDoc{Message: message(s), Usage: &pluginapi.Usage{OutputTokens: &n}},
			pluginapi.AnswerDoc{Message: message(r), Usage: &pluginapi.Usage{OutputTokens: &n}},
			"4",
		},
		{
			pluginapi.AfterTool,
			pluginapi.ToolResultDoc{Call: call(s), Result: result(s)},
			pluginapi.ToolResultDoc{Call: call(s), Result: result(r)},
			"1",
		},
	}
	var manifest pluginapi.Manifest
	readManifest(t, &manifest)
	for i, c := range cases {
		t.Run(string(c.point), func(t *testing.T) {
			h := &guesttest.Host{Config: `{"before_provider": true, "literals": [{"name": "pw", "text": "hunter22"}]}`}
			d, err := h.Hook(newPlugin(), c.point, c.doc)
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(c.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(d.Document)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d.Reason != "redacted "+c.count+": pw" {
				t.Errorf("reason %q, want %s", d.Reason, c.count)
			}
		})
		if decl := manifest.Hooks[i]; decl.Point != c.point || !decl.Mutates || decl.OnError != pluginapi.OnErrorAbort {
			t.Errorf("the manifest declares %+v", decl)
		}
	}
	if len(manifest.Hooks) != len(cases) {
		t.Errorf("the manifest has %d hooks, the test %d", len(manifest.Hooks), len(cases))
	}
}

func TestBeforeProviderIsLeftAloneUnlessConfigured(t *testing.T) {
	h := new(guesttest.Host)
	req := pluginapi.ProviderRequest{System: "postgres://app:hunter22@db", Messages: []pluginapi.Message{{Role: pluginapi.RoleUser, Text: strings.Repeat("x", 50_000)}}}
	d, err := h.Hook(newPlugin(), pluginapi.BeforeProvider, req)
	if err != nil || d.Action != pluginapi.Continue || h.BytesRead > 4096 {
		t.Errorf("got %+v, %v, after %d bytes; want continue after the front", d, err, h.BytesRead)
	}
}
