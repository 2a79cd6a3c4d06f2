// Package plugin is hostctl plugin: building and inspecting plugins. Nothing of
// a plugin runs here.
package plugin

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/pluginapi"
)

// NewCommand makes the noun with its verbs.
func NewCommand(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "plugin",
		Aliases: []string{"plugins"},
		Short:   "Build, inspect and list plugins",
	}
	cmd.AddCommand(newBuild(env), newInspect(env), newList(env))
	return cmd
}

// joined lists words of any string type.
func joined[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

func points(m pluginapi.Manifest) []pluginapi.HookPoint {
	out := []pluginapi.HookPoint{}
	for _, h := range m.Hooks {
		out = append(out, h.Point)
	}
	return out
}

func tools(m pluginapi.Manifest) []string {
	out := []string{}
	for _, t := range m.Tools {
		out = append(out, t.Name)
	}
	return out
}
