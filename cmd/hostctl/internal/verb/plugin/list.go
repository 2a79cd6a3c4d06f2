package plugin

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/pluginapi"
)

type listed struct {
	Name         string                 `json:"name"`
	Version      string                 `json:"version"`
	Description  string                 `json:"description"`
	Kinds        []pluginapi.Kind       `json:"kinds"`
	Points       []pluginapi.HookPoint  `json:"points"`
	Tools        []string               `json:"tools"`
	Capabilities []pluginapi.Capability `json:"capabilities"`
	Digest       string                 `json:"digest"`
	Bytes        int                    `json:"bytes"`
}

func newList(env *verb.Env) *cobra.Command {
	output := cli.NewFormat(cli.Text, cli.JSON, cli.JSONL)
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the plugins that are bundled with this binary",
		Example: "  hostctl plugin list\n  hostctl plugin list --output json",
		Args:    verb.Exactly(),
	}
	cmd.Flags().VarP(output, "output", "o", "what stdout gets")
	cmd.RunE = func(*cobra.Command, []string) error {
		env.Format = output.Value
		rows := []listed{}
		for _, name := range env.Library.Names() {
			s, err := env.Library.Read(settings.PluginRef{Arg: name})
			if err != nil {
				return err
			}
			module, err := s.Module()
			if err != nil {
				return &exit.PluginError{Plugin: name, Err: err}
			}
			m := s.Manifest
			capabilities := m.Capabilities
			if capabilities == nil {
				capabilities = []pluginapi.Capability{}
			}
			rows = append(rows, listed{
				Name: m.Name, Version: m.Version, Description: m.Description, Kinds: m.Kinds, Points: points(m), Tools: tools(m),
				Capabilities: capabilities, Digest: s.Digest, Bytes: len(module),
			})
		}
		return printList(env, output.Value, rows)
	}
	return cmd
}

func printList(env *verb.Env, format cli.Format, rows []listed) error {
	switch format {
	case cli.JSON:
		return env.Print(rows)
	case cli.JSONL:
		for _, r := range rows {
			if err := env.Print(r); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(env.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVERSION\tKINDS\tPOINTS\tTOOLS\tDIGEST")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, term.Line(r.Version, 40), joined(r.Kinds), orDash(joined(r.Points)), orDash(joined(r.Tools)), r.Digest)
	}
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
