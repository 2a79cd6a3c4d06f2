package meter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// script is a file of the WebAssembly specification's test suite, of which the
// engine's module brings a compiled copy.
type script struct {
	Commands []struct {
		Type     string
		Line     int
		Filename string
		Action   struct {
			Type, Field, Module string
			Args                []argument
		}
	}
}

// argument is a value of a call; that of a vector is a list of lanes.
type argument struct {
	Type     string
	LaneType string `json:"lane_type"`
	Value    json.RawMessage
}

// words are the argument as the engine takes it.
func (a argument) words(t *testing.T) []uint64 {
	t.Helper()
	if a.Type != "v128" {
		var text string
		if err := json.Unmarshal(a.Value, &text); err != nil {
			t.Fatal(err)
		}
		return []uint64{number(t, text)}
	}
	var lanes []string
	if err := json.Unmarshal(a.Value, &lanes); err != nil {
		t.Fatal(err)
	}
	words := make([]uint64, 2)
	bits := 128 / len(lanes)
	for i, lane := range lanes {
		words[i*bits/64] |= number(t, lane) & (1<<bits - 1) << (i * bits % 64)
	}
	return words
}

// number is the value of one that may be negative; it is 0 for one that is none.
func number(t *testing.T, text string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(text, 10, 64)
	if signed, negative := strconv.ParseInt(text, 10, 64); err != nil && negative == nil {
		return uint64(signed)
	}
	if err != nil && !strings.HasPrefix(text, "nan") {
		t.Fatal(err)
	}
	return v
}

// scripts are those about what the pass touches: control flow, calls, indexes,
// bulk operators, and binary encoding.
var scripts = strings.Fields(`
	binary binary-leb128 block br br_if br_table bulk call call_indirect custom data elem exports fac
	forward func func_ptrs global i64 if imports int_exprs labels left-to-right local_get local_set
	local_tee loop memory memory_copy memory_fill memory_grow memory_init memory_size memory_trap nop
	return select stack start switch table_copy table_init token traps type unreachable
	unreached-invalid unwind
	simd_address simd_align simd_bitwise simd_const simd_conversions simd_i8x16_arith simd_i64x2_arith2
	simd_lane simd_linking simd_load simd_load16_lane simd_load8_lane simd_load_extend simd_load_splat
	simd_load_zero simd_select simd_splat simd_store simd_store32_lane simd_store64_lane`)

func TestModulesOfTheSpecificationBehaveTheSameWhenMetered(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatalf("where is the engine's source? %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(dir)), "internal/integration_test/spectest/v2/testdata")
	var sum specCounts
	for _, name := range scripts {
		data, err := os.ReadFile(filepath.Join(root, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var s script
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { sum.add(runScript(t, root, s)) })
	}
	t.Logf("%+v", sum)
	if sum.Metered < 500 || sum.Calls < 5000 || sum.Invalid < 1000 {
		t.Errorf("compared %+v, want at least 500 modules, 5000 calls and 1000 invalid modules", sum)
	}
}

type specCounts struct {
	Metered, Unsupported, Invalid, Calls, Traps int
}

func (c *specCounts) add(d specCounts) {
	c.Metered += d.Metered
	c.Unsupported += d.Unsupported
	c.Invalid += d.Invalid
	c.Calls += d.Calls
	c.Traps += d.Traps
}

func runScript(t *testing.T, root string, s script) (n specCounts) {
	ctx := context.Background()
	// Small grants of changing size, so that the host is asked at many places.
	var turn int64
	hook := func(context.Context, int64) int64 { turn = (turn + 7) % 23; return turn }
	// With reference types: without, this engine panics on passive element segments.
	config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2)
	plainEngine, meteredEngine := newRuntimeWith(t, config, hook), newRuntimeWith(t, config, hook)
	for _, rt := range []wazero.Runtime{plainEngine, meteredEngine} {
		module, err := os.ReadFile(filepath.Join(root, "../../testdata/spectest.wasm"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName("spectest")); err != nil {
			t.Fatal(err)
		}
	}
	var plain, metered api.Module
	for _, c := range s.Commands {
		if strings.HasSuffix(c.Filename, ".wasm") {
			plain, metered = nil, nil
			module, err := os.ReadFile(filepath.Join(root, c.Filename))
			if err != nil {
				t.Fatal(err)
			}
			original, invalid := plainEngine.CompileModule(ctx, module)
			out, err := meter.Rewrite(module, meter.Options{})
			switch {
			case errors.Is(err, meter.ErrUnsupported):
				n.Unsupported++
				continue
			case err != nil && invalid == nil:
				t.Errorf("line %d: %s is valid, but: %v", c.Line, c.Filename, err)
				continue
			case err != nil:
				n.Invalid++
				continue
			}
			rewritten, err := meteredEngine.CompileModule(ctx, out)
			if (err == nil) != (invalid == nil) {
				t.Errorf("line %d: %s: original: %v, rewritten: %v", c.Line, c.Filename, invalid, err)
			}
			if err != nil || invalid != nil {
				n.Invalid++
				continue
			}
			n.Metered++
			cfg := wazero.NewModuleConfig().WithName("")
			a, errA := plainEngine.InstantiateModule(ctx, original, cfg)
			b, errB := meteredEngine.InstantiateModule(ctx, rewritten, cfg)
			if cause(errA) != cause(errB) {
				t.Errorf("line %d: %s instantiates with %q, metered %q", c.Line, c.Filename, cause(errA), cause(errB))
			}
			if errA == nil && errB == nil {
				plain, metered = a, b
			}
			continue
		}
		if c.Action.Type != "invoke" || c.Action.Module != "" || plain == nil {
			continue
		}
		var args []uint64
		for _, a := range c.Action.Args {
			args = append(args, a.words(t)...)
		}
		want, errA := plain.ExportedFunction(c.Action.Field).Call(ctx, args...)
		got, errB := metered.ExportedFunction(c.Action.Field).Call(ctx, args...)
		if n.Calls++; errA != nil {
			n.Traps++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || cause(errA) != cause(errB) {
			t.Errorf("line %d: %s%v = %v, %q; want %v, %q", c.Line, c.Action.Field, args, got, cause(errB), want, cause(errA))
		}
	}
	return n
}

// cause says why a module or a call ended: the trap, or just that there was an
// error. Texts of other errors name functions by index, or one of several
// imports that are missing.
func cause(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	if _, trap, ok := strings.Cut(line, "wasm error: "); ok {
		return trap
	}
	return "error"
}
