package wasm

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// compile fills c. A cache entry that is damaged is thrown away and built anew, once.
func (r *Runtime) compile(ctx context.Context, c *compiled, original []byte) {
	if r.cached(ctx, c) {
		return
	}
	rewrite := meter.Rewrite
	if r.rewrite != nil {
		rewrite = r.rewrite
	}
	code, err := rewrite(original, meter.Options{})
	switch {
	case err == nil:
		c.metered = true
	case errors.Is(err, meter.ErrUnsupported):
		// None that passes the bounds is known; it would be one that our own pass
		// does not know and the engine takes.
		r.log.LogAttrs(ctx, levelWarn, "module can't be metered; its time is bounded by closing on context end", attrDigest(c.digest), attrErr(err))
		code = original
	default:
		c.err = err
		return
	}
	if r.disk == nil {
		c.err = r.build(ctx, c, original, code, "", false)
		return
	}
	entry := r.disk.entry(c.digest, c.metered)
	if c.metered { // cached has looked, and said what is wrong with an entry that is there
		c.err = r.buildIntoCache(ctx, c, original, code, entry)
		return
	}
	switch ok, err := entry.verify(); {
	case err != nil:
		r.log.LogAttrs(ctx, levelWarn, "compilation cache entry is damaged; compiling again", attrDigest(c.digest), attrErr(err))
	case ok:
		// The digest of the original is part of the entry's name, and only what was
		// validated gets an entry.
		err := r.build(ctx, c, original, code, entry.dir, true)
		if err == nil {
			return
		}
		r.log.LogAttrs(ctx, levelWarn, "compilation cache entry is not usable; compiling again", attrDigest(c.digest), attrErr(err))
	}
	c.err = r.buildIntoCache(ctx, c, original, code, entry)
}

// cached fills c from the entry of a metered module, which most are: it holds the
// module as metered beside its machine code, so that a warm start need not meter it
// again.
func (r *Runtime) cached(ctx context.Context, c *compiled) bool {
	if r.disk == nil || r.rewrite != nil {
		return false
	}
	entry := r.disk.entry(c.digest, true)
	ok, err := entry.verify()
	if err != nil {
		r.log.LogAttrs(ctx, levelWarn, "compilation cache entry is damaged; compiling again", attrDigest(c.digest), attrErr(err))
		return false
	}
	if !ok {
		return false
	}
	c.metered = true
	// The digest of the original is part of the entry's name, and only what was
	// validated gets an entry.
	code, err := entry.module()
	if err == nil {
		err = r.build(ctx, c, nil, code, entry.dir, true)
	}
	if err != nil {
		c.metered = false
		r.log.LogAttrs(ctx, levelWarn, "compilation cache entry is not usable; compiling again", attrDigest(c.digest), attrErr(err))
	}
	return err == nil
}

// buildIntoCache compiles in a new folder and puts that in the entry's place, so
// that other processes see whole entries only. A cache that can't be written
// costs time, not the plugin.
func (r *Runtime) buildIntoCache(ctx context.Context, c *compiled, original, code []byte, entry cacheEntry) error {
	dir, err := entry.begin()
	if err != nil {
		r.log.LogAttrs(ctx, levelWarn, "compilation cache can't be written", attrDigest(c.digest), attrErr(err))
		return r.build(ctx, c, original, code, "", false)
	}
	if err := r.build(ctx, c, original, code, dir, false); err != nil {
		// Either the module is at fault, or the disk is full: without a cache we see which.
		entry.drop(dir)
		if r.build(ctx, c, original, code, "", false) != nil {
			return err
		}
		r.log.LogAttrs(ctx, levelWarn, "compilation cache can't be written", attrDigest(c.digest), attrErr(err))
		return nil
	}
	if c.metered {
		err = entry.keepModule(dir, code)
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
	n.rt = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCoreFeatures(features()).
		WithCompilationCache(n.cache).
		WithCloseOnContextDone(!c.metered).
		WithDebugInfoEnabled(false))
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
