// Package session is hostctl session: looking at sessions and steering them.
package session

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/backend"
	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
)

// NewCommand makes the noun with its verbs.
func NewCommand(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "session",
		Aliases: []string{"sessions"},
		Short:   "List, show, stop, fork and move sessions",
	}
	cmd.AddCommand(
		newList(env), newShow(env), newLog(env), newEvents(env), newStop(env), newCancel(env),
		newTakeOver(env), newFork(env), newExport(env), newImport(env), newDelete(env),
	)
	return cmd
}

// options are what every verb of the noun has.
type options struct {
	env    *verb.Env
	store  string
	output *cli.FormatFlag
}

// newOptions registers --store and --output with the given formats on cmd.
func newOptions(env *verb.Env, cmd *cobra.Command, formats ...cli.Format) *options {
	o := &options{env: env, output: cli.NewFormat(formats...)}
	verb.StoreFlag(cmd.Flags(), &o.store)
	cmd.Flags().VarP(o.output, "output", "o", "what stdout gets")
	return o
}

func (o *options) hints() exit.Hints { return exit.Hints{Store: backend.Shown(o.store)} }

// with opens the host and does the work; a failure is reported with the next step.
func (o *options) with(ctx context.Context, id string, do func(h *host.Host) error) error {
	o.env.Format = o.output.Value
	err := o.validate(id)
	if err == nil {
		err = o.env.WithHost(ctx, o.store, do)
	}
	if err == nil {
		return nil
	}
	return o.env.Report(host.Result{SessionID: id}, err, o.hints())
}

func (o *options) validate(id string) error {
	if id == "" {
		return nil
	}
	return store.SessionKey(id).Validate()
}

// input is stdin for "-", else a file.
func (o *options) input(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(o.env.In), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return f, nil
}

// reasonFlag registers --reason, which goes to the session's owner and its records.
func reasonFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "reason", "", "why, for people; at most 1024 bytes")
}
