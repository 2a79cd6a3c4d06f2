package meter_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// features is what plugins are compiled with: version 2 without reference types.
const features = api.CoreFeaturesV2 &^ api.CoreFeatureReferenceTypes

// refill is the host's side of a metered module.
type refill func(ctx context.Context, left int64) int64

func always(grant int64) refill { return func(context.Context, int64) int64 { return grant } }

// newRuntime returns an engine with WASI and the function that metered modules
// ask for fuel; memory is limited to the given number of pages.
func newRuntime(t testing.TB, pages uint32, hook refill) wazero.Runtime {
	t.Helper()
	return newRuntimeWith(t, wazero.NewRuntimeConfig().WithCoreFeatures(features).WithMemoryLimitPages(pages), hook)
}

func newRuntimeWith(t testing.TB, config wazero.RuntimeConfig, hook refill) wazero.Runtime {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, config)
	t.Cleanup(func() { _ = rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	_, err := rt.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
			stack[0] = api.EncodeI64(hook(ctx, int64(stack[0])))
		}), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(meter.ImportName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func rewrite(t testing.TB, module []byte) []byte {
	t.Helper()
	out, err := meter.Rewrite(module, meter.Options{})
	if err != nil {
		t.Fatalf("Rewrite: %v", err)
	}
	return out
}

func instantiate(t testing.TB, rt wazero.Runtime, module []byte) api.Module {
	t.Helper()
	ctx := context.Background()
	compiled, err := rt.CompileModule(ctx, module)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	return mod
}

// goGuest compiles testdata/guest; the go command caches the work.
func goGuest(t testing.TB) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build of the guest: %v\n%s", err, msg)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}
