package ticket

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket/scope"
)

// scopeRow is one scope of a list. What can't be read is null.
type scopeRow struct {
	ScopeID             string      `json:"scope_id"`
	SupervisorSessionID *string     `json:"supervisor_session_id"`
	BindingRevision     *uint64     `json:"binding_revision"`
	Seq                 *uint64     `json:"seq"`
	AuthorityEpoch      *uint64     `json:"authority_epoch"`
	Coordinator         *string     `json:"coordinator"` // null: nobody ever
	Birth               store.Birth `json:"birth"`
	Error               *string     `json:"error"`
}

func scopeRowOf(l scope.Listed) scopeRow {
	r := scopeRow{ScopeID: l.ID, Birth: l.Mark.Birth}
	if l.Err != nil {
		text := l.Err.Error()
		r.Error = &text
		return r
	}
	h := l.Head
	r.SupervisorSessionID, r.BindingRevision, r.Seq, r.AuthorityEpoch = &h.Binding.SupervisorSessionID, &h.Binding.BindingRevision, &h.Seq, &h.AuthorityEpoch
	r.Coordinator = known(h.Coordinator)
	return r
}

func newScopes(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "scopes",
		Short:   "List the ticket scopes of a store",
		Long:    "Scopes prints every ticket scope of the store. One that can't be read is listed with the reason, and the exit code is 17.",
		Example: "  hostctl ticket scopes\n  hostctl ticket scopes --output jsonl | jq -r .scope_id",
		Args:    verb.Exactly(),
	}
	o := &options{env: env, output: cli.NewFormat(cli.Text, cli.JSON, cli.JSONL)}
	verb.StoreFlag(cmd.Flags(), &o.store)
	cmd.Flags().VarP(o.output, "output", "o", "what stdout gets")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return o.withStore(cmd.Context(), func(st store.Store) error {
			rows := []scopeRow{}
			var damaged error
			for cursor, more := "", true; more; more = cursor != "" {
				page, err := scope.List(cmd.Context(), st, cursor, 0)
				if err != nil {
					return err
				}
				for _, l := range page.Items {
					rows = append(rows, scopeRowOf(l))
					if damaged == nil {
						damaged = l.Err
					}
				}
				cursor = page.Next
			}
			if err := o.printScopes(rows); err != nil {
				return err
			}
			if damaged != nil { // stdout has its object already
				o.env.Format = cli.Text
			}
			return damaged
		})
	}
	return cmd
}

func (o *options) printScopes(rows []scopeRow) error {
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
		o.env.Say("no ticket scopes")
		return nil
	}
	w := tabwriter.NewWriter(o.env.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SCOPE\tSUPERVISOR\tCOMMANDS\tCREATED\tCOORDINATOR")
	for _, r := range rows {
		supervisor, commands, coordinator, created := "unreadable", "-", "-", "-"
		if r.Error == nil {
			supervisor, commands = cell(*r.SupervisorSessionID, 80), fmt.Sprint(*r.Seq)
		}
		if r.Coordinator != nil {
			coordinator = cell(*r.Coordinator, 80)
		}
		if r.Birth != 0 {
			created = r.Birth.Time().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cell(r.ScopeID, 80), supervisor, commands, created, coordinator)
	}
	return w.Flush()
}
