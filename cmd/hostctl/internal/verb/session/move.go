package session

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host"
)

// created prints the id of a new session, the only data of fork and import.
func (o *options) created(a answer) error {
	if o.output.Value.Object() {
		return o.env.Print(a)
	}
	_, err := fmt.Fprintln(o.env.Out, a.SessionID)
	return err
}

func newFork(env *verb.Env) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "fork ID",
		Short: "Start a new session with the messages of another",
		Long: `Fork copies the messages of a session into a new one, which has no loop yet, and
prints the new id. Tool calls whose effect is unknown stay marked as such. The old
session is not changed.`,
		Example: "  hostctl session fork nightly\n  hostctl session fork nightly --session nightly-2",
		Args:    verb.Exactly("ID"),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSON)
	cmd.Flags().StringVar(&to, "session", "", "`ID` of the new session (default: a new UUIDv7)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), args[0], func(h *host.Host) error {
			if to == "" {
				to = env.NewID()
			}
			if err := o.validate(to); err != nil {
				return err
			}
			if err := h.Fork(cmd.Context(), args[0], to); err != nil {
				return err
			}
			return o.created(answer{SessionID: to, Did: "forked"})
		})
	}
	return cmd
}

// exportMode keeps a conversation private.
const exportMode = 0o600

func newExport(env *verb.Env) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "export ID",
		Short:   "Write a session as JSON lines",
		Long:    "Export writes the committed state of a session, head and log, as JSON lines with a checksum, to stdout or a file. A live run is not disturbed.",
		Example: "  hostctl session export nightly > nightly.jsonl\n  hostctl session export nightly --file nightly.jsonl",
		Args:    verb.Exactly("ID"),
	}
	// The data is the output; there is no other form of it.
	o := &options{env: env, output: cli.NewFormat(cli.Text)}
	verb.StoreFlag(cmd.Flags(), &o.store)
	cmd.Flags().StringVarP(&file, "file", "f", "-", "write to `FILE`, whole or not at all, mode 0600; - is stdout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), args[0], func(h *host.Host) error {
			if file == "-" {
				return h.Export(cmd.Context(), args[0], env.Out)
			}
			place, err := regular(file)
			if err != nil {
				return err
			}
			pending, err := renameio.NewPendingFile(place, renameio.WithPermissions(exportMode))
			if err != nil {
				return err
			}
			defer pending.Cleanup() // after the replacement it has nothing to do
			w := bufio.NewWriter(pending)
			if err := h.Export(cmd.Context(), args[0], w); err != nil {
				return err
			}
			if err := w.Flush(); err != nil {
				return err
			}
			return pending.CloseAtomicallyReplace()
		})
	}
	return cmd
}

// regular is where the export goes: what is replaced there is a file and nothing
// else. A link is followed, and stays.
func regular(file string) (string, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file, nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", exit.Usagef("--file %s is no regular file; for a device or a pipe write to stdout: > %s", file, exit.Quote(file))
	}
	return filepath.EvalSymlinks(file)
}

func newImport(env *verb.Env) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     "import FILE",
		Short:   "Create a session from an export",
		Long:    "Import reads an export (- is stdin) to its end, checks it, creates the session and prints its id. A session of that id must not exist.",
		Example: "  hostctl session import nightly.jsonl\n  hostctl session export a | hostctl session import - --session b",
		Args:    verb.Exactly("FILE"),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSON)
	cmd.Flags().StringVar(&id, "session", "", "`ID` of the new session (default: the exported one's)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), id, func(h *host.Host) error {
			in, err := o.input(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			made, err := h.Import(cmd.Context(), in, id)
			if err != nil {
				return err
			}
			return o.created(answer{SessionID: made, Did: "imported"})
		})
	}
	return cmd
}

func newDelete(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete ID",
		Aliases: []string{"rm"},
		Short:   "Delete a session",
		Long:    "Delete removes a session's head and log for good; what remains is a mark that keeps late writers out. A session with a live run is busy, exit code 15.",
		Example: "  hostctl session delete nightly",
		Args:    verb.Exactly("ID"),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), args[0], func(h *host.Host) error {
			if err := h.Delete(cmd.Context(), args[0]); err != nil {
				return err
			}
			return o.done(answer{SessionID: args[0], Did: "deleted"}, "deleted session %q", args[0])
		})
	}
	return cmd
}
