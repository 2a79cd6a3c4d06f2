package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	hostplugin "github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

type built struct {
	Path     string             `json:"path"`
	Digest   string             `json:"digest"`
	Bytes    int                `json:"bytes"`
	Manifest pluginapi.Manifest `json:"manifest"`
}

// builtMode is of the module: data that others may read.
const builtMode = 0o644

func newBuild(env *verb.Env) *cobra.Command {
	output := cli.NewFormat(cli.Text, cli.JSON)
	var file string
	cmd := &cobra.Command{
		Use:   "build DIR",
		Short: "Build a Go plugin to one WebAssembly file",
		Long: `Build compiles the Go package in DIR for WebAssembly with the Go toolchain, puts
DIR/plugin.json into the module as its manifest, checks that this host would take
it, and writes one file. It needs go in PATH.`,
		Example: "  hostctl plugin build ./my-hook\n  hostctl plugin build ./my-hook --file /tmp/my-hook.wasm",
		Args:    verb.Exactly("DIR"),
	}
	cmd.Flags().VarP(output, "output", "", "what stdout gets")
	cmd.Flags().StringVarP(&file, "file", "o", "", "write to `FILE` (default: DIR/NAME.wasm, by the manifest's name)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		env.Format = output.Value
		b, err := build(cmd.Context(), env, args[0], file)
		if err != nil {
			return err
		}
		if output.Value == cli.JSON {
			return env.Print(b)
		}
		env.Say("built %s %s, %d bytes, %s", b.Manifest.Name, b.Manifest.Version, b.Bytes, b.Digest)
		_, err = fmt.Fprintln(env.Out, b.Path)
		return err
	}
	return cmd
}

func build(ctx context.Context, env *verb.Env, dir, file string) (built, error) {
	doc, err := os.ReadFile(filepath.Join(dir, pluginapi.ManifestFile))
	if err != nil {
		return built{}, exit.Usagef("plugin build: a plugin's folder needs a manifest: %w", err)
	}
	manifest, err := hostplugin.ParseManifest(doc)
	if err != nil {
		return built{}, exit.Usagef("plugin build: %s: %w", filepath.Join(dir, pluginapi.ManifestFile), err)
	}
	module, err := compile(ctx, env, dir)
	if err != nil {
		return built{}, err
	}
	if module, err = wasm.AppendManifest(module, doc); err != nil {
		return built{}, err
	}
	in, err := wasm.Inspect(module)
	if err != nil {
		return built{}, err
	}
	if len(in.Problems) > 0 {
		return built{}, &exit.PluginError{Plugin: dir, Err: errors.New(strings.Join(in.Problems, "; "))}
	}
	if file == "" {
		file = filepath.Join(dir, manifest.Name+".wasm")
	}
	if err := renameio.WriteFile(file, module, builtMode); err != nil {
		return built{}, err
	}
	return built{Path: file, Digest: in.Digest, Bytes: in.Bytes, Manifest: manifest}, nil
}

// compile runs the Go toolchain. The result holds no path and no time of this
// machine, so that the same source gives the same bytes.
func compile(ctx context.Context, env *verb.Env, dir string) ([]byte, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, errors.New("plugin build: go is not in PATH; install Go 1.26 or later from https://go.dev/dl, or build the module elsewhere")
	}
	tmp, err := os.MkdirTemp("", "hostctl-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp) // only what this call made
	out := filepath.Join(tmp, "plugin.wasm")
	cmd := exec.CommandContext(ctx, tool, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		env.Say("%s", strings.TrimSpace(log.String()))
		return nil, fmt.Errorf("plugin build: go build in %s failed: %w; its output is above", dir, err)
	}
	return os.ReadFile(out)
}
