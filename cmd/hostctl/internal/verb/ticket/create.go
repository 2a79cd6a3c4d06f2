package ticket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/progress"
	"github.com/loophost/loophost/cmd/hostctl/internal/ticketfile"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// defaultSupervisor is the session that a scope is bound to where nobody names one.
const defaultSupervisor = "operator"

// creation is ticket create.
type creation struct {
	*options
	supervisor string
	file       string
	ready      bool

	// One ticket from the command line.
	id, title, objective, parent string
	acceptance, constraint, tool []string
	dependsOn                    []string
	maxAttempts                  uint64
	userAcceptance               bool
}

// single are the flags that describe one ticket.
var single = []string{"id", "title", "objective", "parent", "acceptance", "constraint", "tool", "depends-on", "max-attempts", "user-acceptance"}

func newCreate(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a ticket, or a batch of them from a file",
		Long: `Create makes one ticket from flags, or up to 1,000 from a YAML file, all or none, and
prints their ids. New tickets are drafts; with --ready workers may start them.

The first ticket makes the scope, bound to the session that --supervisor names. The
file has a list under the key tickets; the keys of a ticket are the flags of this
command, and defaults holds what tickets don't say themselves:

  defaults:
    acceptance: ["the tests pass"]
    max-attempts: 3
  tickets:
    - id: parse
      title: Parse the log
      objective: "@parse.md"
    - id: report
      title: Write the report
      objective: Sum up what parse found.
      depends-on: [parse]
      user-acceptance: true

Given again with the same --operation, it makes nothing and prints the same.`,
		Example: `  hostctl ticket create --title "Survey the parsers" --objective @survey.md --acceptance "every folder is named" --ready
  hostctl ticket create --file tickets.yaml --ready --operation nightly-2026-12-01`,
		Args: verb.Exactly(),
	}
	c := &creation{options: newChange(env, cmd)}
	fs := cmd.Flags()
	fs.StringVarP(&c.file, "file", "f", "", "a batch of tickets in YAML: `FILE`, or - for stdin")
	fs.BoolVar(&c.ready, "ready", false, "mark what is made ready")
	fs.StringVar(&c.supervisor, "supervisor", defaultSupervisor, "session `ID` that a new scope is bound to; of a scope that is there it must be the one")
	fs.StringVar(&c.id, "id", "", "`ID` of the ticket: letters, digits, '.', '_', '-' (default: made from the title)")
	fs.StringVar(&c.title, "title", "", "what it is about, in a few words")
	fs.StringVar(&c.objective, "objective", "", "what is to be done: `TEXT`, @FILE, or - for stdin")
	fs.StringArrayVar(&c.acceptance, "acceptance", nil, "what the result must be: a `CRITERION` (repeatable; at least one)")
	fs.StringArrayVar(&c.constraint, "constraint", nil, "a `RULE` that the work must keep (repeatable)")
	fs.StringArrayVar(&c.tool, "tool", nil, "`NAME` of a tool that the work may use (repeatable; default: those that the worker has)")
	fs.StringArrayVar(&c.dependsOn, "depends-on", nil, "`ID` of a ticket that must be accepted first (repeatable)")
	fs.StringVar(&c.parent, "parent", "", "`ID` of the ticket that this one is a part of")
	fs.Uint64Var(&c.maxAttempts, "max-attempts", 0, "how often it may be tried, 1 to 100 (default: once)")
	fs.BoolVar(&c.userAcceptance, "user-acceptance", false, "only a person may accept the result")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.withStore(cmd.Context(), func(st store.Store) error { return c.create(cmd, st) })
	}
	return cmd
}

func (c *creation) create(cmd *cobra.Command, st store.Store) error {
	ctx := cmd.Context()
	batch, err := c.batch(cmd)
	if err != nil {
		return err
	}
	operation := c.begin()
	b, err := verb.BindingOf(ctx, st, c.env.ScopeID(c.scope))
	var s *scope.Scope
	switch {
	case errors.Is(err, store.ErrNotFound):
		s, err = c.newScope(ctx, st, operation, batch)
	case err == nil:
		if cmd.Flags().Changed("supervisor") {
			b.SupervisorSessionID = c.supervisor // another one is refused
		}
		s, err = scope.Open(ctx, st, b, c.config())
	}
	if err != nil {
		return err
	}
	defer s.Close()
	receipt, err := c.make(ctx, s, operation, batch)
	if err != nil {
		return err
	}
	ids := receipt.IDs
	if err := c.markReady(ctx, s, operation, ids); err != nil {
		return err
	}
	return c.made(s, receipt)
}

func (c *creation) config() scope.Config { return scope.Config{Logger: c.env.Logger()} }

// newScope makes the scope, unless the batch could not be made in it.
func (c *creation) newScope(ctx context.Context, st store.Store, operation string, batch *ticketfile.Batch) (*scope.Scope, error) {
	b := ticket.Binding{ScopeID: c.env.ScopeID(c.scope), SupervisorSessionID: c.supervisor, BindingRevision: 1}
	empty, err := ticket.New(b)
	if err != nil {
		return nil, err
	}
	request := c.request(empty, operation, batch)
	if _, err := empty.Decide(ticket.Command{OperationID: operation, Principal: c.principal(b), Request: request}); err != nil {
		return nil, placed(batch, err)
	}
	s, err := scope.Create(ctx, st, b, c.config())
	if errors.Is(err, store.ErrExists) { // somebody was faster
		return scope.Open(ctx, st, b, c.config())
	}
	return s, err
}

// make gives the command. An id that was made from the title, and that somebody else
// took meanwhile, is made anew.
func (c *creation) make(ctx context.Context, s *scope.Scope, operation string, batch *ticketfile.Batch) (ticket.Receipt, error) {
	for {
		request := c.request(s.State(), operation, batch)
		r, err := s.Do(ctx, ticket.Command{OperationID: operation, Principal: c.principal(s.Binding()), Request: request})
		if err == nil || batch.Tickets[0].ID != "" {
			return r, placed(batch, err)
		}
		if _, taken := s.State().Ticket(request.Tickets[0].ID); !taken || !errors.Is(err, ticket.InvalidTransition) {
			return r, err
		}
	}
}

// request is the batch with an id for the ticket that has none: the one that the same
// operation gave it before, or a new one.
func (c *creation) request(s *ticket.State, operation string, batch *ticketfile.Batch) ticket.Create {
	if batch.Tickets[0].ID != "" {
		return ticket.Create{Tickets: batch.Tickets}
	}
	t := batch.Tickets[0]
	if was := stored[ticket.Create](s, operation, ticket.Create{}.Type()); was != nil && len(was.Tickets) == 1 {
		t.ID = was.Tickets[0].ID
	} else {
		t.ID = freeID(s, slug(t.Contract.Title), c.env.NewID)
	}
	return ticket.Create{Tickets: []ticket.NewTicket{t}}
}

// placed says where in the file the ticket stands that was refused.
func placed(batch *ticketfile.Batch, err error) error {
	refused, ok := errors.AsType[*ticket.Error](err)
	if !ok || batch.Place(refused.Key) == "" {
		return err
	}
	return fmt.Errorf("ticket file %s: %w", batch.Place(refused.Key), err)
}

// markReady marks the drafts among ids ready; what somebody did so already, or what
// went on since, is as wanted.
func (c *creation) markReady(ctx context.Context, s *scope.Scope, operation string, ids []string) error {
	if !c.ready {
		return nil
	}
	var wishes []*wish
	for _, id := range ids {
		if t, ok := s.State().Ticket(id); ok && t.State == ticket.Draft {
			wishes = append(wishes, &wish{id: id, request: ticket.MarkReady{Of: ticket.Of{Ticket: id}}})
		}
	}
	c.carry(ctx, s, wishes, func(id string) string { return operation + "/ready/" + id })
	for _, w := range wishes {
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

func (c *creation) made(s *scope.Scope, receipt ticket.Receipt) error {
	if !c.output.Value.Object() {
		for _, id := range receipt.IDs {
			if _, err := fmt.Fprintln(c.env.Out, id); err != nil {
				return err
			}
		}
		return nil
	}
	a := answer{ScopeID: s.Binding().ScopeID, Did: "create", OperationID: c.tried, Receipt: &receipt}
	state := s.State()
	of := progress.New(state)
	for _, id := range receipt.IDs {
		a.Tickets = append(a.Tickets, movedOf(state, of, id))
	}
	return c.print(a)
}

// batch is what the file or the flags describe. Only a single ticket may have no id yet.
func (c *creation) batch(cmd *cobra.Command) (*ticketfile.Batch, error) {
	if c.file != "" {
		for _, name := range single {
			if cmd.Flags().Changed(name) {
				return nil, exit.Usagef("ticket create: --%s describes one ticket; with --file the tickets are in the file", name)
			}
		}
		return ticketfile.Read(c.file, c.env.In)
	}
	objective, err := c.readObjective()
	if err != nil {
		return nil, err
	}
	contract := ticket.Contract{
		Title: c.title, Objective: objective, Constraints: c.constraint, Acceptance: c.acceptance, UserAcceptanceRequired: c.userAcceptance,
		AllowedTools: c.tool, Retry: ticket.Retry{MaxAttempts: c.maxAttempts},
	}
	for _, text := range append([]string{c.id, c.title, objective, c.parent}, flat(c.constraint, c.acceptance, c.tool, c.dependsOn)...) {
		if !utf8.ValidString(text) {
			return nil, exit.Usagef("ticket create: %q is not valid UTF-8", text)
		}
	}
	if refused, ok := errors.AsType[*ticket.Error](contract.Validate()); ok {
		return nil, exit.Usagef("ticket create: %s; see hostctl ticket create --help", refused.Detail)
	}
	if c.id == "" && cmd.Flags().Changed("id") {
		return nil, exit.Usagef("ticket create: --id is empty")
	}
	return &ticketfile.Batch{Tickets: []ticket.NewTicket{{ID: c.id, Parent: c.parent, DependsOn: c.dependsOn, Contract: contract}}}, nil
}

func flat(lists ...[]string) []string {
	var out []string
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// readObjective reads TEXT, @FILE or - for stdin. A line end at the end of a file does
// not belong to it.
func (c *creation) readObjective() (string, error) {
	name, isFile := ticketfile.Named(c.objective)
	var in io.Reader
	switch {
	case isFile:
		f, err := os.Open(name)
		if err != nil {
			return "", exit.Usagef("--objective: %w", err)
		}
		defer f.Close()
		in = f
	case c.objective == "-":
		in = c.env.In
	default:
		return name, nil
	}
	data, err := io.ReadAll(io.LimitReader(in, ticketfile.MaxBytes))
	if err != nil {
		return "", exit.Usagef("--objective %s: %w", c.objective, err)
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}
