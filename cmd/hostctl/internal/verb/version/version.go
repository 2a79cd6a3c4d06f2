// Package version is hostctl version.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/pluginapi"
)

// about is what a bug report needs to name.
type about struct {
	Version    string `json:"version"` // of the module; "(devel)" for a build from a work tree
	Revision   string `json:"revision"`
	Modified   bool   `json:"modified"` // built from a tree with changes
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	PluginAPI  int    `json:"plugin_api"`
	HeadSchema int    `json:"head_schema"`
}

// NewCommand makes the verb.
func NewCommand(env *verb.Env) *cobra.Command {
	output := cli.NewFormat(cli.Text, cli.JSON)
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  hostctl version --output json",
		Args:    verb.Exactly(),
	}
	cmd.Flags().VarP(output, "output", "o", "what stdout gets")
	cmd.RunE = func(*cobra.Command, []string) error {
		env.Format = output.Value
		info, ok := debug.ReadBuildInfo()
		if !ok {
			info = &debug.BuildInfo{}
		}
		a := read(info)
		if output.Value == cli.JSON {
			return env.Print(a)
		}
		_, err := fmt.Fprintf(env.Out, "hostctl %s %s (%s, %s, plugin API %d)\n", a.Version, a.Revision, a.Go, a.Platform, a.PluginAPI)
		return err
	}
	return cmd
}

func read(info *debug.BuildInfo) about {
	a := about{
		Version: info.Main.Version, Revision: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		PluginAPI: pluginapi.APIVersion, HeadSchema: host.HeadSchema,
	}
	if a.Version == "" {
		a.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			a.Revision = s.Value
		case "vcs.modified":
			a.Modified = s.Value == "true"
		}
	}
	return a
}
