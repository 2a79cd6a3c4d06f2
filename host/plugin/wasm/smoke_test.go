package wasm

import (
	"testing"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func TestSmoke(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	if !p.Metered() {
		t.Error("not metered")
	}
	d, err := hook(t.Context(), p, "calls", "")
	t.Log(d, err)
	t.Log(ask(t, p, "calls", ""))
	res, err := p.Provider().Complete(t.Context(), session, &plugin.Request{ProviderRequest: pluginapi.ProviderRequest{Model: "m", Options: command("calls", ""), Messages: []pluginapi.Message{{Role: "user", Text: "hi"}}}}, func(pluginapi.Chunk) error { return nil })
	t.Log(res, err)
}

func BenchmarkHook(b *testing.B) {
	p := load(b, Config{}, Grants{}, nil)
	doc := make([]byte, 1024)
	for i := range doc {
		doc[i] = '1'
	}
	in := &pluginapi.HookInput{Point: pluginapi.BeforeTool, Session: session.Info, Document: doc}
	h := p.Hook()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := h.Run(b.Context(), session, in); err != nil {
			b.Fatal(err)
		}
	}
}
