package bundled_test

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
	"github.com/loophost/loophost/plugins/bundled"
)

// cache is a folder of compiled code for all tests: compiling a module takes a second.
var cache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "loophost-bundled-")
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	cache = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			println(err.Error())
			code = 1
		}
		os.Exit(code)
	}))
}

// load starts a bundled plugin as a host does.
func load(t testing.TB, name, config string, grants wasm.Grants) *wasm.Plugin {
	t.Helper()
	module, err := bundled.Module(name)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := bundled.Digest(name)
	if err != nil {
		t.Fatal(err)
	}
	// The manifest beside the source must say what the one in the module says.
	sidecar, err := os.ReadFile(filepath.Join("..", name, pluginapi.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := wasm.New(t.Context(), wasm.Config{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Load(t.Context(), wasm.Module{
		Path: name, Wasm: module, SidecarManifest: sidecar, Digest: digest, Config: json.RawMessage(config), Grants: grants,
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Metered() {
		t.Errorf("%s can't be metered", name)
	}
	if p.Manifest().Name != name {
		t.Errorf("the manifest's name is %s, want %s", p.Manifest().Name, name)
	}
	return p
}

// entries is a key-value store in memory.
type entries map[string]string

func (e entries) Get(key string) ([]byte, bool) {
	v, ok := e[key]
	return []byte(v), ok
}

func (e entries) Put(key string, value []byte) error {
	e[key] = string(value)
	return nil
}

var info = pluginapi.SessionInfo{
	ID: "0190a000-0000-7000-8000-000000000001", ExecutionID: "0190a000-0000-7000-8000-000000000002",
	Generation: "0190a000-0000-7000-8000-000000000003", Revision: 7,
}

// decide runs a hook.
func decide(t *testing.T, p *wasm.Plugin, kv plugin.KV, point pluginapi.HookPoint, document any) pluginapi.Decision {
	t.Helper()
	doc, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	d, _, err := p.Hook().Run(t.Context(), plugin.Session{Info: info, KV: kv}, &pluginapi.HookInput{Point: point, Session: info, Document: doc})
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range p.Manifest().Hooks {
		if decl.Point == point {
			if err := d.Validate(point, decl.Mutates); err != nil {
				t.Error(err)
			}
		}
	}
	return d
}

// call runs a tool.
func call(t *testing.T, p *wasm.Plugin, tool, args string) pluginapi.ToolOutput {
	t.Helper()
	out, _, err := p.Tool().Call(t.Context(), plugin.Session{Info: info}, pluginapi.ToolCall{ID: "c", Name: tool, Arguments: pluginapi.Raw(args)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
