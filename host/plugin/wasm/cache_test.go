package wasm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// cacheFiles lists the files below dir, with the build folders.
func cacheFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func loadOnce(t *testing.T, dir string) {
	t.Helper()
	r, err := New(t.Context(), Config{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m := tiny{call: answer204()}
	p, err := r.Load(t.Context(), Module{Wasm: m.wasm(), SidecarManifest: encode(t, manifest())})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hook(t.Context(), p, "", ""); err != nil {
		t.Error(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// answer204 writes {} and is a valid call.
func answer204() []byte {
	return join(ic(0), ic(0x7d7b), []byte{0x36, 0, 0}, ic(0), ic(2), callFn(fnOutputWrite), ic(0))
}

func TestMachineCodeIsKeptOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	loadOnce(t, dir)
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v; want mode 0700", st.Mode(), err)
	}
	files := cacheFiles(t, dir)
	if len(files) != 3 {
		t.Fatalf("got %v, want the outline, the code and its checksums", files)
	}
	before, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}
	loadOnce(t, dir)
	after, err := os.Stat(files[0])
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the code was written again (%v)", err)
	}
}

func TestDamagedMachineCodeIsBuiltAgain(t *testing.T) {
	damage := map[string]func(t *testing.T, file string){
		"cut short": func(t *testing.T, file string) { check(t, os.Truncate(file, 40)) },
		"emptied":   func(t *testing.T, file string) { check(t, os.Truncate(file, 0)) },
		"removed":   func(t *testing.T, file string) { check(t, os.Remove(file)) },
		"a bit flipped": func(t *testing.T, file string) {
			b, err := os.ReadFile(file)
			check(t, err)
			b[len(b)/2] ^= 1
			check(t, os.WriteFile(file, b, 0o600))
		},
		"replaced by a folder": func(t *testing.T, file string) {
			check(t, os.Remove(file))
			check(t, os.Mkdir(file, 0o700))
		},
	}
	for name, do := range damage {
		for _, which := range []string{"the code", "the checksums"} {
			t.Run(which+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				loadOnce(t, dir)
				files := cacheFiles(t, dir)
				for _, f := range files {
					if (filepath.Base(f) == sumsFile) == (which == "the checksums") {
						do(t, f)
					}
				}
				loadOnce(t, dir)
				e := (&diskCache{root: dir}).entry(Digest(tiny{call: answer204()}.wasm()), true)
				if k, err := e.verify(); k == nil || err != nil {
					t.Errorf("the entry is still not whole: %v, %v", k, err)
				}
				for _, f := range cacheFiles(t, dir) {
					if strings.Contains(f, buildMark) {
						t.Errorf("left behind: %s", f)
					}
				}
			})
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCodeWithValidChecksumsThatTheEngineRefusesIsBuiltAgain(t *testing.T) {
	dir := t.TempDir()
	loadOnce(t, dir)
	e := (&diskCache{root: dir}).entry(Digest(tiny{call: answer204()}.wasm()), true)
	for _, f := range cacheFiles(t, dir) {
		if filepath.Base(f) != sumsFile {
			check(t, os.WriteFile(f, []byte("something else"), 0o600))
		}
	}
	spoilt, err := readEntry(e.dir)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(e.dir, sumsFile), []byte(spoilt.sums), 0o600))
	loadOnce(t, dir)
	if now, err := readEntry(e.dir); err != nil || now.sums == spoilt.sums {
		t.Errorf("the entry was kept: %v", err)
	}
}

func TestAWideCacheFolderIsNarrowed(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o755))
	loadOnce(t, dir)
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v; want mode 0700", st.Mode(), err)
	}
}

func TestACacheThatCantBeMadeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	if _, err := New(t.Context(), Config{CacheDir: filepath.Join(file, "cache")}); err == nil {
		t.Error("a cache below a file was taken")
	}
}

func TestWhatCrashedProcessesLeaveIsSwept(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"old": 2 * staleBuild, "new": 0} {
		path := filepath.Join(dir, buildMark+name)
		check(t, os.Mkdir(path, 0o700))
		check(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	}
	loadOnce(t, dir)
	if _, err := os.Stat(filepath.Join(dir, buildMark+"old")); !os.IsNotExist(err) {
		t.Errorf("an old build folder is still there (%v)", err)
	}
	if _, err := os.Stat(filepath.Join(dir, buildMark+"new")); err != nil {
		t.Errorf("another process's build folder is gone: %v", err)
	}
}

func TestOneDigestIsCompiledOnce(t *testing.T) {
	r := newRuntime(t, Config{})
	mod := Module{Wasm: goGuest(t), SidecarManifest: encode(t, manifest())}
	plugins := make([]*Plugin, 4)
	var wg sync.WaitGroup
	for i := range plugins {
		wg.Go(func() {
			var err error
			if plugins[i], err = r.Load(t.Context(), mod); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, p := range plugins[1:] {
		if p.code != plugins[0].code {
			t.Error("two plugins of one digest have code of their own")
		}
	}
	// Closing one leaves the others' code alone.
	check(t, plugins[0].Close(t.Context()))
	if got := ask(t, plugins[1], "calls", ""); got != "1" {
		t.Errorf("got %q", got)
	}
	for _, p := range plugins[1:] {
		check(t, p.Close(t.Context()))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.modules) != 0 || len(r.plugins) != 0 {
		t.Errorf("%d modules and %d plugins are left", len(r.modules), len(r.plugins))
	}
}

func TestCompilationIsBounded(t *testing.T) {
	r := newRuntime(t, Config{CacheDir: t.TempDir(), Limits: Limits{CompileTimeout: time.Nanosecond}})
	_, err := r.Load(t.Context(), Module{Wasm: goGuest(t), SidecarManifest: encode(t, manifest())})
	wantFault(t, err, "load")
	r.limits.CompileTimeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Load(ctx, Module{Wasm: goGuest(t), SidecarManifest: encode(t, manifest())}); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if p, err := r.Load(t.Context(), Module{Wasm: goGuest(t), SidecarManifest: encode(t, manifest())}); err != nil {
		t.Errorf("with time enough: %v", err)
	} else if got := ask(t, p, "calls", ""); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestACacheThatCantBeWrittenCostsTimeOnly(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"it was removed": os.RemoveAll,
		"an entry's place is taken by a file": func(dir string) error {
			e := (&diskCache{root: dir}).entry(Digest(tiny{call: answer204()}.wasm()), true)
			return os.WriteFile(e.dir, nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			r := newRuntime(t, Config{CacheDir: dir})
			check(t, spoil(dir))
			p, err := r.Load(t.Context(), Module{Wasm: tiny{call: answer204()}.wasm(), SidecarManifest: encode(t, manifest())})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := hook(t.Context(), p, "", ""); err != nil {
				t.Error(err)
			}
		})
	}
}
