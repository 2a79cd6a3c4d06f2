package plugin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

// inspected is what can be told without running the plugin.
type inspected struct {
	*wasm.Inspection
	// Manifest is the one in force: from the module, or from plugin.json beside it.
	Manifest *pluginapi.Manifest `json:"manifest"`
	Path     string              `json:"path,omitempty"`
	Bundled  bool                `json:"bundled"`
	// Granted are the capabilities that run gives it without --workspace.
	Granted []pluginapi.Capability `json:"granted"`
}

func newInspect(env *verb.Env) *cobra.Command {
	output := cli.NewFormat(cli.Text, cli.JSON)
	cmd := &cobra.Command{
		Use:   "inspect NAME|PATH",
		Short: "Show what a plugin is, without running it",
		Long: `Inspect reads a WebAssembly module and shows its digest, imports and exports, its
manifest, and the capabilities it asks for and would get. Nothing of it runs. A
plugin that this host would refuse is shown with the reason; the exit code is 13.`,
		Example: "  hostctl plugin inspect scripted\n  hostctl plugin inspect ./guard.wasm --output json",
		Args:    verb.Exactly("NAME|PATH"),
	}
	cmd.Flags().VarP(output, "output", "o", "what stdout gets")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		env.Format = output.Value
		in, err := inspect(env, args[0])
		if err != nil {
			return err
		}
		if output.Value == cli.JSON {
			err = env.Print(in)
		} else {
			err = in.print(env)
		}
		if err != nil || len(in.Problems) == 0 {
			return err
		}
		env.Format = cli.Text // stdout has its object already
		return &exit.PluginError{Plugin: args[0], Err: errors.New(strings.Join(in.Problems, "; "))}
	}
	return cmd
}

func inspect(env *verb.Env, arg string) (*inspected, error) {
	ref := settings.Plugin(arg)
	s, err := env.Library.Open(ref)
	if err != nil {
		return nil, err
	}
	module, err := s.Module()
	if err != nil {
		return nil, &exit.PluginError{Plugin: arg, Err: err}
	}
	in, err := wasm.Inspect(module)
	if err != nil {
		return nil, &exit.PluginError{Plugin: arg, Err: err}
	}
	out := &inspected{Inspection: in, Path: s.Path, Bundled: s.Bundled, Granted: []pluginapi.Capability{}}
	m, err := wasm.ReadManifest(module, s.Sidecar)
	if err != nil {
		text := err.Error()
		known := false
		for _, p := range in.Problems {
			known = known || p == text
		}
		if !known {
			in.Problems = append(in.Problems, text)
		}
		return out, nil
	}
	out.Manifest = &m
	for _, c := range m.Capabilities {
		if c == pluginapi.CapKV || s.Bundled && (c == pluginapi.CapClock || c == pluginapi.CapRandom) {
			out.Granted = append(out.Granted, c)
		}
	}
	return out, nil
}

func (in *inspected) print(env *verb.Env) error {
	var b strings.Builder
	fact := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s %s\n", name, term.Line(fmt.Sprintf(format, args...), 2000))
	}
	fact("digest", "%s", in.Digest)
	fact("size", "%d bytes", in.Bytes)
	if m := in.Manifest; m != nil {
		fact("name", "%s %s", m.Name, m.Version)
		if m.Description != "" {
			fact("about", "%s", m.Description)
		}
		fact("kinds", "%s", joined(m.Kinds))
		for _, h := range m.Hooks {
			onError := h.OnError
			if onError == pluginapi.OnErrorDefault {
				onError = pluginapi.DefaultOnError(h.Point, h.Mutates)
			}
			extra := ""
			if h.Mutates {
				extra = ", may rewrite"
			}
			fact("hook", "%s, order %d, a fault means %s%s", h.Point, h.Order, onError, extra)
		}
		for _, t := range m.Tools {
			fact("tool", "%s: %s", t.Name, t.Description)
		}
		fact("asks for", "%s", orNone(joined(m.Capabilities)))
		fact("gets", "%s (workspace only with --workspace)", orNone(joined(in.Granted)))
	}
	fact("memory", "%d pages of 64 KiB to start", in.MemoryMin)
	fact("time", "%s", map[bool]string{true: "bounded by fuel", false: "bounded by closing on context end"}[in.Metered])
	fact("imports", "%s", symbols(in.Imports))
	fact("exports", "%s", symbols(in.Exports))
	_, err := fmt.Fprint(env.Out, b.String())
	return err
}

func symbols(list []wasm.Symbol) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = strings.TrimPrefix(s.Module+"."+s.Name, ".")
	}
	return orNone(strings.Join(words, " "))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
