package loader

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
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

// Load loads everything that was planned, side by side. Errors: *exit.UsageError
// for a workspace that can't be opened, *exit.PluginError for a plugin that can't
// be used, or ctx's. On an error nothing stays loaded.
func (p *Plan) Load(ctx context.Context) (*Set, error) {
	set := &Set{}
	var err error
	if p.req.Workspace != "" {
		if set.workspace, err = os.OpenRoot(p.req.Workspace); err != nil {
			return nil, exit.Usagef("--workspace: %w", err)
		}
	}
	if set.runtime, err = newRuntime(ctx, p.req.CacheDir, p.req.Logger); err != nil {
		return nil, errors.Join(err, closeRoot(set.workspace))
	}
	loaded := make([]*wasm.Plugin, len(p.uses))
	group, gctx := errgroup.WithContext(ctx)
	for i, u := range p.uses {
		group.Go(func() error {
			var err error
			loaded[i], err = set.runtime.Load(gctx, wasm.Module{
				Path: u.source.Arg, Source: u.source.Module, Digest: u.source.Digest, SidecarManifest: u.source.Sidecar,
				Config: u.config.JSON(), Grants: grants(u.source, set.workspace),
			})
			return loadError(ctx, u.source.Arg, err)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, set.Close(context.WithoutCancel(ctx)))
	}
	set.assign(p.uses, loaded)
	return set, nil
}

// newRuntime does without the cache on disk where it can't be had: it saves
// time and nothing else.
func newRuntime(ctx context.Context, cacheDir string, log *slog.Logger) (*wasm.Runtime, error) {
	r, err := wasm.New(ctx, wasm.Config{CacheDir: cacheDir, Logger: log})
	if err == nil || cacheDir == "" {
		return r, err
	}
	log.Warn("compiled plugins are not cached", "error", err)
	return wasm.New(ctx, wasm.Config{Logger: log})
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
