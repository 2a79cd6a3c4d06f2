// Package verb holds what the verbs have in common: how they open a host, print
// data and errors, and end.
package verb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loophost/loophost/cmd/hostctl/internal/backend"
	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/loader"
	"github.com/loophost/loophost/cmd/hostctl/internal/report"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/view"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
)

// Env is what every verb works with.
type Env struct {
	*cli.App
	Library loader.Library
}

// Reported is the error of a verb that printed its ending itself; only the exit code is left.
type Reported struct{ Code exit.Code }

// Error names the code.
func (r *Reported) Error() string { return fmt.Sprintf("exit code %d", r.Code) }

// Logger writes what a person should know to stderr.
func (e *Env) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(e.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// StoreVariable is the environment variable that names the store.
const StoreVariable = "LOOPHOST_STORE"

// StoreFlag registers --store.
func StoreFlag(fs *pflag.FlagSet, url *string) {
	fs.StringVar(url, "store", "", "store `URL`: fs:, fs:/path, memory: or redis://host (default: fs:, in your state folder; LOOPHOST_STORE)")
}

// StoreURL is the store in force: the flag, else the environment, else the default.
func (e *Env) StoreURL(flag string) string {
	if flag != "" {
		return flag
	}
	return e.Getenv(StoreVariable)
}

// OpenStore opens a store and asks what it promises.
func (e *Env) OpenStore(ctx context.Context, url string) (store.Store, store.Description, error) {
	s, err := backend.Open(ctx, url, backend.Env{StateDir: e.StateDir(), Logger: e.Logger()})
	if err != nil {
		return nil, store.Description{}, err
	}
	d, err := s.Describe(ctx)
	if err != nil {
		return nil, d, errors.Join(err, s.Close())
	}
	return s, d, nil
}

// WithHost opens the store and a host over it, and closes the store when do returns.
func (e *Env) WithHost(ctx context.Context, storeFlag string, do func(h *host.Host) error) error {
	s, _, err := e.OpenStore(ctx, e.StoreURL(storeFlag))
	if err != nil {
		return err
	}
	h, err := host.New(host.Config{Store: s, Logger: e.Logger()})
	if err == nil {
		err = do(h)
	}
	return errors.Join(err, s.Close())
}

// Print writes v as one line of JSON on stdout.
func (e *Env) Print(v any) error { return report.Write(e.Out, v) }

// Say writes one line for people on stderr.
func (e *Env) Say(format string, args ...any) {
	fmt.Fprintln(e.Err, term.Safe(fmt.Sprintf(format, args...)))
}

// Problem prints an error for people on stderr.
func (e *Env) Problem(p *exit.Problem) {
	view.NewText(view.Options{Out: e.Err, Color: e.Color(), Width: e.Width}).Problem(p)
}

// Name is the verb for the front of a message, "session show: "; "" for hostctl itself.
func Name(cmd *cobra.Command) string {
	_, name, ok := strings.Cut(cmd.CommandPath(), " ")
	if !ok {
		return ""
	}
	return name + ": "
}

// Exactly accepts exactly the named arguments and says which one is missing.
func Exactly(names ...string) cobra.PositionalArgs { return Between(len(names), names...) }

// Between accepts the named arguments, of which the first least must be there.
func Between(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return exit.Usagef("%s%s is missing; usage: %s", Name(cmd), names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return exit.Usagef("%sunexpected argument %q; usage: %s", Name(cmd), args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

// Report prints an error that ends a command: for people on stderr, and in a
// JSON format as one object on stdout.
func (e *Env) Report(res host.Result, err error, hints exit.Hints) error {
	v := exit.Of(res, err, hints)
	if v.Error != nil {
		e.Problem(v.Error)
	}
	if e.Format.Object() {
		object := report.Of(res, v)
		if e.Format == cli.JSONL {
			object.Type = report.TypeResult
		}
		if werr := e.Print(object); werr != nil {
			e.Say("hostctl: stdout: %v", werr)
		}
	}
	return &Reported{Code: v.Code}
}
