package session

import (
	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/cmd/hostctl/internal/view"
	"github.com/loophost/loophost/host"
)

func newEvents(env *verb.Env) *cobra.Command {
	var from uint64
	var follow bool
	cmd := &cobra.Command{
		Use:   "events ID",
		Short: "Replay a session's durable events, or follow them",
		Long: `Events prints the events that were projected from the committed log, in order, and
the ending, once the last loop has one and nobody holds the session any more. With
--follow it waits for more until then. Streamed text and other live events exist
only in the run's own output.`,
		Example: "  hostctl session events nightly\n  hostctl session events nightly --follow --output jsonl",
		Args:    verb.Exactly("ID"),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSONL)
	cmd.Flags().Uint64Var(&from, "from", 1, "first log entry to look at")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more until the run has ended")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text := view.NewText(view.Options{Out: env.Out, Color: env.OutTTY && env.Color(), Live: env.OutTTY, Width: env.Width})
		show := func(ev host.Event) error {
			if o.output.Value == cli.JSONL {
				return env.Print(ev)
			}
			text.Event(ev)
			if ev.Type.Terminal() {
				text.Ending(ev)
			}
			return text.Err()
		}
		return o.with(cmd.Context(), args[0], func(h *host.Host) error {
			return h.Events(cmd.Context(), args[0], from, follow, show)
		})
	}
	return cmd
}
