package meter_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// pair runs modules plain and metered. The metered side never has fuel in its
// tank: every check asks, so that what it pays is known to the unit.
type pair struct {
	plain, metered wazero.Runtime
	paid           *int64
	ticks          *int32
}

func newPair(t testing.TB) pair {
	p := pair{paid: new(int64), ticks: new(int32)}
	hook := func(_ context.Context, left int64) int64 {
		*p.paid -= left
		return 0
	}
	// With reference types: without, this engine panics on passive element segments.
	config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(16)
	p.plain, p.metered = newRuntimeWith(t, config, hook), newRuntimeWith(t, config, hook)
	for _, rt := range []wazero.Runtime{p.plain, p.metered} {
		_, err := rt.NewHostModuleBuilder("host").NewFunctionBuilder().
			WithFunc(func(v int32) int32 { *p.ticks++; return v ^ *p.ticks }).
			Export("tick").Instantiate(context.Background())
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// observation is what a run shows to the outside.
type observation struct {
	results     []string
	ticks       int32
	work        uint64
	globals     [3]uint64
	memory      []byte
	memoryPages uint32
}

func (p pair) observe(t testing.TB, rt wazero.Runtime, wasm []byte) (o observation) {
	t.Helper()
	ctx := context.Background()
	*p.ticks = 0
	compiled, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		t.Fatalf("compile: %v\n%x", err, wasm)
	}
	defer func() { _ = compiled.Close(ctx) }()
	mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	defer func() { _ = mod.Close(ctx) }()
	for i := range uint64(3) {
		got, err := mod.ExportedFunction("run").Call(ctx, i*1000, i<<40)
		o.results = append(o.results, fmt.Sprint(got, cause(err)))
	}
	o.ticks = *p.ticks
	o.work = mod.ExportedGlobal("work").Get()
	for i, name := range []string{"budget", "g32", "g64"} {
		o.globals[i] = mod.ExportedGlobal(name).Get()
	}
	o.memoryPages, _ = mod.Memory().Grow(0)
	o.memory, _ = mod.Memory().Read(0, mod.Memory().Size())
	o.memory = bytes.Clone(o.memory)
	return o
}

// compare fails the test unless the module behaves alike on both sides and paid
// for at least the work that it counted.
func (p pair) compare(t testing.TB, wasm []byte) observation {
	t.Helper()
	want := p.observe(t, p.plain, wasm)
	*p.paid = 0
	got := p.observe(t, p.metered, rewrite(t, wasm))
	paid := *p.paid
	if !bytes.Equal(got.memory, want.memory) {
		t.Errorf("the memories differ")
	}
	got.memory, want.memory = nil, nil
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("metered %s\nwant    %s\n%x", g, w, wasm)
	}
	if uint64(paid) < got.work {
		t.Errorf("paid %d units for at least %d operators\n%x", paid, got.work, wasm)
	}
	return want
}

func TestGeneratedModulesBehaveTheSameWhenMetered(t *testing.T) {
	p := newPair(t)
	rnd := rand.New(rand.NewSource(1))
	ended := map[string]int{}
	for range 500 {
		data := make([]byte, 50+rnd.Intn(3000))
		rnd.Read(data)
		o := p.compare(t, generate(data))
		for _, r := range o.results {
			for _, trap := range []string{"unreachable", "out of bounds memory", "divide by zero", "invalid table", "indirect call", "invalid conversion"} {
				if bytes.Contains([]byte(r), []byte(trap)) {
					ended[trap]++
				}
			}
			if r[len(r)-1] == ' ' || r[len(r)-1] == ']' {
				ended["return"]++
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("ends: %v", ended)
	for _, end := range []string{"return", "unreachable", "out of bounds memory", "divide by zero", "indirect call"} {
		if ended[end] < 5 {
			t.Errorf("%d runs ended by %s, want at least 5: the generator has become too tame", ended[end], end)
		}
	}
}

func FuzzGeneratedModulesBehaveTheSame(f *testing.F) {
	p := newPair(f)
	rnd := rand.New(rand.NewSource(2))
	for range 20 {
		data := make([]byte, 600)
		rnd.Read(data)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8192 {
			return
		}
		p.compare(t, generate(data))
	})
}

// FuzzRewrite feeds arbitrary bytes. What is accepted must be valid exactly if
// the original was; an invalid module that became valid could name what the
// pass has added. Custom sections are no part of that: the engine reads some of
// those that the pass drops.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Add(program(endless))
	f.Add(program(callTree...))
	f.Add(program(fillForever))
	f.Add(indirectForever())
	rnd := rand.New(rand.NewSource(3))
	for range 20 {
		data := make([]byte, 300)
		rnd.Read(data)
		f.Add(generate(data))
	}
	rt := newRuntimeWith(f, wazero.NewRuntimeConfig().WithCoreFeatures(features).WithMemoryLimitPages(16), always(0))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		before := bytes.Clone(wasm)
		out, err := meter.Rewrite(wasm, meter.Options{MaxBytes: 1 << 20})
		if !bytes.Equal(wasm, before) {
			t.Fatal("the input changed")
		}
		if err != nil {
			return
		}
		if len(out) > 1<<20 {
			t.Fatalf("got %d bytes, want at most %d", len(out), 1<<20)
		}
		if again, err := meter.Rewrite(wasm, meter.Options{}); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("a second run gave %d bytes, %v, want the same as the first", len(again), err)
		}
		ctx := context.Background()
		original, invalid := rt.CompileModule(ctx, withoutCustom(wasm))
		rewritten, err := rt.CompileModule(ctx, out)
		if (err == nil) != (invalid == nil) {
			t.Fatalf("original: %v, rewritten: %v", invalid, err)
		}
		if err == nil {
			_, _ = original.Close(ctx), rewritten.Close(ctx)
		}
	})
}

// withoutCustom drops the custom sections of a module that is made of sections.
func withoutCustom(wasm []byte) []byte {
	out, rest := bytes.Clone(wasm[:8]), wasm[8:]
	for len(rest) > 0 {
		size, n := binary.Uvarint(rest[1:])
		next := 1 + n + int(size)
		if rest[0] != 0 {
			out = append(out, rest[:next]...)
		}
		rest = rest[next:]
	}
	return out
}
