package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
)

// ErrClosed: the Runtime or the Plugin was closed.
var ErrClosed = errors.New("closed")

// Runtime loads modules. It is safe for concurrent use.
type Runtime struct {
	log    *slog.Logger
	limits Limits
	disk   *diskCache // nil: memory only
	// rewrite is the metering pass where it is not meter.Rewrite: a test of the
	// fallback puts one that refuses here. What the usual pass left in the cache is
	// not its work, and is not used then.
	rewrite func([]byte, meter.Options) ([]byte, error)

	mu      sync.Mutex
	closed  bool
	modules map[string]*compiled // by digest
	plugins map[*Plugin]struct{}
}

// features are those of WebAssembly 2.0 without reference types: growing a table
// would escape the memory limit.
func features() api.CoreFeatures {
	return api.CoreFeaturesV2.SetEnabled(api.CoreFeatureReferenceTypes, false)
}

// New prepares a Runtime. It fails when the cache folder can't be made private.
func New(_ context.Context, cfg Config) (*Runtime, error) {
	r := &Runtime{
		log: cfg.Logger, limits: cfg.Limits.withDefaults(),
		modules: map[string]*compiled{}, plugins: map[*Plugin]struct{}{},
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if cfg.CacheDir != "" {
		d, err := openDiskCache(cfg.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("wasm: compilation cache %s: %w", cfg.CacheDir, err)
		}
		r.disk = d
	}
	return r, nil
}

// Close closes all plugins and frees the compiled code. It waits for running
// calls as Plugin.Close does; a second Close does nothing.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	open := make([]*Plugin, 0, len(r.plugins))
	for p := range r.plugins {
		open = append(open, p)
	}
	r.mu.Unlock()
	var errs []error
	for _, p := range open {
		errs = append(errs, p.Close(ctx))
	}
	return errors.Join(errs...)
}

// compiled is a module's machine code, shared by the plugins of its digest.
type compiled struct {
	digest  string
	ready   chan struct{} // closed when the rest is set
	err     error
	rt      wazero.Runtime
	cache   wazero.CompilationCache
	mod     wazero.CompiledModule
	metered bool

	refs int // guarded by Runtime.mu
}

// acquire gives the compiled module of a digest, compiling it where nobody has,
// and waiting where somebody is at it. It keeps src for as long as it compiles.
func (r *Runtime) acquire(ctx context.Context, src *source) (*compiled, error) {
	digest := src.digest
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, ErrClosed
	}
	c := r.modules[digest]
	if c == nil {
		c = &compiled{digest: digest, ready: make(chan struct{})}
		r.modules[digest] = c
		c.refs++ // the compiler's own
		go func() {
			// Compilation can't be interrupted; it ends when it ends, also after everyone stopped waiting.
			r.compile(context.WithoutCancel(ctx), c, src)
			close(c.ready)
			r.release(c)
		}()
	}
	c.refs++
	r.mu.Unlock()

	timer := time.NewTimer(r.limits.CompileTimeout)
	defer timer.Stop()
	var late error
	select {
	case <-c.ready:
	case <-ctx.Done():
		late = ctx.Err()
	case <-timer.C:
		late = errCompileTimeout
	}
	if late != nil {
		r.release(c)
		return nil, late
	}
	if c.err != nil {
		r.release(c)
		return nil, c.err
	}
	return c, nil
}

var errCompileTimeout = errors.New("the time for compilation is over")

// release gives back one reference; the last one frees the code.
func (r *Runtime) release(c *compiled) {
	r.mu.Lock()
	c.refs--
	last := c.refs == 0
	if last {
		delete(r.modules, c.digest)
	}
	r.mu.Unlock()
	if last {
		c.free()
	}
}

func (c *compiled) free() {
	ctx := context.Background()
	if c.rt != nil {
		_ = c.rt.Close(ctx) // nothing is running; wazero reports nothing of use here
	}
	if c.cache != nil {
		_ = c.cache.Close(ctx)
	}
	c.rt, c.cache, c.mod = nil, nil, nil
}
