package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// guests builds each test guest once, and keeps its machine code for all tests.
var guests struct {
	dir  string
	once sync.Once
	wasm []byte
	err  error
}

// goGuest is testdata/guest, built by the Go toolchain.
func goGuest(t testing.TB) []byte {
	t.Helper()
	guests.once.Do(func() {
		out := filepath.Join(guests.dir, "guest.wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./testdata/guest")
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if text, err := cmd.CombinedOutput(); err != nil {
			guests.err = fmt.Errorf("%w\n%s", err, text)
			return
		}
		guests.wasm, guests.err = os.ReadFile(out)
	})
	if guests.err != nil {
		t.Fatal(guests.err)
	}
	return guests.wasm
}

// manifest is a valid one for all kinds and capabilities.
func manifest() pluginapi.Manifest {
	return pluginapi.Manifest{
		Schema: 1, Name: "guest", Version: "1.0", APIMin: 1, APIMax: 1,
		Kinds:        []pluginapi.Kind{pluginapi.KindHook, pluginapi.KindProvider, pluginapi.KindTool},
		Hooks:        []pluginapi.HookDecl{{Point: pluginapi.BeforeTool, Mutates: true}},
		Tools:        []pluginapi.ToolSpec{{Name: "do", Description: "does it", InputSchema: pluginapi.Raw(`{"type":"object"}`)}},
		Capabilities: []pluginapi.Capability{pluginapi.CapKV, pluginapi.CapClock, pluginapi.CapRandom, pluginapi.CapWorkspace},
	}
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newRuntime is closed at the end of the test; all share one folder of machine code.
func newRuntime(t testing.TB, cfg Config) *Runtime {
	t.Helper()
	if cfg.CacheDir == "" {
		cfg.CacheDir = filepath.Join(guests.dir, "cache")
	}
	if cfg.Limits.CompileTimeout == 0 {
		cfg.Limits.CompileTimeout = 10 * time.Minute // under the race detector, on a busy machine
	}
	r, err := New(t.Context(), cfg)
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
	return r
}

// load is the Go guest with a manifest that change may change.
func load(t testing.TB, cfg Config, grants Grants, change func(*pluginapi.Manifest)) *Plugin {
	t.Helper()
	m := manifest()
	if change != nil {
		change(&m)
	}
	return loadModule(t, cfg, Module{Wasm: goGuest(t), SidecarManifest: encode(t, m), Grants: grants})
}

func loadModule(t testing.TB, cfg Config, m Module) *Plugin {
	t.Helper()
	p, err := newRuntime(t, cfg).Load(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var session = plugin.Session{Info: pluginapi.SessionInfo{ID: "s1", ExecutionID: "e1", Generation: "g1", Revision: 7}}

func command(do, arg string) pluginapi.Raw {
	return pluginapi.Raw(fmt.Sprintf(`{"do":"%s","arg":"%s"}`, do, arg))
}

// hook runs a command through the plugin's hook.
func hook(ctx context.Context, p *Plugin, do, arg string) (pluginapi.Decision, error) {
	d, _, err := p.Hook().Run(ctx, session, &pluginapi.HookInput{Point: pluginapi.BeforeTool, Session: session.Info, Document: command(do, arg)})
	return d, err
}

// ask runs a command through the plugin's tool and gives its text.
func ask(t *testing.T, p *Plugin, do, arg string) string {
	t.Helper()
	return askIn(t, p, session, do, arg)
}

func askIn(t *testing.T, p *Plugin, s plugin.Session, do, arg string) string {
	t.Helper()
	out, _, err := p.Tool().Call(t.Context(), s, pluginapi.ToolCall{ID: "1", Name: "do", Arguments: command(do, arg)})
	if err != nil {
		t.Fatalf("%s %s: %v", do, arg, err)
	}
	return out.Text
}
