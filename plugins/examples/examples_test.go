// Package examples_test runs the example plugins that are written in other
// languages than Go.
package examples_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(t testing.TB, folder, module string) *wasm.Plugin {
	t.Helper()
	code, err := os.ReadFile(filepath.Join(folder, module))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(folder, pluginapi.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := wasm.New(t.Context(), wasm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	p, err := r.Load(t.Context(), wasm.Module{Path: module, Wasm: code, SidecarManifest: manifest})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheHookInCDeniesWhatDeletes(t *testing.T) {
	p := load(t, "c-hook", "hook.wasm")
	for _, c := range []struct {
		name string
		call pluginapi.ToolCall
		want pluginapi.Action
	}{
		{"a tool that deletes", pluginapi.ToolCall{ID: "1", Name: "delete_file", Arguments: pluginapi.Raw(`{}`)}, pluginapi.Deny},
		{"its bare name", pluginapi.ToolCall{ID: "1", Name: "delete", Arguments: pluginapi.Raw(`{}`)}, pluginapi.Deny},
		{"one that doesn't", pluginapi.ToolCall{ID: "1", Name: "read_file", Arguments: pluginapi.Raw(`{}`)}, pluginapi.Continue},
		{"the word further on", pluginapi.ToolCall{ID: "1", Name: "undelete", Arguments: pluginapi.Raw(`{}`)}, pluginapi.Continue},
		{"a shorter name", pluginapi.ToolCall{ID: "1", Name: "del", Arguments: pluginapi.Raw(`{}`)}, pluginapi.Continue},
		{"the word in the arguments", pluginapi.ToolCall{ID: "1", Name: "read", Arguments: pluginapi.Raw(`{"name":"delete"}`)}, pluginapi.Continue},
		{"a name in the id", pluginapi.ToolCall{ID: `"name":"delete`, Name: "read", Arguments: pluginapi.Raw(`{}`)}, pluginapi.Continue},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, err := json.Marshal(c.call)
			if err != nil {
				t.Fatal(err)
			}
			session := pluginapi.SessionInfo{ID: `x"document":{"name":"delete`}
			d, _, err := p.Hook().Run(t.Context(), plugin.Session{Info: session}, &pluginapi.HookInput{Point: pluginapi.BeforeTool, Session: session, Document: doc})
			if err != nil {
				t.Fatal(err)
			}
			if d.Action != c.want || d.Validate(pluginapi.BeforeTool, false) != nil {
				t.Errorf("got %+v, want %s", d, c.want)
			}
		})
	}
}
