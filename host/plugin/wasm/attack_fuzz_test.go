package wasm

import (
	"errors"
	"testing"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// FuzzLoad loads and calls whatever module: it is refused, or answers, or its
// fault is told; nothing else comes of it.
func FuzzLoad(f *testing.F) {
	for _, a := range attacks() {
		f.Add(a.module(true).wasm())
	}
	f.Add(tiny{call: join(simd, answer204()), init: ic(0), start: []byte{0x01}, most: 9, table: true, entries: 3}.wasm())
	doc := encode(f, manifest())
	r := newRuntime(f, Config{CacheDir: f.TempDir(), Limits: Limits{
		MemoryPages: 16, HookTimeout: 20 * time.Millisecond, StartTimeout: time.Second, OutputBytes: 1 << 20,
	}})
	f.Fuzz(func(t *testing.T, wasm []byte) {
		p, err := r.Load(t.Context(), Module{Wasm: wasm, SidecarManifest: doc})
		if err != nil {
			if _, ok := errors.AsType[*plugin.Fault](err); !ok {
				t.Fatalf("loading: got %v, want a fault", err)
			}
			return
		}
		if !p.Metered() {
			t.Error("it runs, and is not metered")
		}
		if _, err := hook(t.Context(), p, "", ""); err != nil {
			_, fault := errors.AsType[*plugin.Fault](err)
			_, failure := errors.AsType[*pluginapi.Failure](err)
			if !fault && !failure {
				t.Errorf("calling: got %v, want a fault or a failure", err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
}
