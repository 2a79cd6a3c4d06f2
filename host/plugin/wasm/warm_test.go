package wasm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/plugin"
)

// cold puts a module into a new cache folder.
func cold(t *testing.T, m Module) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if p := loadModule(t, Config{CacheDir: dir}, m); !p.Metered() {
		t.Fatal("the module can't be metered")
	}
	return dir
}

// absent is the Source of a module that nobody may ask for.
func absent(t *testing.T) func() ([]byte, error) {
	return func() ([]byte, error) {
		t.Error("the module was asked for")
		return nil, errors.New("not here")
	}
}

func TestAWarmStartNeedsNothingOfTheModule(t *testing.T) {
	module := withManifest(t, goGuest(t), manifest())
	dir := cold(t, Module{Wasm: module})
	before, err := readEntry((&diskCache{root: dir}).entry(Digest(module), true).dir)
	check(t, err)

	warm := loadModule(t, Config{CacheDir: dir}, Module{Source: absent(t), Digest: Digest(module)})
	whole := loadModule(t, Config{CacheDir: t.TempDir()}, Module{Wasm: module})
	if diff := cmp.Diff(whole.Manifest(), warm.Manifest()); diff != "" {
		t.Errorf("another manifest (-whole +warm):\n%s", diff)
	}
	if diff := cmp.Diff(whole.Info(), warm.Info()); diff != "" {
		t.Errorf("another plugin (-whole +warm):\n%s", diff)
	}
	for _, do := range []string{"calls", "size", "checksum", "calls", "panic", "calls", "config", "unknown"} {
		want, got := askAny(t, whole, do), askAny(t, warm, do)
		if got != want {
			t.Errorf("%s: got %q, want %q", do, got, want)
		}
	}
	after, err := readEntry(before.dir)
	check(t, err)
	if before.sums != after.sums {
		t.Errorf("the entry was written again:\n%s\nwas\n%s", after.sums, before.sums)
	}
}

// askAny is what a command of the Go guest comes to, in a form that can be compared.
func askAny(t *testing.T, p *Plugin, do string) string {
	t.Helper()
	d, err := hook(t.Context(), p, do, "x")
	return fmt.Sprintf("%+v, failed: %v", d, err != nil)
}

// TestAWarmStartAllocatesLittle: the module is 1.8 MB or more and its machine code
// some 8 MB; a start that unpacked, counted, metered or validated the one, or kept a
// copy of the other, would need many times the outline.
func TestAWarmStartAllocatesLittle(t *testing.T) {
	module := goGuest(t)
	doc := encode(t, manifest())
	dir := cold(t, Module{Wasm: module, SidecarManifest: doc})
	o, err := os.Stat(filepath.Join((&diskCache{root: dir}).entry(Digest(module), true).dir, outlineFile))
	check(t, err)
	r := newRuntime(t, Config{CacheDir: dir})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = r.Load(t.Context(), Module{Source: absent(t), Digest: Digest(module), SidecarManifest: doc})
	check(t, err)
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(3*o.Size()+(1<<20)); got > most {
		t.Errorf("%d bytes were allocated, want at most %d for an outline of %d", got, most, o.Size())
	}
}

func TestSourcesAreAskedWhenTheCacheHasNothing(t *testing.T) {
	module := withManifest(t, tiny{call: answer204()}.wasm(), manifest())
	broken := errors.New("broken")
	cases := []struct {
		name   string
		digest string
		source func() ([]byte, error)
		want   error // nil: it is loaded
	}{
		{"the bytes", Digest(module), func() ([]byte, error) { return module, nil }, nil},
		{"other bytes", Digest(module), func() ([]byte, error) { return module[:len(module)-1], nil }, ErrDigest},
		{"no bytes", Digest(module), func() ([]byte, error) { return nil, broken }, broken},
		{"no digest", "", absent(t), ErrNoDigest},
		{"a digest that leads elsewhere", "sha256:../../" + Digest(module)[13:], absent(t), ErrNoDigest},
		{"a digest in upper case", "sha256:" + strings.ToUpper(Digest(module)[7:]), absent(t), ErrNoDigest},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := newRuntime(t, Config{CacheDir: t.TempDir()}).Load(t.Context(), Module{Source: c.source, Digest: c.digest})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if c.want != nil {
				wantFault(t, err, plugin.FaultLoad)
			}
		})
	}
	t.Run("without a cache on disk", func(t *testing.T) {
		r, err := New(t.Context(), Config{})
		check(t, err)
		asked := 0
		for range 2 {
			_, err := r.Load(t.Context(), Module{Digest: Digest(module), Source: func() ([]byte, error) { asked++; return module, nil }})
			check(t, err)
		}
		check(t, r.Close(t.Context()))
		if asked != 2 {
			t.Errorf("asked %d times, want 2", asked)
		}
	})
}

func TestLimitsHoldForWhatIsInTheCache(t *testing.T) {
	module := withManifest(t, tiny{call: answer204(), pages: 3}.wasm(), manifest())
	dir := cold(t, Module{Wasm: module})
	for name, limits := range map[string]Limits{
		"bytes of a module": {ModuleBytes: len(module) - 1},
		"pages of memory":   {MemoryPages: 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, warm := newRuntime(t, Config{CacheDir: dir, Limits: limits}).Load(t.Context(), Module{Source: absent(t), Digest: Digest(module)})
			_, whole := newRuntime(t, Config{CacheDir: t.TempDir(), Limits: limits}).Load(t.Context(), Module{Wasm: module})
			if wantFault(t, warm, plugin.FaultLoad).Error() != wantFault(t, whole, plugin.FaultLoad).Error() {
				t.Errorf("got %v, want %v", warm, whole)
			}
		})
	}
}

// seal gives an entry checksums of what is in it now.
func seal(t *testing.T, dir string) {
	t.Helper()
	k, err := readEntry(dir)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, sumsFile), []byte(k.sums), 0o600))
}

// TestMachineCodeThatTheEngineDoesNotLookForIsBuiltAgain: the engine compiles what it
// has no code of, and an outline traps in every call. Another processor, for which the
// engine names the code otherwise, brings this about.
func TestMachineCodeThatTheEngineDoesNotLookForIsBuiltAgain(t *testing.T) {
	spoil := map[string]func(t *testing.T, code string){
		"of another processor": func(t *testing.T, code string) {
			check(t, os.Rename(code, filepath.Join(filepath.Dir(code), strings.Repeat("0", 64))))
		},
		"of another engine": func(t *testing.T, code string) { check(t, os.Rename(filepath.Dir(code), filepath.Dir(code)+".1")) },
		"none at all":       func(t *testing.T, code string) { check(t, os.Remove(code)) },
		"of another version in a file of the same name": func(t *testing.T, code string) {
			b, err := os.ReadFile(code)
			check(t, err)
			b[len("WAZEVO")+2] ^= 1 // in the version: the engine deletes the file and writes it anew
			check(t, os.WriteFile(code, b, 0o600))
		},
	}
	for name, do := range spoil {
		t.Run(name, func(t *testing.T) {
			module := tiny{call: answer204()}.wasm()
			m := Module{Wasm: module, SidecarManifest: encode(t, manifest())}
			dir := cold(t, m)
			e := (&diskCache{root: dir}).entry(Digest(module), true)
			code, err := machineCode(e.dir)
			check(t, err)
			do(t, filepath.Join(e.dir, code))
			seal(t, e.dir)

			asked := 0
			p := loadModule(t, Config{CacheDir: dir}, Module{
				Digest: Digest(module), SidecarManifest: m.SidecarManifest,
				Source: func() ([]byte, error) { asked++; return module, nil },
			})
			if _, err := hook(t.Context(), p, "", ""); err != nil {
				t.Errorf("the plugin does not work: %v", err)
			}
			if asked != 1 {
				t.Errorf("the module was asked for %d times, want 1", asked)
			}
			// What was built again is used.
			p = loadModule(t, Config{CacheDir: dir}, Module{Digest: Digest(module), SidecarManifest: m.SidecarManifest, Source: absent(t)})
			if _, err := hook(t.Context(), p, "", ""); err != nil {
				t.Errorf("the plugin does not work: %v", err)
			}
		})
	}
}

func TestAnEntryThatCantBeReadAsAnOutlineIsBuiltAgain(t *testing.T) {
	module := tiny{call: answer204()}.wasm()
	doc := encode(t, manifest())
	dir := cold(t, Module{Wasm: module, SidecarManifest: doc})
	e := (&diskCache{root: dir}).entry(Digest(module), true)
	check(t, os.WriteFile(filepath.Join(e.dir, outlineFile), module, 0o600))
	seal(t, e.dir)
	p := loadModule(t, Config{CacheDir: dir}, Module{Wasm: module, SidecarManifest: doc})
	if _, err := hook(t.Context(), p, "", ""); err != nil {
		t.Errorf("the plugin does not work: %v", err)
	}
	if k, err := e.verify(); err != nil || string(k.outline) == string(module) {
		t.Errorf("the entry was kept: %v", err)
	}
}
