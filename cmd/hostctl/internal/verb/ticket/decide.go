package ticket

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// judgement is a yes or no to a submission.
type judgement struct {
	options    *options
	submission string
	revision   uint64
	reason     string
}

func newAccept(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "accept ID...",
		Short: "Take submitted results as the tickets' results",
		Long: `Accept takes the current submission as a ticket's result; what depends on the ticket
may be started then. Read it first: hostctl ticket show ID --result. The command is
about the submission that it finds: should another one come meanwhile, it is refused
with the kind revision_conflict. A contract may ask for a user's word; then --as
supervisor is refused.`,
		Example: `  hostctl ticket accept survey
  hostctl ticket accept survey --submission survey@2 --if-revision 9
  hostctl ticket list --state submitted --output jsonl | jq -r .ticket_id | xargs hostctl ticket accept`,
		Args: atLeast("ID"),
	}
	j := newJudgement(env, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return j.judge(cmd, args, func(of ticket.Of, submission string) ticket.Request {
			return ticket.Accept{Of: of, Submission: submission}
		})
	}
	return cmd
}

func newReject(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reject ID...",
		Short: "Refuse submitted results; the tickets are ready again",
		Long: `Reject refuses the current submission. The ticket is ready again, with all its
attempts. The result stays readable: hostctl ticket show ID --result --submission S.
The next attempt does not read the reason; to ask for something else, revise the
contract.`,
		Example: "  hostctl ticket reject survey --reason 'the folder src/net is missing'",
		Args:    atLeast("ID"),
	}
	j := newJudgement(env, cmd)
	reasonFlag(cmd, &j.reason, "why")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return j.judge(cmd, args, func(of ticket.Of, submission string) ticket.Request {
			return ticket.Reject{Of: of, Submission: submission, Reason: j.reason}
		})
	}
	return cmd
}

func newJudgement(env *verb.Env, cmd *cobra.Command) *judgement {
	j := &judgement{options: newChange(env, cmd)}
	cmd.Flags().StringVar(&j.submission, "submission", "", "only this `SUBMISSION`, as show prints it (default: the current one)")
	revisionFlag(cmd, &j.revision)
	cmd.ValidArgsFunction = j.options.completeTickets
	return j
}

func (j *judgement) judge(cmd *cobra.Command, args []string, request func(ticket.Of, string) ticket.Request) error {
	o := j.options
	return o.with(cmd.Context(), func(s *scope.Scope) error {
		if cmd.Flags().Lookup("reason") != nil {
			if err := needReason(cmd, j.reason); err != nil {
				return err
			}
		}
		if (j.submission != "" || j.revision != 0) && len(args) > 1 {
			return exit.Usagef("%s--submission and --if-revision are about one ticket, not %d", verb.Name(cmd), len(args))
		}
		operation := o.begin()
		wishes := make([]*wish, len(args))
		for i, id := range args {
			of, submission := j.about(s.State(), id, operationOf(operation, id, len(args)), cmd.Name())
			wishes[i] = &wish{id: id, request: request(of, submission)}
		}
		o.carry(cmd.Context(), s, wishes, func(id string) string { return operationOf(operation, id, len(args)) })
		return o.finish(s.State(), s.Binding().ScopeID, cmd.Name(), wishes, func(w *wish, now moved) error {
			o.sayMoved(now)
			return nil
		})
	})
}

// sighting is what a ticket had when it was judged.
type sighting struct {
	ticket.Of
	Submission string `json:"submission"`
}

// about is what a judgement is of: what the flags say, else what the same operation
// was about before, else what there is now.
func (j *judgement) about(s *ticket.State, id, operation, kind string) (of ticket.Of, submission string) {
	of, submission = ticket.Of{Ticket: id, IfRevision: j.revision}, j.submission
	was := stored[sighting](s, operation, kind)
	if was == nil || was.Ticket != id {
		t, ok := s.Ticket(id)
		if !ok {
			return of, submission
		}
		was = &sighting{ticket.Of{IfRevision: t.RecordRevision}, t.CurrentSubmission}
	}
	if of.IfRevision == 0 {
		of.IfRevision = was.IfRevision
	}
	if submission == "" {
		submission = was.Submission
	}
	return of, submission
}

func newConfirmStopped(env *verb.Env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "confirm-stopped ASSIGNMENT",
		Short: "Vouch that nothing of an attempt runs any more",
		Long: `Confirm-stopped is your word that nothing of an attempt runs any more: no process, no
task, no tool of it, on any machine. It is for attempts whose worker is gone and left
no stop receipt; nothing else can tell then, and the ticket waits for you. If it still
runs, a second attempt may work beside it. So look first: at the machine that ran it,
at its processes, at what it may still hold. The reason says how you know, and stays in
the scope's log under your name.

The attempt ends without a result. The ticket is ready for its next attempt, or blocked
where all are spent.`,
		Example: "  hostctl ticket confirm-stopped survey@1 --reason 'the machine node-7 was switched off'",
		Args:    one("ASSIGNMENT"),
	}
	o := newChange(env, cmd)
	reasonFlag(cmd, &reason, "how you know that it stopped")
	cmd.ValidArgsFunction = o.completeUnproved
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), func(s *scope.Scope) error {
			if err := needReason(cmd, reason); err != nil {
				return err
			}
			operation := o.begin()
			w := &wish{id: args[0], request: ticket.ConfirmStopped{Assignment: args[0], Reason: reason}}
			o.carry(cmd.Context(), s, []*wish{w}, func(string) string { return operation })
			state := s.State()
			return o.finish(state, s.Binding().ScopeID, cmd.Name(), []*wish{w}, func(_ *wish, now moved) error {
				o.env.Say("%s", vouched(state, args[0]))
				o.sayMoved(now)
				return nil
			})
		})
	}
	return cmd
}

// vouched says what a person gave their word for.
func vouched(s *ticket.State, id string) string {
	a, _ := s.Assignment(id)
	if a.Runtime == nil {
		return fmt.Sprintf("you vouch that nothing of %s runs or will run; no run of it was ever admitted", id)
	}
	return fmt.Sprintf("you vouch that nothing of %s runs any more: not its run %s in session %s, and no tool of it", id, a.Runtime.RunID, a.Runtime.SessionID)
}
