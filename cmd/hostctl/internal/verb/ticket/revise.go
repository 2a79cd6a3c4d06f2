package ticket

import (
	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/ticketfile"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

func newRevise(env *verb.Env) *cobra.Command {
	var file string
	var revision uint64
	cmd := &cobra.Command{
		Use:   "revise ID",
		Short: "Change a ticket's contract or dependencies",
		Long: `Revise reads a contract, dependencies, or both from a YAML file with the keys of
ticket create: a contract replaces the old one whole. Where the contract changes, a
running attempt loses its permit, and its result will be stale.`,
		Example: `  hostctl ticket show report --contract > report.yaml
  hostctl ticket revise report --file report.yaml
  echo 'depends-on: [survey]' | hostctl ticket revise report --file -`,
		Args: one("ID"),
	}
	o := newChange(env, cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "the contract or dependencies in YAML: `FILE`, or - for stdin")
	revisionFlag(cmd, &revision)
	cmd.ValidArgsFunction = o.completeTickets
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), func(s *scope.Scope) error {
			if file == "" {
				return exit.Usagef("ticket revise: --file is missing; write what there is with: %s", o.hints().Ticket("show", args[0], "--contract"))
			}
			r, err := ticketfile.ReadRevision(file, env.In, args[0])
			if err != nil {
				return err
			}
			operation := o.begin()
			w := &wish{id: args[0], request: ticket.Revise{Ticket: args[0], IfRevision: revision, Contract: r.Contract, DependsOn: r.DependsOn}}
			o.carry(cmd.Context(), s, []*wish{w}, func(string) string { return operation })
			return o.finish(s.State(), s.Binding().ScopeID, cmd.Name(), []*wish{w}, func(_ *wish, now moved) error {
				o.sayMoved(now)
				return nil
			})
		})
	}
	return cmd
}
