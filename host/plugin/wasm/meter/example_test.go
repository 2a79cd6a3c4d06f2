package meter_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// A host provides one function to all metered modules of a runtime. It is called
// with the context of the call that is running, so that is where deadline and
// cancellation are looked at.
func ExampleRewrite() {
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer func() { _ = rt.Close(ctx) }()

	refill := api.GoFunc(func(ctx context.Context, stack []uint64) {
		if ctx.Err() != nil {
			stack[0] = api.EncodeI64(meter.Refuse)
			return
		}
		stack[0] = api.EncodeI64(meter.Quantum)
	})
	_, err := rt.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoFunction(refill, []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(meter.ImportName).Instantiate(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	metered, err := meter.Rewrite(program(endless), meter.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	guest, err := rt.Instantiate(ctx, metered)
	if err != nil {
		fmt.Println(err)
		return
	}
	call, cancel := context.WithCancel(ctx)
	cancel()
	_, err = guest.ExportedFunction("f0").Call(call)
	line, _, _ := strings.Cut(err.Error(), "\n")
	fmt.Println(line)
	// Output: wasm error: unreachable
}
