package ticket

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/progress"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// mostCompletions is how many ids a shell is offered.
const mostCompletions = 200

// completeTickets offers the ids of tickets that were not named yet.
func (o *options) completeTickets(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return o.complete(cmd, func(s *ticket.State, offer func(id, about string) bool) {
		for t := range s.Tickets() {
			if strings.HasPrefix(t.ID, begun) && !slices.Contains(args, t.ID) && !offer(t.ID, string(t.State)+": "+t.Contract.Title) {
				return
			}
		}
	})
}

// completeUnproved offers the assignments whose stop nothing proves.
func (o *options) completeUnproved(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return o.complete(cmd, func(s *ticket.State, offer func(id, about string) bool) {
		for a := range s.Unsettled() {
			if len(args) == 0 && strings.HasPrefix(a.ID, begun) && progress.UnprovedAttempt(a) && !offer(a.ID, string(a.State)) {
				return
			}
		}
	})
}

// complete reads the scope and offers nothing where it can't: a shell that completes
// shows no errors.
func (o *options) complete(cmd *cobra.Command, each func(s *ticket.State, offer func(id, about string) bool)) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	st, _, err := o.env.OpenStore(cmd.Context(), o.env.StoreURL(o.store))
	if err != nil {
		return nil, none
	}
	defer st.Close() // it was only read
	s, err := scope.Read(cmd.Context(), st, o.env.ScopeID(o.scope))
	if err != nil {
		return nil, none
	}
	var out []string
	each(s, func(id, about string) bool {
		out = append(out, id+"\t"+term.Line(about, 60))
		return len(out) < mostCompletions
	})
	return out, none
}
