package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// Grants are what the operator lets a plugin use. Only what its manifest requests
// too is in force.
type Grants struct {
	KV, Clock, Random bool
	// Workspace is mounted at /workspace, readable and writable; nil: none. It
	// stays the caller's to close, after the plugin.
	Workspace *os.Root
}

// Load checks, compiles and starts a module. Errors are a *plugin.Fault of kind
// FaultLoad (it is unusable as it is; nothing of it ran) or FaultStart, or ctx's
// error, or ErrClosed. The bytes are not kept, but they must stay as they are: a
// compilation that nobody waits for any more may still read them.
func (r *Runtime) Load(ctx context.Context, m Module) (*Plugin, error) {
	p, src, err := r.check(ctx, m)
	if err != nil {
		name := p.info.Name
		if m.Path != "" {
			name = m.Path
		}
		return nil, &plugin.Fault{Plugin: name, Digest: p.info.Digest, Kind: plugin.FaultLoad, Err: err}
	}
	code, err := r.acquire(ctx, src)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, ErrClosed):
		return nil, err
	default:
		return nil, p.fault(&breach{kind: plugin.FaultLoad, detail: "compilation", err: err})
	}
	p.code = code

	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		r.release(code)
		return nil, ErrClosed
	}
	r.plugins[p] = struct{}{}
	r.mu.Unlock()

	if err := p.warm(ctx); err != nil {
		// The module may still be running; Close frees it when it ends.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		_ = p.Close(closing)
		return nil, p.named(err)
	}
	return p, nil
}

// warm starts the first instance: what can't start is told at once, and the first
// call finds it ready.
func (p *Plugin) warm(ctx context.Context) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.running.Done()
	in, err := p.start(ctx, p.limits.StartTimeout)
	if err != nil {
		return err
	}
	p.shelve(in, false, true)
	return nil
}

// check does all that needs no compilation. The plugin it returns is never nil,
// and names what is known of the module.
func (r *Runtime) check(ctx context.Context, m Module) (*Plugin, *source, error) {
	p := &Plugin{
		r:       r,
		info:    plugin.Info{Name: "?", Isolation: "wasm"},
		closing: make(chan struct{}), gone: make(chan struct{}), sessions: map[string]*sessionLease{},
	}
	var err error
	if p.info.Digest, err = m.digest(); err != nil {
		return p, nil, err
	}
	src, secs, err := r.source(ctx, m, p.info.Digest)
	if err != nil {
		return p, nil, err
	}
	p.manifest, err = manifestOf(secs, m.SidecarManifest)
	if err != nil {
		return p, nil, err
	}
	p.info.Name, p.info.Version = p.manifest.Name, p.manifest.Version
	sh, err := src.check(secs)
	if err != nil {
		return p, nil, err
	}
	p.limits = r.limits.lowered(p.manifest.Limits)
	if sh.memMin > uint64(p.limits.MemoryPages) {
		return p, nil, fmt.Errorf("it needs %d pages of memory to start, its limit is %d", sh.memMin, p.limits.MemoryPages)
	}
	if p.config, err = checkConfig(p.manifest.Config, m.Config); err != nil {
		return p, nil, fmt.Errorf("configuration: %w", err)
	}
	p.grant(m.Grants)
	p.slots = make(chan struct{}, p.limits.Concurrent)
	return p, src, nil
}

// grant puts in force what is both requested and granted.
func (p *Plugin) grant(g Grants) {
	wants := func(c pluginapi.Capability, granted bool) bool {
		if !granted || !slices.Contains(p.manifest.Capabilities, c) {
			return false
		}
		p.grantNames = append(p.grantNames, string(c))
		return true
	}
	p.grants.KV = wants(pluginapi.CapKV, g.KV)
	p.grants.Clock = wants(pluginapi.CapClock, g.Clock)
	p.grants.Random = wants(pluginapi.CapRandom, g.Random)
	if wants(pluginapi.CapWorkspace, g.Workspace != nil) {
		p.grants.Workspace = g.Workspace
	}
}

// checkConfig validates a configuration against the manifest's schema and returns
// what config_get replies with.
func checkConfig(schema, config []byte) ([]byte, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		config = []byte("{}")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("it must be a JSON object")
	}
	if len(schema) == 0 {
		if len(object) > 0 {
			return nil, errors.New("the plugin takes none: its manifest has no schema for it")
		}
		return config, nil
	}
	rules, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("the manifest's schema: %w", err)
	}
	const here = "loophost:config"
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{}) // a plugin's schema reads no file of the host's
	if err := c.AddResource(here, rules); err != nil {
		return nil, fmt.Errorf("the manifest's schema: %w", err)
	}
	compiled, err := c.Compile(here)
	if err != nil {
		return nil, fmt.Errorf("the manifest's schema: %w", err)
	}
	if err := compiled.Validate(doc); err != nil {
		return nil, configError{err}
	}
	return config, nil
}

// configError shows a validation error, which has a line for each finding, on one.
type configError struct{ err error }

// Error joins the findings.
func (e configError) Error() string {
	_, findings, ok := strings.Cut(e.err.Error(), "\n- ")
	if !ok {
		findings = e.err.Error()
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(findings, "\n- ", "; ")), " ")
}

// Unwrap gives the validator's error.
func (e configError) Unwrap() error { return e.err }

// noLoader refuses references that lead out of a schema.
type noLoader struct{}

// Load always fails.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a configuration schema can't refer to other documents", url)
}
