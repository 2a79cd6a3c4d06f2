package ticket

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/progress"
	"github.com/loophost/loophost/cmd/hostctl/internal/report"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/ticketfile"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// shown is a ticket with all that belongs to it.
type shown struct {
	Type        string              `json:"type,omitempty"`
	ScopeID     string              `json:"scope_id"`
	Seq         uint64              `json:"seq"` // of the scope
	Ticket      ticket.Ticket       `json:"ticket"`
	Assignments []attempt           `json:"assignments"` // oldest first
	Submissions []ticket.Submission `json:"submissions"`
	Outcome     exit.Outcome        `json:"outcome"`
	WaitsFor    *string             `json:"waits_for"`
	Next        *string             `json:"next"` // a command for people
	ExitCode    exit.Code           `json:"exit_code"`
}

// attempt is an assignment with the proof of its stop.
type attempt struct {
	ticket.Assignment
	// Stop is the published stop receipt; null where there is none. Where the stop is
	// proved all the same, a person vouched for it.
	Stop *ticket.StopReceipt `json:"stop"`
}

// looking is ticket show.
type looking struct {
	*options
	result, contract, status bool
	submission               string
}

func newShow(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a ticket with its attempts and results",
		Long: `Show prints a ticket's contract and state, its attempts with their run, session and
stop, its submissions, and what it waits for. ID may also be an assignment's. --result
prints the bytes of the current or accepted result, verified by their hash, and nothing
else; --contract prints the contract as a file that revise reads.

With --exit-status the exit code tells how the ticket stands:

` + exitTable,
		Example: `  hostctl ticket show survey
  hostctl ticket show survey --result > survey.md
  hostctl ticket show survey --output json | jq .waits_for`,
		Args: one("ID"),
	}
	l := &looking{options: newOptions(env, cmd)}
	cmd.Flags().BoolVar(&l.result, "result", false, "print the result's bytes alone")
	cmd.Flags().StringVar(&l.submission, "submission", "", "with --result: the result of this `SUBMISSION` (default: the accepted or current one)")
	cmd.Flags().BoolVar(&l.contract, "contract", false, "print the contract alone, as YAML")
	cmd.Flags().BoolVar(&l.status, "exit-status", false, "end with the exit code of how the ticket stands")
	cmd.ValidArgsFunction = l.completeTickets
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return l.withStore(cmd.Context(), func(st store.Store) error {
			if err := l.usage(); err != nil {
				return err
			}
			b, err := verb.BindingOf(cmd.Context(), st, env.ScopeID(l.scope))
			if err != nil {
				return err
			}
			s, err := scope.Read(cmd.Context(), st, b.ScopeID)
			if err != nil {
				return err
			}
			return l.show(cmd.Context(), st, s, ticketOf(args[0]))
		})
	}
	return cmd
}

func (l *looking) usage() error {
	switch {
	case l.result && l.contract:
		return exit.Usagef("ticket show: --result and --contract exclude each other")
	case (l.result || l.contract) && l.output.Value.Object():
		return exit.Usagef("ticket show: --result and --contract print nothing but their bytes; leave --output %s out", l.output.Value)
	case l.submission != "" && !l.result:
		return exit.Usagef("ticket show: --submission needs --result")
	}
	return nil
}

func (l *looking) show(ctx context.Context, st store.Store, s *ticket.State, id string) error {
	t, ok := s.Ticket(id)
	if !ok {
		return none("show", id)
	}
	standing := progress.New(s).Ticket(id)
	var err error
	switch {
	case l.result:
		err = l.printResult(ctx, st, s, &t)
	case l.contract:
		var data []byte
		if data, err = ticketfile.Write(&t); err == nil {
			_, err = l.env.Out.Write(data)
		}
	default:
		err = l.print(l.shown(s, t, standing))
	}
	if err == nil && l.status && exit.CodeOf(standing.Outcome) != exit.OK {
		return &verb.Reported{Code: exit.CodeOf(standing.Outcome)}
	}
	return err
}

func (l *looking) shown(s *ticket.State, t ticket.Ticket, standing progress.Standing) shown {
	out := shown{
		ScopeID: s.Binding().ScopeID, Seq: s.Seq(), Ticket: t, Assignments: []attempt{}, Submissions: []ticket.Submission{},
		Outcome: standing.Outcome, WaitsFor: known(standing.WaitsFor), Next: known(l.next(standing.Next)),
	}
	if l.output.Value == cli.JSONL {
		out.Type = report.TypeResult
	}
	if l.status {
		out.ExitCode = exit.CodeOf(standing.Outcome)
	}
	for g := uint64(1); g <= t.Generation; g++ {
		id := ticket.AssignmentID(t.ID, g)
		if a, ok := s.Assignment(id); ok {
			out.Assignments = append(out.Assignments, attempt{a, stopOf(s, &a)})
		}
		if sub, ok := s.Submission(id); ok {
			out.Submissions = append(out.Submissions, sub)
		}
	}
	return out
}

// stopOf is the stop receipt that was published of an attempt, nil where there is none.
func stopOf(s *ticket.State, a *ticket.Assignment) *ticket.StopReceipt {
	if a.Runtime == nil {
		return nil
	}
	of := ticket.Stop{Stop: ticket.StopReceipt{Receipt: *a.Runtime}}
	was := stored[ticket.Stop](s, of.Operation(), of.Type())
	if was == nil {
		return nil
	}
	return &was.Stop
}

func (l *looking) print(v shown) error {
	if l.output.Value.Object() {
		return l.env.Print(v)
	}
	_, err := l.env.Out.Write(described(v))
	return err
}

// printResult prints a submission's artifacts, one after the other. A terminal gets
// them made safe; a file or pipe gets their bytes.
func (l *looking) printResult(ctx context.Context, st store.Store, s *ticket.State, t *ticket.Ticket) error {
	id := l.submission
	for _, other := range []string{t.AcceptedSubmission, t.CurrentSubmission} {
		if id == "" {
			id = other
		}
	}
	if id == "" {
		return &ticket.Error{Op: "show", Key: t.ID, Kind: ticket.ResourceBlocked, Detail: fmt.Sprintf("it has no result; the ticket is %s", t.State)}
	}
	sub, ok := s.Submission(id)
	if !ok || sub.Ticket != t.ID {
		return &ticket.Error{Op: "show", Key: t.ID, Kind: ticket.ScopeDenied, Detail: fmt.Sprintf("it has no submission %q", id)}
	}
	keep := scope.NewArtifacts(st, scope.Config{})
	for _, a := range sub.Artifacts {
		data, err := keep.Get(ctx, a.SHA256)
		if err != nil {
			return err
		}
		if l.env.OutTTY {
			data = []byte(term.Safe(string(data)))
			if !bytes.HasSuffix(data, []byte("\n")) {
				data = append(data, '\n')
			}
		}
		if _, err := l.env.Out.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// described is a ticket for people, a fact a line.
func described(v shown) []byte {
	var b bytes.Buffer
	fact := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, term.Line(term.Field(fmt.Sprintf(format, args...)), 400))
	}
	t, c := v.Ticket, v.Ticket.Contract
	fact("ticket", "%s in scope %s", t.ID, v.ScopeID)
	fact("title", "%s", c.Title)
	fact("state", "%s", stateWord(&t, v.Outcome))
	if v.WaitsFor != nil {
		fact("waits for", "%s", *v.WaitsFor)
	}
	if t.Parent != "" {
		fact("parent", "%s", t.Parent)
	}
	if len(t.DependsOn) > 0 {
		fact("depends on", "%s", strings.Join(t.DependsOn, ", "))
	}
	fact("revision", "%d, contract %d", t.RecordRevision, t.ContractRevision)
	fact("attempts", "%d of %d, generation %d", t.Attempts, progress.Attempts(&t), t.Generation)
	who := "a supervisor or a user"
	if c.UserAcceptanceRequired {
		who = "a user"
	}
	fact("accepted by", "%s", who)
	b.WriteString("objective\n")
	fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(term.Safe(strings.TrimRight(c.Objective, "\n")), "\n", "\n  "))
	for _, l := range []struct {
		name  string
		items []string
	}{{"acceptance", c.Acceptance}, {"constraints", c.Constraints}, {"tools", c.AllowedTools}} {
		if len(l.items) > 0 {
			b.WriteString(l.name + "\n")
		}
		for _, item := range l.items {
			fmt.Fprintf(&b, "  - %s\n", strings.ReplaceAll(term.Safe(strings.TrimRight(item, "\n")), "\n", "\n    "))
		}
	}
	if len(v.Assignments) > 0 {
		b.WriteString("attempts\n")
	}
	for _, a := range v.Assignments {
		describeAttempt(&b, a)
	}
	if len(v.Submissions) > 0 {
		b.WriteString("submissions\n")
	}
	for _, s := range v.Submissions {
		describeSubmission(&b, &t, s)
	}
	if v.Next != nil {
		fact("next", "%s", *v.Next)
	}
	return b.Bytes()
}

func describeAttempt(b *bytes.Buffer, a attempt) {
	line := func(format string, args ...any) {
		fmt.Fprintf(b, "  %s\n", term.Line(term.Field(fmt.Sprintf(format, args...)), 400))
	}
	line("%s: %s, %s", a.ID, a.State, stopWords(&a))
	if r := a.Runtime; r != nil {
		line("  run %s in session %s", r.RunID, r.SessionID)
	}
	for _, e := range a.Effects {
		line("  effect: %s", e)
	}
}

// stopWords says what is known of an attempt's stop.
func stopWords(a *attempt) string {
	switch s := a.Stop; {
	case s != nil && s.TaskInstance != nil:
		return "stopped: its task was joined"
	case s != nil && s.PID != nil:
		return fmt.Sprintf("stopped: process %d was reaped", *s.PID)
	case a.ProcessStopped:
		return "stopped: a person vouched for it"
	case a.Runtime == nil:
		return "never admitted"
	}
	return "nothing proves that it stopped"
}

func describeSubmission(b *bytes.Buffer, t *ticket.Ticket, s ticket.Submission) {
	what := "not taken"
	switch {
	case s.Stale:
		what = "stale"
	case s.ID == t.AcceptedSubmission:
		what = "accepted"
	case s.ID == t.CurrentSubmission:
		what = "current"
	}
	fmt.Fprintf(b, "  %s: %s, contract %d\n", term.Field(s.ID), what, s.ContractRevision)
	for _, a := range s.Artifacts {
		fmt.Fprintf(b, "    sha256 %s\n", term.Field(a.SHA256))
	}
}
