package wasm

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

const u32Max = 1<<32 - 1

// locals declares n of type i32.
func locals(n uint32) []byte { return append(appendU32([]byte{1}, n), 0x7f) }

// nest is a function with n locals that are all read within so many nested blocks.
func nest(opener byte, depth, n int) []byte {
	b := locals(uint32(n))
	for range depth {
		b = append(b, opener, 0x40)
	}
	for i := range n {
		b = append(appendU32(append(b, 0x20), uint32(i)), 0x1a)
	}
	for range depth + 1 {
		b = append(b, 0x0b)
	}
	return b
}

// with puts a section into a minimal module, in its place; a section of that id
// that is there already goes.
func with(id byte, body []byte) []byte {
	secs, err := sections(tiny{call: ic(0)}.wasm())
	if err != nil {
		panic(err)
	}
	out, done := append([]byte(nil), preamble...), false
	for _, s := range secs {
		if !done && sectionRank(s.id) >= sectionRank(id) {
			out, done = append(out, sec(id, body)...), true
		}
		if s.id != id {
			out = append(out, s.raw...)
		}
	}
	if !done {
		out = append(out, sec(id, body)...)
	}
	return out
}

// bombs are small modules that make an engine allocate or work without end when
// it trusts the numbers in them.
func bombs() map[string]struct {
	wasm []byte
	says string
} {
	v128 := []byte{0x60, 1, 0x7b, 0} // what the metering pass once did not know
	vectored := func(m tiny) []byte {
		secs, _ := sections(m.wasm())
		out := append([]byte(nil), preamble...)
		for _, s := range secs {
			if s.id == secType {
				out = append(out, sec(secType, join([]byte{s.body[0] + 1}, s.body[1:], v128))...)
				continue
			}
			out = append(out, s.raw...)
		}
		return out
	}
	table := make([]byte, 0, 32<<10)
	table = append(append(table, locals(1000)...), 0x02, 0x40, 0x20, 0, 0x0e)
	table = append(appendU32(table, 16<<10), make([]byte, 16<<10+1)...)
	table = append(table, 0x0b, 0x0b)
	deep := nest(0x02, 2000, 1000)
	return map[string]struct {
		wasm []byte
		says string
	}{
		"types without end":                            {with(secType, appendU32(nil, u32Max)), "ends within"},
		"a type of many values":                        {with(secType, join([]byte{1, 0x60}, appendU32(nil, u32Max))), "ends within"},
		"imports without end":                          {with(secImport, appendU32(nil, u32Max)), "ends within"},
		"functions without end":                        {with(secFunction, appendU32(nil, u32Max)), "ends within"},
		"tables without end":                           {with(secTable, appendU32(nil, u32Max)), "ends within"},
		"globals without end":                          {with(secGlobal, appendU32(nil, u32Max)), "ends within"},
		"exports without end":                          {with(secExport, appendU32(nil, u32Max)), "ends within"},
		"element segments":                             {with(secElement, appendU32(nil, u32Max)), "ends within"},
		"elements without end":                         {with(secElement, join([]byte{1, 0, 0x41, 0, 0x0b}, appendU32(nil, u32Max))), "ends within"},
		"expressions as elements":                      {with(secElement, join([]byte{1, 4, 0x41, 0, 0x0b}, appendU32(nil, u32Max))), "feature"},
		"blocks without end":                           {tiny{call: ic(0), many: 1, manyBody: nest(0x02, 60_000, 0)}.wasm(), "blocks within"},
		"bodies without end":                           {with(secCode, appendU32(nil, u32Max)), "ends within"},
		"data segments":                                {with(secData, appendU32(nil, u32Max)), "ends within"},
		"data without end":                             {with(secData, join([]byte{1, 1}, appendU32(nil, u32Max))), "ends within"},
		"a large table":                                {tiny{call: ic(0), table: true, entries: 1 << 27}.wasm(), "elements"},
		"a large table, with a vector type":            {vectored(tiny{call: ic(0), table: true, entries: 1 << 27}), "elements"},
		"4 billion locals":                             {tiny{call: ic(0), many: 1, manyBody: join(locals(4_000_000_000), []byte{0x0b})}.wasm(), "locals"},
		"many functions of locals":                     {tiny{call: ic(0), many: 20_000, manyBody: join(locals(50_000), []byte{0x0b})}.wasm(), "locals in all"},
		"many functions of locals, with a vector type": {vectored(tiny{call: ic(0), many: 20_000, manyBody: join(locals(50_000), []byte{0x0b})}), "locals in all"},
		"locals in nested loops":                       {tiny{call: ic(0), many: 1, manyBody: nest(0x03, 60_000, 50_000)}.wasm(), "compile"},
		"locals in nested blocks":                      {tiny{call: ic(0), many: 1, manyBody: deep}.wasm(), "compile"},
		"locals in nested loops, with a vector type":   {vectored(tiny{call: ic(0), many: 1, manyBody: nest(0x03, 60_000, 50_000)}), "compile"},
		"a wide branch table":                          {tiny{call: ic(0), many: 1, manyBody: table}.wasm(), "compile"},
		"many functions to work on":                    {tiny{call: ic(0), many: 40, manyBody: nest(0x03, 999, 1000)}.wasm(), "all functions"},
		"a tag section":                                {with(13, []byte{1, 0, 0}), "feature"},
		"sections out of order":                        {join(tiny{call: ic(0)}.wasm(), sec(secType, []byte{0})), "out of order"},
		"an operator hidden in a v128":                 {tiny{call: join([]byte{0xfd, 0x8c, 0x80, 0x00}, make([]byte, 16), ic(0))}.wasm(), "feature"},
	}
}

func TestModulesThatWouldExhaustTheEngineAreRefused(t *testing.T) {
	r := newRuntime(t, Config{})
	for name, c := range bombs() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := r.Load(t.Context(), Module{Wasm: c.wasm, SidecarManifest: encode(t, manifest())})
			runtime.ReadMemStats(&after)
			if f := wantFault(t, err, plugin.FaultLoad); !strings.Contains(f.Error(), c.says) {
				t.Errorf("got %q, want it to say %q", f.Error(), c.says)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
				t.Errorf("it made the host allocate %d MiB", n>>20)
			}
			if in, err := Inspect(c.wasm); err == nil && !strings.Contains(strings.Join(in.Problems, "\n"), c.says) {
				t.Errorf("inspect: got the problems %q, want %q among them", in.Problems, c.says)
			}
		})
	}
}

// A name section is the one custom section that the engine reads, and trusts.
func TestCustomSectionsDoNotReachTheEngine(t *testing.T) {
	for name, body := range map[string][]byte{
		"function names without end": join([]byte{1, 5}, appendU32(nil, u32Max)),
		"local names without end":    join([]byte{2, 7, 1, 0}, appendU32(nil, u32Max)),
		"a long module name":         join([]byte{0, 5}, appendU32(nil, u32Max)),
	} {
		wasm := join(tiny{call: answer204()}.wasm(), sec(secCustom, join(str("name"), body)))
		p := loadModule(t, Config{}, Module{Wasm: wasm, SidecarManifest: encode(t, manifest())})
		if _, err := hook(t.Context(), p, "", ""); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		if p.Info().Digest != Digest(wasm) {
			t.Errorf("%s: the digest is not the whole module's", name)
		}
	}
}

// Whatever operator the engine takes, with whatever behind it, is counted as the
// engine reads it.
func TestOperatorsAreReadAsTheEngineReadsThem(t *testing.T) {
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features()))
	defer rt.Close(t.Context())
	var ops [][]byte
	for op := range 256 {
		switch op {
		case 0x05, 0x0b, 0xfc, 0xfd: // else and end come with a block
		default:
			ops = append(ops, []byte{byte(op)})
		}
	}
	for sub := range 256 {
		ops = append(ops, []byte{0xfc, byte(sub)}, []byte{0xfc, byte(sub) | 0x80, 0}, []byte{0xfc, byte(sub) | 0x80, 1})
		if sub < 0x80 {
			ops = append(ops, []byte{0xfd, byte(sub)})
		} else {
			ops = append(ops, []byte{0xfd, byte(sub), 1}) // as the format has it; the engine would take any byte here
		}
	}
	taken := 0
	for _, op := range ops {
		for _, operand := range [][]byte{nil, {0}, {0, 0}, {0, 0, 0}, make([]byte, 4), make([]byte, 8), make([]byte, 16), {0x40, 0x0b}, {0x7f, 0x00, 0x0b}, {0x40, 0x05, 0x0b}} {
			code := join([]byte{0}, unreachable(), op, operand, []byte{0x0f, 0x0b})
			m := tiny{call: ic(0), table: true, many: 1, manyBody: code}
			wasm := withDataCount(m)
			secs, err := sections(wasm)
			if err != nil {
				t.Fatal(err)
			}
			_, engine := rt.CompileModule(t.Context(), wasm)
			if engine != nil {
				continue
			}
			taken++
			if err := checkBounds(secs); err != nil {
				t.Errorf("operator % x with % x: the engine takes it, we don't: %v", op, operand, err)
			}
			if _, err := meter.Rewrite(wasm, meter.Options{}); err != nil {
				t.Errorf("operator % x with % x: the engine takes it, the meter doesn't: %v", op, operand, err)
			}
		}
	}
	if taken < 300 {
		t.Errorf("only %d modules were valid; the test tests nothing", taken)
	}
}

// withDataCount adds the sections that some operators of bulk memory refer to.
func withDataCount(m tiny) []byte {
	m.extra = join(sec(secElement, []byte{1, 0, 0x41, 0, 0x0b, 0}), sec(secDataCount, []byte{1}))
	return join(m.wasm(), sec(secData, []byte{1, 1, 0}))
}

func TestModulesOfToolchainsAreFarBelowTheBounds(t *testing.T) {
	files, err := filepath.Glob("../../../plugins/examples/*/*.wasm")
	if err != nil || len(files) == 0 {
		t.Fatal("no example modules", err)
	}
	modules := map[string][]byte{"Go": goGuest(t)}
	for _, f := range files {
		if modules[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	for name, wasm := range modules {
		secs, err := sections(wasm)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkBounds(secs); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b := &bounds{}
		for _, s := range secs {
			if s.id != secCustom {
				b.section(s.id, &reader{b: s.body})
			}
		}
		if len(b.funcs) > maxFunctions/50 || b.elements > maxElements/50 || b.locals > maxAllLocals/50 || b.effort > maxAllEffort/10 {
			t.Errorf("%s has %d functions, %d elements, %d locals, %d units of effort: the bounds are too low", name, len(b.funcs), b.elements, b.locals, b.effort)
		}
	}
}

// FuzzBounds: what passes the bounds can be metered, and costs the engine memory in
// proportion to them.
func FuzzBounds(f *testing.F) {
	for _, c := range bombs() {
		if len(c.wasm) < 4096 {
			f.Add(c.wasm)
		}
	}
	f.Add(withDataCount(tiny{call: join(simd, ic(0)), table: true, entries: 9}))
	f.Add(tiny{call: ic(0), many: 3, manyBody: nest(0x03, 20, 20)}.wasm())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		secs, err := sections(wasm)
		if err != nil || checkBounds(secs) != nil {
			return
		}
		bare := withoutCustom(secs)
		if _, err := meter.Rewrite(bare, meter.Options{}); errors.Is(err, meter.ErrUnsupported) {
			t.Errorf("it may run, but not metered: %v", err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = validate(t.Context(), bare)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
			t.Errorf("validating %d bytes took %d MiB, %v", len(wasm), n>>20, err)
		}
	})
}
