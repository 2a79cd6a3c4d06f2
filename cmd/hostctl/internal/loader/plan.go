package loader

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/pluginapi"
)

// Plan is what to load, read and checked. Nothing of it ran, nothing was written.
type Plan struct {
	req  Request
	uses []*use
}

// use is one module and what the run wants of it.
type use struct {
	source               *Source
	provider, hook, tool bool
	config               settings.Options
}

// Plan reads every plugin once and finds out what the run wants of it. Errors:
// *exit.UsageError for a request that makes no sense, *exit.PluginError for a
// plugin that can't be read.
func (l Library) Plan(req Request) (*Plan, error) {
	uses, err := l.read(req)
	if err != nil {
		return nil, err
	}
	if err := check(uses, req); err != nil {
		return nil, err
	}
	return &Plan{req: req, uses: uses}, nil
}

// Summary names the plugins for people: "provider scripted 0.1.0, hooks redact, tools workspace".
func (p *Plan) Summary() string {
	var provider string
	var hooks, tools []string
	for _, u := range p.uses {
		m := u.source.Manifest
		if u.provider {
			provider = m.Name + " " + m.Version
		}
		if u.hook {
			hooks = append(hooks, m.Name)
		}
		if u.tool && !u.provider {
			tools = append(tools, m.Name)
		}
	}
	s := "provider " + provider
	if len(hooks) > 0 {
		s += ", hooks " + strings.Join(hooks, " ")
	}
	if len(tools) > 0 {
		s += ", tools " + strings.Join(tools, " ")
	}
	return s
}

func (l Library) read(req Request) ([]*use, error) {
	var uses []*use
	sources := l.sources(req)
	byPlace := map[string]*use{}
	want := func(ref settings.PluginRef, kind pluginapi.Kind, mark func(*use)) error {
		place := placeOf(ref)
		u := byPlace[place]
		if u == nil {
			src := sources[place]
			if src.err != nil {
				return src.err
			}
			u = &use{source: src.source, config: settings.Options{}}
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
	return uses, nil
}

// placeOf tells modules apart: two arguments of one place are one module.
func placeOf(ref settings.PluginRef) string {
	if ref.Bundled() {
		return "\x00" + name(ref.Arg)
	}
	return ref.Path
}

// readSource is what became of reading one module.
type readSource struct {
	source *Source
	err    error
}

// sources reads all modules of a request side by side, each once: unpacking and
// checking one takes a while. An error is told in the order of the request, by
// whoever wants the module.
func (l Library) sources(req Request) map[string]*readSource {
	out := map[string]*readSource{}
	var group sync.WaitGroup
	for _, ref := range slices.Concat([]settings.PluginRef{req.Provider}, req.Hooks, req.Tools) {
		if out[placeOf(ref)] != nil {
			continue
		}
		r := &readSource{}
		out[placeOf(ref)] = r
		group.Go(func() { r.source, r.err = l.Read(ref) })
	}
	group.Wait()
	return out
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
	if req.Workspace != "" {
		if info, err := os.Stat(req.Workspace); err != nil || !info.IsDir() {
			return exit.Usagef("--workspace %s is no folder that can be opened", req.Workspace)
		}
	}
	if err := checkTools(uses); err != nil {
		return err
	}
	return checkOptions(byName, req)
}

// checkTools finds two tools of one name: the model could not tell them apart.
func checkTools(uses []*use) error {
	offers := map[string]string{}
	for _, u := range uses {
		if !u.tool {
			continue
		}
		for _, t := range u.source.Manifest.Tools {
			if other, taken := offers[t.Name]; taken {
				return exit.Usagef("the tool %q is offered by %s and by %s; leave one out", t.Name, other, u.source.Arg)
			}
			offers[t.Name] = u.source.Arg
		}
	}
	return nil
}

// checkOptions hands out hook-opt values; a name that nobody has is a mistake.
func checkOptions(byName map[string]*use, req Request) error {
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

func kinds(ks []pluginapi.Kind) string {
	words := make([]string, len(ks))
	for i, k := range ks {
		words[i] = string(k)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
