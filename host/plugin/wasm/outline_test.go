package wasm

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// accepts reports whether the engine takes a module as valid. Nothing of it is
// compiled to machine code.
func accepts(t testing.TB, module []byte) bool {
	t.Helper()
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features()))
	err := survive(func() error {
		_, err := rt.CompileModule(t.Context(), module)
		return err
	})
	check(t, rt.Close(t.Context()))
	return err == nil
}

// FuzzOutline: whatever is valid keeps in its outline all that a warm start wants to
// know, and the outline is valid too. As an outline, no bytes break the reader.
func FuzzOutline(f *testing.F) {
	full := tiny{call: answer204(), init: ic(0), start: []byte{0x01}, most: 9, table: true, entries: 3}.wasm()
	f.Add(full)
	f.Add(withManifest(f, full, manifest()))
	f.Add(withDataCount(tiny{call: join(simd, ic(0)), table: true, entries: 9}))
	f.Add(appendCustom(bytes.Clone(full), originalSection, []byte{0x80}))
	f.Add(goGuest(f))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		_, _ = readOutline(wasm)
		secs, err := sections(wasm)
		if err != nil {
			return
		}
		want, bare, err := examine(secs)
		if err != nil {
			return
		}
		doc, err := embedded(secs)
		if err != nil {
			return
		}
		metered, err := meter.Rewrite(bare, meter.Options{})
		if err != nil || !accepts(t, bare) {
			return
		}
		out, err := outlineOf(metered, len(wasm), doc)
		if err != nil {
			t.Fatalf("the metered module has no outline: %v", err)
		}
		o, err := readOutline(out)
		if err != nil {
			t.Fatalf("the outline can't be read: %v", err)
		}
		got, err := o.shape()
		if err != nil {
			t.Fatalf("the outline's shape can't be read: %v", err)
		}
		type facts struct {
			Imports, Exports []Symbol
			Memories         int
			Min, Max         uint64
			HasMax           bool
			Size             int
			Manifest         []byte
		}
		inside, err := embedded(o.secs)
		if err != nil {
			t.Fatal(err)
		}
		factsOf := func(s *shape, size int, doc []byte) facts {
			return facts{append([]Symbol{}, s.imports...), s.exports, s.memories, s.memMin, s.memMax, s.hasMax, size, doc}
		}
		if diff := cmp.Diff(factsOf(want, len(wasm), doc), factsOf(got, o.size, inside)); diff != "" {
			t.Errorf("the outline says something else than the module (-module +outline):\n%s", diff)
		}
		if err := got.checkABI(); err != nil {
			t.Errorf("the outline is refused: %v", err)
		}
		if !accepts(t, o.code) {
			t.Error("the engine refuses the outline of a valid module")
		}
	})
}

func TestOutlinesThatAreNoneAreRefused(t *testing.T) {
	full := tiny{call: answer204()}.wasm()
	for name, module := range map[string][]byte{
		"nothing":                         nil,
		"no size":                         full,
		"no whole size":                   appendCustom(bytes.Clone(full), originalSection, []byte{0x80}),
		"a size of none":                  appendCustom(bytes.Clone(full), originalSection, []byte{0}),
		"more behind the size":            appendCustom(bytes.Clone(full), originalSection, []byte{1, 1}),
		"a section behind the custom one": append(appendCustom(bytes.Clone(full), originalSection, []byte{9}), sec(11, []byte{0})...),
	} {
		if _, err := readOutline(module); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}
