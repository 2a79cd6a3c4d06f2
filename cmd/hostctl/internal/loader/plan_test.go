package loader

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

// manifest is a whole one with what m says; Plan looks at nothing else of a plugin.
func manifest(t *testing.T, m pluginapi.Manifest) []byte {
	t.Helper()
	m.Schema, m.Version, m.APIMin, m.APIMax = 1, "1", 1, 1
	for i := range m.Tools {
		m.Tools[i].InputSchema = pluginapi.Raw(`{"type":"object"}`)
	}
	doc, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// module is the smallest module with a manifest.
func module(t *testing.T, m pluginapi.Manifest) []byte {
	t.Helper()
	out, err := wasm.AppendManifest([]byte("\x00asm\x01\x00\x00\x00"), manifest(t, m))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// library bundles a provider with a tool, a hook, and two tools.
func library(t *testing.T) Library {
	t.Helper()
	all := map[string][]byte{
		DemoPlugin: manifest(t, pluginapi.Manifest{Name: DemoPlugin, Kinds: []pluginapi.Kind{pluginapi.KindProvider, pluginapi.KindTool}, Tools: []pluginapi.ToolSpec{{Name: "count"}}}),
		"guard":    manifest(t, pluginapi.Manifest{Name: "guard", Kinds: []pluginapi.Kind{pluginapi.KindHook}, Hooks: []pluginapi.HookDecl{{Point: pluginapi.BeforeTool}}}),
		"files": manifest(t, pluginapi.Manifest{
			Name: "files", Kinds: []pluginapi.Kind{pluginapi.KindTool}, Tools: []pluginapi.ToolSpec{{Name: "read"}}, Capabilities: []pluginapi.Capability{pluginapi.CapWorkspace},
		}),
		"reader": manifest(t, pluginapi.Manifest{Name: "reader", Kinds: []pluginapi.Kind{pluginapi.KindTool}, Tools: []pluginapi.ToolSpec{{Name: "read"}}}),
	}
	return Library{
		Names:    func() []string { return []string{"files", "guard", "reader", DemoPlugin} },
		Digest:   func(string) (string, error) { return wasm.Digest(nil), nil },
		Manifest: func(name string) ([]byte, error) { return all[name], nil },
		Module: func(name string) ([]byte, error) {
			t.Errorf("%s was unpacked", name)
			return nil, errors.New("not here")
		},
	}
}

func named(args ...string) []settings.PluginRef {
	var out []settings.PluginRef
	for _, a := range args {
		out = append(out, settings.Plugin(a))
	}
	return out
}

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	twin := filepath.Join(dir, "twin.wasm")
	if err := os.WriteFile(twin, module(t, pluginapi.Manifest{Name: "guard", Kinds: []pluginapi.Kind{pluginapi.KindHook}, Hooks: []pluginapi.HookDecl{{Point: pluginapi.BeforeTool}}}), 0o600); err != nil {
		t.Fatal(err)
	}
	option := map[string]settings.Options{"guard": {"rules": json.RawMessage("[]")}}
	cases := []struct {
		name    string
		request Request
		code    exit.Code
		text    string // of the summary, or of the error
	}{
		{"a provider alone", Request{Provider: settings.Plugin(DemoPlugin)}, exit.OK, "provider scripted 1"},
		{"the demo is that provider", Request{Provider: settings.Plugin(Demo)}, exit.OK, "provider scripted 1"},
		{"hooks and tools", Request{Provider: settings.Plugin(Demo), Hooks: named("guard"), Tools: named("reader")}, exit.OK, "provider scripted 1, hooks guard, tools reader"},
		{"a provider's own tools asked for again", Request{Provider: settings.Plugin(Demo), Tools: named(DemoPlugin)}, exit.OK, "provider scripted 1"},
		{"a granted folder", Request{Provider: settings.Plugin(Demo), Tools: named("files"), Workspace: dir}, exit.OK, "tools files"},
		{"options of a hook", Request{Provider: settings.Plugin(Demo), Hooks: named("guard"), HookOptions: option}, exit.OK, "hooks guard"},
		{"a folder that is not granted", Request{Provider: settings.Plugin(Demo), Tools: named("files")}, exit.Usage, "--workspace DIR"},
		{"a folder that is not there", Request{Provider: settings.Plugin(Demo), Workspace: filepath.Join(dir, "none")}, exit.Usage, "is no folder"},
		{"options of a hook that is not used", Request{Provider: settings.Plugin(Demo), HookOptions: option}, exit.Usage, "hook-opt guard"},
		{"options of a provider as a hook's", Request{Provider: settings.Plugin(Demo), HookOptions: map[string]settings.Options{"nobody": {}}}, exit.Usage, "hook-opt nobody"},
		{"options of the demo", Request{Provider: settings.Plugin(Demo), ProviderOptions: settings.Options{"script": json.RawMessage("{}")}}, exit.Usage, "--provider demo takes no options"},
		{"two tools of one name", Request{Provider: settings.Plugin(Demo), Tools: named("files", "reader"), Workspace: dir}, exit.Usage, `tool "read" is offered by files and by reader`},
		{"two plugins of one name", Request{Provider: settings.Plugin(Demo), Hooks: named("guard", twin)}, exit.Usage, `both the plugin "guard"`},
		{"a hook that is none", Request{Provider: settings.Plugin(Demo), Hooks: named("reader")}, exit.Failed, "it is no hook"},
		{"a provider that is none", Request{Provider: settings.Plugin("guard")}, exit.Failed, "it is no provider"},
		{"a name that is not bundled", Request{Provider: settings.Plugin("openai")}, exit.Failed, "files, guard, reader, scripted"},
		{"a path that is not there", Request{Provider: settings.Plugin("./none.wasm")}, exit.Failed, "no such file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			plan, err := library(t).Plan(c.request)
			if c.code == exit.OK {
				if err != nil || !strings.Contains(plan.Summary(), c.text) {
					t.Fatalf("got %v, %v; want %q", plan, err, c.text)
				}
				return
			}
			var usage *exit.UsageError
			var plugin *exit.PluginError
			if errors.As(err, &usage) != (c.code == exit.Usage) || errors.As(err, &plugin) != (c.code == exit.Failed) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want an error of code %d with %q", err, c.code, c.text)
			}
		})
	}
}

func TestGrants(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if g := grants(&Source{Bundled: true}, nil); !g.KV || !g.Clock || !g.Random || g.Workspace != nil {
		t.Errorf("a bundled plugin got %+v", g)
	}
	if g := grants(&Source{Path: "/x.wasm"}, root); !g.KV || g.Clock || g.Random || g.Workspace != root {
		t.Errorf("a plugin by path got %+v", g)
	}
}
