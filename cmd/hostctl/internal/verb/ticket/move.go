package ticket

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// move is a verb that asks the same of each ticket it is given.
type move struct {
	name, short, long, example string
	reason                     bool // it needs one
	request                    func(of ticket.Of, reason string) ticket.Request
	// assignment: what people want on stdout is the id of the attempt.
	assignment bool
}

// moves are the verbs that need nothing but tickets, and perhaps a reason.
func moves() []move {
	return []move{
		{
			name: "ready", short: "Let workers start drafts",
			long: `Ready says that a draft may be started: a worker does so as soon as everything it
depends on is accepted.`,
			example: "  hostctl ticket ready survey risks report",
			request: func(of ticket.Of, _ string) ticket.Request { return ticket.MarkReady{Of: of} },
		},
		{
			name: "start", short: "Start ready tickets at once", assignment: true,
			long: `Start begins an attempt at a ready ticket without waiting for a worker to choose it,
and prints the assignment's id; a worker then runs it. Where it can't be started, the
message says what the ticket waits for.`,
			example: "  hostctl ticket start survey",
			request: func(of ticket.Of, _ string) ticket.Request { return ticket.Start{Of: of} },
		},
		{
			name: "pause", short: "Let nothing of a ticket be started",
			long:    "Pause lets no further attempt start. What runs goes on.",
			example: "  hostctl ticket pause report",
			request: func(of ticket.Of, _ string) ticket.Request { return ticket.Pause{Of: of} },
		},
		{
			name: "resume", short: "Take a pause back",
			example: "  hostctl ticket resume report",
			request: func(of ticket.Of, _ string) ticket.Request { return ticket.Resume{Of: of} },
		},
		{
			name: "block", short: "Let a ticket wait, and take the permit from its worker", reason: true,
			long: `Block lets a ticket wait until it is unblocked. A child that runs loses its permit:
its tools are refused, but it is not stopped; for that, cancel the ticket.`,
			example: "  hostctl ticket block report --reason 'the numbers are being corrected'",
			request: func(of ticket.Of, reason string) ticket.Request { return ticket.Block{Of: of, Reason: reason} },
		},
		{
			name: "unblock", short: "Take a ticket back to where it was blocked, with new attempts",
			long: `Unblock takes a ticket back to the state that it was blocked in, and its attempts
count from the start again. It is also the way on for a ticket whose attempts are spent.`,
			example: "  hostctl ticket unblock report",
			request: func(of ticket.Of, _ string) ticket.Request { return ticket.Unblock{Of: of} },
		},
		{
			name: "cancel", short: "End tickets, and ask what runs of them to stop",
			long: `Cancel ends a ticket. An attempt that runs is asked to stop; one that no worker
admitted yet never will be. What still comes of it is kept as stale.`,
			example: "  hostctl ticket cancel report",
			request: func(of ticket.Of, _ string) ticket.Request { return ticket.Cancel{Of: of} },
		},
		{
			name: "reopen", short: "Make accepted or cancelled tickets ready again",
			long: `Reopen makes a ticket ready again, as if nothing had come of it yet. Results that
others made from its accepted one stay as they are; those that are made from now on
wait for the new one.`,
			example: "  hostctl ticket reopen survey",
			request: func(of ticket.Of, _ string) ticket.Request { return ticket.Reopen{Of: of} },
		},
	}
}

// reasonFlag registers --reason, which the receipt keeps.
func reasonFlag(cmd *cobra.Command, to *string, what string) {
	cmd.Flags().StringVar(to, "reason", "", what+", for people; at most 4096 bytes")
}

// revisionFlag registers --if-revision.
func revisionFlag(cmd *cobra.Command, to *uint64) {
	cmd.Flags().Uint64Var(to, "if-revision", 0, "only if the ticket's record is at this `REVISION`, as show prints it (default: any)")
}

func needReason(cmd *cobra.Command, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return exit.Usagef("%s--reason is missing; say why", verb.Name(cmd))
	}
	return plain(cmd, []string{reason})
}

func newMove(env *verb.Env, m move) *cobra.Command {
	var reason string
	var revision uint64
	cmd := &cobra.Command{
		Use: m.name + " ID...", Short: m.short, Long: m.long, Example: m.example, Args: atLeast("ID"),
	}
	if m.long == "" {
		cmd.Long = m.short + "."
	}
	o := newChange(env, cmd)
	revisionFlag(cmd, &revision)
	if m.reason {
		reasonFlag(cmd, &reason, "why")
	}
	cmd.ValidArgsFunction = o.completeTickets
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), func(s *scope.Scope) error {
			if m.reason {
				if err := needReason(cmd, reason); err != nil {
					return err
				}
			}
			if revision != 0 && len(args) > 1 {
				return exit.Usagef("%s--if-revision is about one ticket, not %d", verb.Name(cmd), len(args))
			}
			wishes := make([]*wish, len(args))
			for i, id := range args {
				wishes[i] = &wish{id: id, request: m.request(ticket.Of{Ticket: id, IfRevision: revision}, reason)}
			}
			operation := o.begin()
			o.carry(cmd.Context(), s, wishes, func(id string) string { return operationOf(operation, id, len(args)) })
			return o.finish(s.State(), s.Binding().ScopeID, m.name, wishes, func(w *wish, now moved) error {
				if m.assignment {
					_, err := fmt.Fprintln(o.env.Out, attemptOf(w.receipt, now))
					return err
				}
				o.sayMoved(now)
				return nil
			})
		})
	}
	return cmd
}

// attemptOf is the assignment that a start made: also where the ticket has gone on since.
func attemptOf(r *ticket.Receipt, now moved) string {
	for _, id := range r.IDs {
		if ticketOf(id) == now.TicketID && id != now.TicketID {
			return id
		}
	}
	return ""
}

// sayMoved tells people what a ticket is now.
func (o *options) sayMoved(now moved) {
	text := fmt.Sprintf("%s: %s", now.TicketID, *now.State)
	if now.WaitsFor != nil {
		text += ", waits for " + *now.WaitsFor
	}
	o.env.Say("%s", text)
}

// ticketOf is the ticket that an id is about: a ticket's own, or an assignment's.
func ticketOf(id string) string {
	name, _, _ := strings.Cut(id, "@")
	return name
}

// stored finds what a repeated operation asked for the first time: what a person
// leaves to the program (the current submission, the newest revision) is the same
// again then, whatever has happened since (T-1). nil: nothing, or something else.
func stored[T any](s *ticket.State, operation, kind string) *T {
	r, ok := s.Receipt(operation)
	if !ok {
		return nil
	}
	var was struct {
		Type    string          `json:"type"`
		Request json.RawMessage `json:"request"`
	}
	var request T
	if json.Unmarshal(r.CanonicalRequest, &was) != nil || was.Type != kind || json.Unmarshal(was.Request, &request) != nil {
		return nil
	}
	return &request
}
