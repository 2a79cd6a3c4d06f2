package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// compile fills c. A cache entry that is damaged is thrown away and built anew, once.
func (r *Runtime) compile(ctx context.Context, c *compiled, src *source) {
	if src.kept != nil {
		err := r.buildKept(ctx, c, src)
		if err == nil {
			return
		}
		r.log.LogAttrs(ctx, levelWarn, "compilation cache entry is not usable; compiling again", attrDigest(c.digest), attrErr(err))
		if src.bare, c.err = src.again(); c.err != nil {
			return
		}
	}
	rewrite := meter.Rewrite
	if r.rewrite != nil {
		rewrite = r.rewrite
	}
	code, err := rewrite(src.bare, meter.Options{})
	switch {
	case err == nil:
		c.metered = true
		code = mergeData(code)
	case errors.Is(err, meter.ErrUnsupported):
		// None that passes the bounds is known; it would be one that our own pass
		// does not know and the engine takes.
		r.log.LogAttrs(ctx, levelWarn, "module can't be metered; its time is bounded by closing on context end", attrDigest(c.digest), attrErr(err))
		code = src.bare
	default:
		c.err = err
		return
	}
	if r.disk == nil {
		c.err = r.build(ctx, c, src.bare, code, "", false)
		return
	}
	entry := r.disk.entry(c.digest, c.metered)
	if c.metered { // lookup has looked, and said what is wrong with an entry that is there
		c.err = r.buildIntoCache(ctx, c, src, code, entry)
		return
	}
	switch k, err := entry.verify(); {
	case err != nil:
		r.log.LogAttrs(ctx, levelWarn, "compilation cache entry is damaged; compiling again", attrDigest(c.digest), attrErr(err))
	case k != nil:
		// The digest of the original is part of the entry's name, and only what was
		// validated gets an entry.
		err := r.build(ctx, c, src.bare, code, entry.dir, true)
		if err == nil {
			return
		}
		r.log.LogAttrs(ctx, levelWarn, "compilation cache entry is not usable; compiling again", attrDigest(c.digest), attrErr(err))
	}
	c.err = r.buildIntoCache(ctx, c, src, code, entry)
}

// buildKept fills c from the cache. The digest of the original is part of the
// entry's name, and only what was validated gets an entry.
func (r *Runtime) buildKept(ctx context.Context, c *compiled, src *source) error {
	c.metered = true
	err := r.build(ctx, c, nil, src.outline.code, src.kept.dir, true)
	if err == nil {
		if err = src.kept.unchanged(); err != nil {
			c.free()
		}
	}
	if err != nil {
		c.metered = false
	}
	return err
}

// buildIntoCache compiles in a new folder and puts that in the entry's place, so
// that other processes see whole entries only. A cache that can't be written
// costs time, not the plugin.
func (r *Runtime) buildIntoCache(ctx context.Context, c *compiled, src *source, code []byte, entry cacheEntry) error {
	dir, err := entry.begin()
	if err != nil {
		r.log.LogAttrs(ctx, levelWarn, "compilation cache can't be written", attrDigest(c.digest), attrErr(err))
		return r.build(ctx, c, src.bare, code, "", false)
	}
	if err := r.build(ctx, c, src.bare, code, dir, false); err != nil {
		// Either the module is at fault, or the disk is full: without a cache we see which.
		entry.drop(dir)
		if r.build(ctx, c, src.bare, code, "", false) != nil {
			return err
		}
		r.log.LogAttrs(ctx, levelWarn, "compilation cache can't be written", attrDigest(c.digest), attrErr(err))
		return nil
	}
	if c.metered {
		err = keepOutline(ctx, entry, dir, src, code)
	}
	if err == nil {
		err = entry.commit(dir)
	}
	if err != nil {
		r.log.LogAttrs(ctx, levelWarn, "compilation cache can't be written", attrDigest(c.digest), attrErr(err))
		entry.drop(dir)
	}
	return nil
}

// keepOutline puts the outline of a metered module beside its machine code, and
// gives the code the name under which the engine looks for the outline's. That name
// is the engine's secret, so the outline is compiled once, elsewhere, to learn it.
func keepOutline(ctx context.Context, entry cacheEntry, dir string, src *source, code []byte) error {
	out, err := outlineOf(code, src.size, src.doc)
	if err != nil {
		return err
	}
	inside, err := readOutline(out)
	if err != nil {
		return err
	}
	aside, err := entry.begin()
	if err != nil {
		return err
	}
	defer entry.drop(aside)
	if err := compileInto(ctx, aside, inside.code); err != nil {
		return err
	}
	from, err := machineCode(dir)
	if err != nil {
		return err
	}
	to, err := machineCode(aside)
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, outlineFile), out, 0o600)
}

// compileInto leaves the machine code of a metered module in dir.
func compileInto(ctx context.Context, dir string, code []byte) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	rt := wazero.NewRuntimeWithConfig(ctx, engineConfig(cache, true))
	err = survive(func() error {
		_, err := rt.CompileModule(ctx, code)
		return err
	})
	return errors.Join(err, rt.Close(ctx), cache.Close(ctx))
}

// engineConfig is how modules are compiled. Machine code of the cache is found again
// only under the same.
func engineConfig(cache wazero.CompilationCache, metered bool) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().
		WithCoreFeatures(features()).
		WithCompilationCache(cache).
		WithCloseOnContextDone(!metered).
		WithDebugInfoEnabled(false)
}

// build makes a wazero runtime with the host modules and compiles code in it.
// It leaves c untouched when it fails.
func (r *Runtime) build(ctx context.Context, c *compiled, original, code []byte, dir string, validated bool) error {
	if c.metered && !validated {
		if err := validate(ctx, original); err != nil {
			return err
		}
	}
	n := compiled{cache: wazero.NewCompilationCache()}
	if dir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(dir)
		if err != nil {
			return err
		}
		n.cache = cache
	}
	n.rt = wazero.NewRuntimeWithConfig(ctx, engineConfig(n.cache, c.metered))
	err := func() error {
		if _, err := wasi_snapshot_preview1.Instantiate(ctx, n.rt); err != nil {
			return fmt.Errorf("host module %s: %w", wasiModule, err)
		}
		if err := instantiateHost(ctx, n.rt); err != nil {
			return err
		}
		return survive(func() (err error) {
			n.mod, err = n.rt.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), code)
			return err
		})
	}()
	if err != nil {
		n.free()
		return err
	}
	c.rt, c.cache, c.mod = n.rt, n.cache, n.mod
	return nil
}

// validate checks the module as its author built it, since the metered copy is
// what gets compiled. The interpreter's compiler is the cheapest way to wazero's
// validation; nothing runs.
func validate(ctx context.Context, original []byte) error {
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features()))
	err := survive(func() error {
		_, err := rt.CompileModule(ctx, original)
		return err
	})
	return errors.Join(err, rt.Close(ctx))
}

// survive turns a panic of the engine over a module it did not expect into an
// error: wazero 1.12 panics over some modules that it calls valid, for example one
// with a passive element segment while reference types are off.
func survive(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the engine broke over this module: %v", p)
		}
	}()
	return f()
}
