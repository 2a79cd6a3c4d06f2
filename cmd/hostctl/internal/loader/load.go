package loader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

// Request says what to load for a run.
type Request struct {
	Provider        settings.PluginRef
	Hooks, Tools    []settings.PluginRef
	ProviderOptions settings.Options
	HookOptions     map[string]settings.Options
	Workspace       string // granted folder; "": none
	CacheDir        string // of compiled modules; "": none
	Logger          *slog.Logger
}

// Set is the loaded plugins of a run. Close frees them.
type Set struct {
	Provider plugin.Provider
	Hooks    []plugin.Hook
	Tools    []plugin.Tool

	runtime   *wasm.Runtime
	workspace *os.Root
}

// Close frees the plugins and then the workspace.
func (s *Set) Close(ctx context.Context) error {
	err := s.runtime.Close(ctx)
	if s.workspace != nil {
		err = errors.Join(err, s.workspace.Close())
	}
	return err
}

// use is one module and what the run wants of it.
type use struct {
	source               *Source
	provider, hook, tool bool
	config               settings.Options
}

// Load reads, checks and loads everything, side by side. Errors: *exit.UsageError
// for a request that makes no sense, *exit.PluginError for a plugin that can't be
// used, or ctx's. On an error nothing stays loaded.
func (l Library) Load(ctx context.Context, req Request) (*Set, error) {
	uses, err := l.plan(req)
	if err != nil {
		return nil, err
	}
	set := &Set{}
	if req.Workspace != "" {
		if set.workspace, err = os.OpenRoot(req.Workspace); err != nil {
			return nil, exit.Usagef("--workspace: %w", err)
		}
	}
	if set.runtime, err = wasm.New(ctx, wasm.Config{CacheDir: req.CacheDir, Logger: req.Logger}); err != nil {
		return nil, errors.Join(err, closeRoot(set.workspace))
	}
	loaded := make([]*wasm.Plugin, len(uses))
	group, gctx := errgroup.WithContext(ctx)
	for i, u := range uses {
		group.Go(func() error {
			p, err := set.runtime.Load(gctx, wasm.Module{
				Path: u.source.Arg, Wasm: u.source.Wasm, SidecarManifest: u.source.Sidecar,
				Config: u.config.JSON(), Grants: grants(u.source, set.workspace),
			})
			loaded[i] = p
			return loadError(ctx, u.source.Arg, err)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, set.Close(context.WithoutCancel(ctx)))
	}
	set.assign(uses, loaded)
	return set, nil
}

func closeRoot(r *os.Root) error {
	if r == nil {
		return nil
	}
	return r.Close()
}

// loadError words a loader's error once: a fault says its plugin itself.
func loadError(ctx context.Context, arg string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var fault *plugin.Fault
	if errors.As(err, &fault) {
		err = errors.New(strings.TrimPrefix(fault.Error(), "plugin "+fault.Plugin+": "))
	}
	return &exit.PluginError{Plugin: arg, Err: err}
}

// grants is what the operator gives: bundled plugins get the harmless
// capabilities they ask for; others get key-value entries. The workspace goes to
// whoever asks, once the operator named one.
func grants(s *Source, workspace *os.Root) wasm.Grants {
	return wasm.Grants{KV: true, Clock: s.Bundled, Random: s.Bundled, Workspace: workspace}
}

// plan reads every plugin once and finds out what the run wants of it.
func (l Library) plan(req Request) ([]*use, error) {
	var uses []*use
	byPlace := map[string]*use{}
	want := func(ref settings.PluginRef, kind pluginapi.Kind, mark func(*use)) error {
		name := ref.Arg
		if ref.Bundled() && name == Demo {
			name = DemoPlugin
		}
		place := ref.Path + "\x00" + name
		if !ref.Bundled() {
			place = ref.Path
		}
		u := byPlace[place]
		if u == nil {
			src, err := l.Read(ref)
			if err != nil {
				return err
			}
			u = &use{source: src, config: settings.Options{}}
			byPlace[place] = u
			uses = append(uses, u)
		}
		if !u.source.Has(kind) {
			return &exit.PluginError{Plugin: ref.Arg, Err: fmt.Errorf("it is no %s; its manifest says: %s", kind, kinds(u.source.Manifest.Kinds))}
		}
		mark(u)
		return nil
	}
	if req.Provider.Bundled() && req.Provider.Arg == Demo && len(req.ProviderOptions) > 0 {
		return nil, exit.Usagef("--provider demo takes no options; --provider %s plays a script of yours", DemoPlugin)
	}
	if err := want(req.Provider, pluginapi.KindProvider, func(u *use) {
		u.provider, u.tool = true, u.source.Has(pluginapi.KindTool)
		for k, v := range req.ProviderOptions {
			u.config[k] = v
		}
	}); err != nil {
		return nil, err
	}
	for _, ref := range req.Hooks {
		if err := want(ref, pluginapi.KindHook, func(u *use) { u.hook = true }); err != nil {
			return nil, err
		}
	}
	for _, ref := range req.Tools {
		if err := want(ref, pluginapi.KindTool, func(u *use) { u.tool = true }); err != nil {
			return nil, err
		}
	}
	return uses, check(uses, req)
}

// check finds requests that make no sense, before anything is loaded.
func check(uses []*use, req Request) error {
	byName := map[string]*use{}
	for _, u := range uses {
		m := u.source.Manifest
		if other := byName[m.Name]; other != nil {
			return exit.Usagef("%s and %s are both the plugin %q; leave one out", other.source.Arg, u.source.Arg, m.Name)
		}
		byName[m.Name] = u
		if u.tool && u.source.requests(pluginapi.CapWorkspace) && req.Workspace == "" {
			return exit.Usagef("tool %s works in a folder; say which one it may touch: --workspace DIR", u.source.Arg)
		}
	}
	names := make([]string, 0, len(req.HookOptions))
	for name := range req.HookOptions {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		u := byName[name]
		if u == nil || !u.hook && !u.tool {
			return exit.Usagef("hook-opt %s: no hook or tool of that name is used in this run", name)
		}
		for k, v := range req.HookOptions[name] {
			u.config[k] = v
		}
	}
	return nil
}

// assign puts the loaded plugins where the run wants them. Uses are in the
// operator's order: the provider, then hooks, then tools.
func (s *Set) assign(uses []*use, loaded []*wasm.Plugin) {
	for i, u := range uses {
		p := loaded[i]
		if u.provider {
			s.Provider = p.Provider()
		}
		if u.hook {
			s.Hooks = append(s.Hooks, p.Hook())
		}
		if u.tool {
			s.Tools = append(s.Tools, p.Tool())
		}
	}
}

func kinds(ks []pluginapi.Kind) string {
	words := make([]string, len(ks))
	for i, k := range ks {
		words[i] = string(k)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
