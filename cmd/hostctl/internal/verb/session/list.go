package session

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
)

// row is one session of a list. What is not there is null.
type row struct {
	SessionID           string             `json:"session_id"`
	Birth               store.Birth        `json:"birth"`
	Revision            uint64             `json:"revision"`
	LogLength           uint64             `json:"log_length"`
	Status              *loop.Status       `json:"status"`
	ReasonCode          *loop.ReasonCode   `json:"reason_code"`
	RuntimeStatus       loop.RuntimeStatus `json:"runtime_status"`
	IterationsCompleted uint32             `json:"iterations_completed"`
	MaxIterations       uint32             `json:"max_iterations"`
	RoundsStarted       uint32             `json:"rounds_started"`
	Demo                bool               `json:"demo"`
	Holder              *store.Holder      `json:"holder"`
	Error               *string            `json:"error"` // why the record can't be read
}

func rowOf(v host.SessionView) row {
	r := row{
		SessionID: v.ID, Birth: v.Record.Mark.Birth, Revision: v.Record.Mark.Revision, LogLength: v.Record.LogLength,
		RuntimeStatus: v.Head.Runtime.Status, Holder: v.Record.Holder,
	}
	if l := v.Head.Loop; l != nil {
		r.Status, r.ReasonCode = &l.Status, &l.ReasonCode
		r.IterationsCompleted, r.MaxIterations, r.RoundsStarted = l.IterationsCompleted, l.MaxIterations, l.RoundsStarted
	}
	if v.Head.Run != nil {
		r.Demo = v.Head.Run.Demo
	}
	if v.Err != nil {
		text := v.Err.Error()
		r.Error = &text
	}
	return r
}

func newList(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the sessions of a store",
		Long:    "List prints every session of the store. A session that can't be read is listed with the reason, and the exit code is 17.",
		Example: "  hostctl session list\n  hostctl session list --output jsonl | jq -r 'select(.holder != null) | .session_id'",
		Args:    verb.Exactly(),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSON, cli.JSONL)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return o.with(cmd.Context(), "", func(h *host.Host) error { return o.list(cmd.Context(), h) })
	}
	return cmd
}

func (o *options) list(ctx context.Context, h *host.Host) error {
	rows := []row{}
	var damaged error
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := h.Sessions(ctx, cursor, 0)
		if err != nil {
			return err
		}
		for _, v := range page.Items {
			rows = append(rows, rowOf(v))
			if damaged == nil && v.Err != nil {
				damaged = v.Err
			}
		}
		cursor = page.Next
	}
	if err := o.printRows(rows); err != nil {
		return err
	}
	if damaged != nil { // stdout has its object already
		o.env.Format = cli.Text
	}
	return damaged
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
		o.env.Say("no sessions")
		return nil
	}
	w := tabwriter.NewWriter(o.env.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSTATUS\tITERATIONS\tROUNDS\tCREATED\tOWNER")
	for _, r := range rows {
		status, owner := string(r.RuntimeStatus), "-"
		if r.Status != nil {
			status = string(*r.Status)
		}
		switch {
		case r.Error != nil:
			status = "unreadable"
		case r.Demo:
			status += " [demo]"
		}
		if r.Holder != nil {
			owner = r.Holder.Fence.Owner
		}
		created := "-"
		if r.Birth != 0 {
			created = r.Birth.Time().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%d\t%s\t%s\n", cell(r.SessionID), status, r.IterationsCompleted, r.MaxIterations, r.RoundsStarted, created, cell(owner))
	}
	return w.Flush()
}

// cell makes an id safe in a table, and short enough.
func cell(s string) string { return term.Line(term.Field(s), 80) }
