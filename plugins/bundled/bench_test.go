package bundled_test

import (
	"strings"
	"testing"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

// BenchmarkToolGuard is a whole hook call with a document of about 1 KiB, as a
// host makes it.
func BenchmarkToolGuard(b *testing.B) {
	p := load(b, "tool-guard", `{"rules": [{"tool": "write_*", "action": "deny"}]}`, wasm.Grants{})
	in := &pluginapi.HookInput{
		Point: pluginapi.BeforeTool, Session: info,
		Document: pluginapi.Raw(`{"id":"call-1","name":"read_file","arguments":{"path":"` + strings.Repeat("x", 900) + `"}}`),
	}
	hook, session := p.Hook(), plugin.Session{Info: info}
	b.SetBytes(int64(len(in.Document)))
	for b.Loop() {
		if d, _, err := hook.Run(b.Context(), session, in); err != nil || d.Action != pluginapi.Continue {
			b.Fatal(d, err)
		}
	}
}

// BenchmarkScripted is a provider call in a session with 1 MiB of history, of
// which the provider reads the front.
func BenchmarkScripted(b *testing.B) {
	p := load(b, "scripted", `{"script": {"steps": [{"text": "one"}], "repeat": true}}`, wasm.Grants{})
	req := &plugin.Request{ProviderRequest: pluginapi.ProviderRequest{
		Call: pluginapi.CallInfo{Ordinal: 1}, Messages: []pluginapi.Message{{Role: pluginapi.RoleUser}},
	}}
	req.Encoded = [][]byte{[]byte(`{"role":"user","text":"` + strings.Repeat("x", 1<<20) + `"}`)}
	provider, session := p.Provider(), plugin.Session{Info: info}
	for b.Loop() {
		if _, err := provider.Complete(b.Context(), session, req, func(pluginapi.Chunk) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
