package ticket

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/progress"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// row is one ticket of a list, or one change of a watch. What is not there is null.
type row struct {
	TicketID           string                  `json:"ticket_id"`
	Title              string                  `json:"title"`
	Parent             *string                 `json:"parent"`
	DependsOn          []string                `json:"depends_on"`
	State              ticket.TicketState      `json:"state"`
	Paused             bool                    `json:"paused"`
	Outcome            exit.Outcome            `json:"outcome"`
	WaitsFor           *string                 `json:"waits_for"`
	Generation         uint64                  `json:"generation"`
	Attempts           uint64                  `json:"attempts"`
	MaxAttempts        uint64                  `json:"max_attempts"`
	AssignmentID       *string                 `json:"assignment_id"` // the active one
	AssignmentState    *ticket.AssignmentState `json:"assignment_state"`
	RecordRevision     uint64                  `json:"record_revision"`
	ContractRevision   uint64                  `json:"contract_revision"`
	CurrentSubmission  *string                 `json:"current_submission"`
	AcceptedSubmission *string                 `json:"accepted_submission"`
}

func rowOf(s *ticket.State, of *progress.Of, t *ticket.Ticket) row {
	standing := of.Ticket(t.ID)
	r := row{
		TicketID: t.ID, Title: t.Contract.Title, Parent: known(t.Parent), DependsOn: t.DependsOn, State: t.State, Paused: t.Paused,
		Outcome: standing.Outcome, WaitsFor: known(standing.WaitsFor), Generation: t.Generation, Attempts: t.Attempts, MaxAttempts: progress.Attempts(t),
		AssignmentID: known(t.ActiveAssignment), RecordRevision: t.RecordRevision, ContractRevision: t.ContractRevision,
		CurrentSubmission: known(t.CurrentSubmission), AcceptedSubmission: known(t.AcceptedSubmission),
	}
	if a, ok := s.Assignment(t.ActiveAssignment); ok {
		r.AssignmentState = &a.State
	}
	return r
}

// states are a ticket's states, in the order of its life.
var states = []ticket.TicketState{
	ticket.Draft, ticket.Ready, ticket.Active, ticket.Submitted, ticket.Accepted, ticket.Blocked, ticket.Cancelled,
}

func newList(env *verb.Env) *cobra.Command {
	var only []string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the tickets of a scope",
		Long:    "List prints the tickets of a scope with their state, and what they wait for.",
		Example: "  hostctl ticket list\n  hostctl ticket list --state submitted,blocked\n  hostctl ticket list --output jsonl | jq -r 'select(.outcome == \"needs_person\") | .ticket_id'",
		Args:    verb.Exactly(),
	}
	o := newOptions(env, cmd)
	cmd.Flags().StringSliceVar(&only, "state", nil, "only tickets in this `STATE`: "+words(states, ", ")+" (repeatable)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return o.with(cmd.Context(), func(s *scope.Scope) error {
			for _, name := range only {
				if !slices.Contains(states, ticket.TicketState(name)) {
					return exit.Usagef("ticket list: --state %q: want %s", name, words(states, ", "))
				}
			}
			state := s.State()
			of := progress.New(state)
			rows := []row{}
			for t := range state.Tickets() {
				if len(only) == 0 || slices.Contains(only, string(t.State)) {
					rows = append(rows, rowOf(state, of, t))
				}
			}
			return o.printRows(rows)
		})
	}
	return cmd
}

func words[S ~string](list []S, between string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, between)
}

func (o *options) printRows(rows []row) error {
	switch o.output.Value {
	case cli.JSON:
		return o.env.Print(rows)
	case cli.JSONL:
		for _, r := range rows {
			if err := o.env.Print(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		o.env.Say("no tickets")
		return nil
	}
	w := tabwriter.NewWriter(o.env.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TICKET\tSTATE\tATTEMPT\tTITLE\tWAITS FOR")
	for _, r := range rows {
		waits := "-"
		if r.WaitsFor != nil {
			waits = cell(*r.WaitsFor, 100)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cell(r.TicketID, 128), r.stateWord(), r.attempt(), cell(r.Title, 50), waits)
	}
	return w.Flush()
}

// stateWord is a ticket's state for people.
func stateWord(t *ticket.Ticket, o exit.Outcome) string {
	word := string(t.State)
	if o == exit.OutcomeFailed {
		word += " (failed)"
	}
	if t.Paused {
		word += " (paused)"
	}
	return word
}

func (r *row) stateWord() string {
	return stateWord(&ticket.Ticket{State: r.State, Paused: r.Paused}, r.Outcome)
}

// attempt is "1/3", or "-" before the first.
func (r *row) attempt() string {
	if r.Attempts == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.Attempts, r.MaxAttempts)
}

// cell makes a text safe in a table, and short enough.
func cell(s string, limit int) string { return term.Line(term.Field(s), limit) }
