// Package root puts the verbs together and turns what they end with into an exit code.
package root

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb/conform"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb/plugin"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb/run"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb/session"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb/storecheck"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb/ticket"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb/version"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb/worker"
	"github.com/loophost/loophost/host"
)

// ownSignals marks verbs that handle signals themselves.
const ownSignals = "own-signals"

// worked wraps an error of a verb's own work; every other error is one of usage.
type worked struct{ err error }

func (w *worked) Error() string { return w.err.Error() }
func (w *worked) Unwrap() error { return w.err }

// NewCommand makes the whole command.
func NewCommand(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hostctl",
		Short: "Run bounded agent loops that nobody has to watch",
		Long: `hostctl runs bounded AI-agent loops durably: every step is on disk before the next
one begins, and every run has one honest ending.

Exit codes: 0 done, 1 error, 2 usage, 10 stopped, 11 budget exhausted, 12 cancelled,
13 failed, 14 fenced, 15 busy, 16 recovery unsupported, 17 store error, 18 goal unmet;
of tickets: 20 submitted, 21 needs a person, 22 under way.`,
		Example:       "  hostctl run --provider demo \"Try it\"\n  hostctl session list",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.SetIn(env.In)
	cmd.SetOut(env.Out)
	cmd.SetErr(env.Err)
	cmd.PersistentFlags().BoolVar(&env.NoColor, "no-color", false, "no colours (also: NO_COLOR)")
	runCmd := run.NewCommand(env)
	runCmd.Annotations = map[string]string{ownSignals: "yes"}
	workerCmd := worker.NewCommand(env)
	workerCmd.Annotations = map[string]string{ownSignals: "yes"}
	cmd.AddCommand(runCmd, workerCmd, session.NewCommand(env), ticket.NewCommand(env), plugin.NewCommand(env), storecheck.NewCommand(env), conform.NewCommand(env), conform.NewOwnerCommand(env), version.NewCommand(env))
	cmd.InitDefaultCompletionCmd()
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &exit.UsageError{Text: verb.Name(c) + err.Error() + "; see " + c.CommandPath() + " --help", Err: err}
	})
	prepare(env, cmd)
	return cmd
}

// prepare makes every command tell errors of usage and of work apart, and gives
// its work a context that signals end.
func prepare(env *verb.Env, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		prepare(env, sub)
	}
	if cmd.HasSubCommands() {
		cmd.Args = known
		cmd.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		return
	}
	work := cmd.RunE
	if work == nil { // the generated ones
		return
	}
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if c.Annotations[ownSignals] == "" {
			ctx, done := env.Interruptible(c.Context())
			defer done()
			c.SetContext(ctx)
		}
		if err := work(c, args); err != nil {
			return &worked{err}
		}
		return nil
	}
}

// known refuses the name of a subcommand that is not there.
func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := "see " + cmd.CommandPath() + " --help"
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return exit.Usagef("%sunknown command %q; %s", verb.Name(cmd), args[0], text)
}

// Execute runs the command for args, without the program's name, and answers
// with the exit code. It reports what no verb reported itself.
func Execute(ctx context.Context, env *verb.Env, args []string) exit.Code {
	root := NewCommand(env)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.OK
	}
	var reported *verb.Reported
	if errors.As(err, &reported) {
		return reported.Code
	}
	var work *worked
	if !errors.As(err, &work) {
		err = usage(err)
		env.Format = formatOf(cmd.Flags(), args)
	} else if env.Format == "" {
		env.Format = formatOf(cmd.Flags(), args)
	}
	if errors.As(env.Report(host.Result{SessionID: sessionOf(cmd.Flags())}, err, exit.Hints{}), &reported) {
		return reported.Code
	}
	return exit.Error
}

func usage(err error) error {
	var own *exit.UsageError
	if errors.As(err, &own) {
		return own
	}
	return &exit.UsageError{Text: err.Error(), Err: err}
}

// formatOf finds the output format that was asked for, also where the flags could
// not be parsed to their end: a script that asked for an object gets one.
func formatOf(flags *pflag.FlagSet, args []string) cli.Format {
	flag := flags.Lookup("output")
	if flag == nil {
		return cli.Text
	}
	format, ok := flag.Value.(*cli.FormatFlag)
	if !ok {
		return cli.Text
	}
	found := cli.NewFormat(format.Allowed...)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		name, value, inline := strings.Cut(arg, "=")
		switch {
		case name != "--output" && name != "--output-format" && (name != "-o" || flag.Shorthand != "o"):
			continue
		case !inline && i+1 < len(args):
			value = args[i+1]
		}
		_ = found.Set(value) // a format that is not allowed is what the error says
	}
	return found.Value
}

// sessionOf is the session that was named by a flag.
func sessionOf(flags *pflag.FlagSet) string {
	for _, name := range []string{"session", "resume"} {
		if f := flags.Lookup(name); f != nil && f.Changed {
			return f.Value.String()
		}
	}
	return ""
}
