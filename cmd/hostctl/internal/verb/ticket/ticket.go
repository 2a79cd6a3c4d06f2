// Package ticket is hostctl ticket: planning work, looking at it, and saying yes or
// no to what came of it. Workers do it: hostctl worker.
package ticket

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/backend"
	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/progress"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// NewCommand makes the noun with its verbs.
func NewCommand(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ticket",
		Aliases: []string{"tickets"},
		Short:   "Plan work for child sessions, and accept what came of it",
		Long: `Tickets are pieces of work that a supervisor hands to child sessions. A ticket is a
draft until it is ready; a worker (hostctl worker) starts it once what it depends on
is accepted; its result waits as submitted until somebody accepts or rejects it. That
a child stopped, that it submitted a result and that the result was accepted are three
facts, and none of them is taken for another.`,
	}
	cmd.AddCommand(
		newCreate(env), newList(env), newShow(env), newWatch(env), newAccept(env), newReject(env), newConfirmStopped(env), newRevise(env), newScopes(env),
	)
	for _, m := range moves() {
		cmd.AddCommand(newMove(env, m))
	}
	return cmd
}

// options are what every verb of the noun has.
type options struct {
	env    *verb.Env
	store  string
	scope  string
	output *cli.FormatFlag

	// Of verbs that change something.
	as        string
	operation string
	tried     string // the operation, once it is known
}

// newOptions registers what looking takes: --store, --scope and --output.
func newOptions(env *verb.Env, cmd *cobra.Command) *options {
	o := &options{env: env, output: cli.NewFormat(cli.Text, cli.JSON, cli.JSONL)}
	verb.StoreFlag(cmd.Flags(), &o.store)
	verb.ScopeFlag(cmd.Flags(), &o.scope)
	cmd.Flags().VarP(o.output, "output", "o", "what stdout gets")
	return o
}

// The roles that a person at a shell may act in.
const (
	asUser       = "user"
	asSupervisor = "supervisor"
)

// newChange registers what changing takes as well: --as and --operation.
func newChange(env *verb.Env, cmd *cobra.Command) *options {
	o := newOptions(env, cmd)
	cmd.Flags().StringVar(&o.as, "as", asUser, "act as `ROLE`: user (you, by your system's name) or supervisor (the session that the scope is bound to)")
	cmd.Flags().StringVar(&o.operation, "operation", "", "`ID` that makes this command happen once, however often it is given (default: a random one)")
	return o
}

func (o *options) hints() exit.Hints {
	return exit.Hints{Store: backend.Shown(o.store), Scope: o.scope, Operation: o.tried}
}

// next words a step as a command.
func (o *options) next(s progress.Step) string {
	switch s.Verb {
	case "":
		return ""
	case "accept": // nobody should accept what they did not read
		return o.hints().Ticket("show", s.ID, "--result") + ", then: " + o.hints().Ticket("accept", s.ID, "") + ", or: " + o.hints().Ticket("reject", s.ID, "--reason WHY")
	}
	return o.hints().Ticket(s.Verb, s.ID, s.Rest)
}

// withStore opens the store and does the work; a failure is reported with the next step.
func (o *options) withStore(ctx context.Context, do func(store.Store) error) error {
	o.env.Format = o.output.Value
	err := func() error {
		if o.as != "" && o.as != asUser && o.as != asSupervisor {
			return exit.Usagef("--as %q: want %s or %s", o.as, asUser, asSupervisor)
		}
		if n := len(o.operation); n > maxOperation {
			return exit.Usagef("--operation has %d bytes; at most %d are allowed", n, maxOperation)
		}
		st, _, err := o.env.OpenStore(ctx, o.env.StoreURL(o.store))
		if err != nil {
			return err
		}
		return errors.Join(do(st), st.Close())
	}()
	var reported *verb.Reported
	if err == nil || errors.As(err, &reported) {
		return err
	}
	return o.env.Report(host.Result{}, err, o.hints())
}

// with opens the scope too.
func (o *options) with(ctx context.Context, do func(*scope.Scope) error) error {
	return o.withStore(ctx, func(st store.Store) error {
		s, err := o.env.OpenScope(ctx, st, o.env.ScopeID(o.scope))
		if err != nil {
			return err
		}
		defer s.Close()
		return do(s)
	})
}

// principal is who gives commands: never read from input, but for the choice of the
// role (T-4).
func (o *options) principal(b ticket.Binding) ticket.Principal {
	if o.as == asSupervisor {
		return ticket.Supervisor(b.SupervisorSessionID)
	}
	return ticket.User(o.env.User)
}

// none says that there is no such ticket, as the rules do of commands.
func none(op, id string) error {
	return &ticket.Error{Op: op, Key: id, Kind: ticket.ScopeDenied, Detail: "there is no such ticket in this scope"}
}

// atLeast accepts one argument or more.
func atLeast(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exit.Usagef("%s%s is missing; usage: %s", verb.Name(cmd), name, cmd.UseLine())
		}
		return plain(cmd, args)
	}
}

// one accepts one argument.
func one(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := verb.Exactly(name)(cmd, args); err != nil {
			return err
		}
		return plain(cmd, args)
	}
}

// plain refuses arguments that no JSON can hold.
func plain(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return exit.Usagef("%s%q is not valid UTF-8", verb.Name(cmd), arg)
		}
	}
	return nil
}
