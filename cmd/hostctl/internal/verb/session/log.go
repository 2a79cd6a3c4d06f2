package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/pluginapi"
)

// message is one message of the conversation with where it stands.
type message struct {
	Seq         uint64    `json:"seq"`
	Revision    uint64    `json:"revision"`
	Time        time.Time `json:"time"`
	ExecutionID string    `json:"execution_id"`
	Generation  string    `json:"generation"`
	Iteration   uint32    `json:"iteration,omitempty"`
	Round       uint32    `json:"round,omitempty"`
	pluginapi.Message
}

func newLog(env *verb.Env) *cobra.Command {
	var from uint64
	var limit int
	cmd := &cobra.Command{
		Use:     "log ID",
		Short:   "Print a session's messages in order",
		Long:    "Log prints the conversation: every user, assistant and tool message, in order. For decisions and checkpoints see session events.",
		Example: "  hostctl session log nightly\n  hostctl session log nightly --output jsonl | jq -r 'select(.role == \"assistant\") | .text'",
		Args:    verb.Exactly("ID"),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSON, cli.JSONL)
	cmd.Flags().Uint64Var(&from, "from", 1, "first log entry to look at")
	cmd.Flags().IntVar(&limit, "limit", 0, "most messages to print (default: all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), args[0], func(h *host.Host) error {
			if limit < 0 {
				return exit.Usagef("--limit is %d; it can't be negative", limit)
			}
			return o.log(cmd.Context(), h, args[0], from, limit)
		})
	}
	return cmd
}

func (o *options) log(ctx context.Context, h *host.Host, id string, from uint64, limit int) error {
	all := []message{}
	n := 0
	err := messages(ctx, h, id, from, func(m message) (more bool, err error) {
		if o.output.Value == cli.JSON {
			all = append(all, m)
		} else if err := o.printMessage(m); err != nil {
			return false, err
		}
		n++
		return limit == 0 || n < limit, nil
	})
	if o.output.Value != cli.JSON || err != nil && n == 0 {
		return err
	}
	if werr := o.env.Print(all); werr != nil {
		return werr
	}
	if err != nil { // stdout has its list already
		o.env.Format = cli.Text
	}
	return err
}

// messages passes a session's messages to fn until it wants no more.
func messages(ctx context.Context, h *host.Host, id string, from uint64, fn func(message) (bool, error)) error {
	for {
		// A damaged log comes with its error and with what stands before the damage.
		page, damage := h.Log(ctx, id, from, 0)
		for _, item := range page.Items {
			from = item.Seq + 1
			e := item.Entry
			if e.Message == nil {
				continue
			}
			more, err := fn(message{
				Seq: item.Seq, Revision: item.Revision, Time: e.Time, ExecutionID: e.ExecutionID, Generation: e.Generation,
				Iteration: e.Iteration, Round: e.Round, Message: *e.Message,
			})
			if err != nil || !more {
				return err
			}
		}
		if damage != nil || len(page.Items) == 0 {
			return damage
		}
	}
}

func (o *options) printMessage(m message) error {
	if o.output.Value == cli.JSONL {
		return o.env.Print(m)
	}
	var b strings.Builder
	who := string(m.Role)
	if m.Origin != "" {
		who += " (" + term.Line(m.Origin, 80) + ")"
	}
	switch {
	case m.Result != nil:
		fmt.Fprintf(&b, "%s %s [%s]: %s\n", who, term.Line(m.Result.Name, 64), m.Result.Status, indented(m.Result.Text))
	default:
		fmt.Fprintf(&b, "%s: %s\n", who, indented(m.Text))
	}
	for _, c := range m.ToolCalls {
		fmt.Fprintf(&b, "  calls %s %s\n", term.Line(c.Name, 64), term.Line(string(c.Arguments), 2000))
	}
	_, err := fmt.Fprint(o.env.Out, b.String())
	return err
}

// indented keeps the lines of a text apart from the next message.
func indented(text string) string {
	return strings.ReplaceAll(term.Safe(strings.TrimRight(text, "\n")), "\n", "\n  ")
}
