package session

import (
	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/report"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
)

// answer is what a verb that changes a session prints in JSON.
type answer struct {
	SessionID string         `json:"session_id"`
	Did       string         `json:"did"`              // stop_requested, cancel_requested, settled, taken_over, deleted, …
	Holder    *store.Holder  `json:"holder"`           // whom it concerned; null: nobody
	Result    *report.Result `json:"result,omitempty"` // the loop as it is now
	ExitCode  exit.Code      `json:"exit_code"`
}

// done prints what was done: for people on stderr, or as an object on stdout.
func (o *options) done(a answer, format string, args ...any) error {
	if o.output.Value.Object() {
		return o.env.Print(a)
	}
	o.env.Say(format, args...)
	return nil
}

// ended is a loop's result as it is reported beside an answer.
func (o *options) ended(r *host.Result) *report.Result {
	if r == nil {
		return nil
	}
	object := report.Of(*r, exit.Of(*r, nil, o.hints()))
	return &object
}

func newStop(env *verb.Env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Ask a live run to admit nothing more",
		Long: `Stop asks the run that holds the session, in whatever process it is, to admit
nothing more; what is admitted finishes. The run then ends with exit code 10. A
session without a live run is exit code 1, kind not_running.`,
		Example: "  hostctl session stop nightly --reason 'enough for today'",
		Args:    verb.Exactly("ID"),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSON)
	reasonFlag(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), args[0], func(h *host.Host) error {
			holder, err := h.Stop(cmd.Context(), args[0], reason)
			if err != nil {
				return err
			}
			return o.done(answer{SessionID: args[0], Did: "stop_requested", Holder: &holder}, "stop requested: %s", exit.Holder(holder))
		})
	}
	return cmd
}

func newCancel(env *verb.Env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "End a live run now, or settle a loop whose owner died",
		Long: `Cancel interrupts the run that holds the session; it ends with exit code 12. A
loop whose owner died is settled as cancelled. Otherwise it is exit code 1, kind
not_running.`,
		Example: "  hostctl session cancel nightly",
		Args:    verb.Exactly("ID"),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSON)
	reasonFlag(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), args[0], func(h *host.Host) error {
			r, err := h.Cancel(cmd.Context(), args[0], reason)
			switch {
			case err != nil:
				return err
			case r.Holder != nil:
				return o.done(answer{SessionID: args[0], Did: "cancel_requested", Holder: r.Holder}, "cancel requested: %s", exit.Holder(*r.Holder))
			}
			return o.done(answer{SessionID: args[0], Did: "settled", Result: o.ended(r.Settled)}, "the owner of the loop is gone; the loop is now %s", r.Settled.Status)
		})
	}
	return cmd
}

func newTakeOver(env *verb.Env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "take-over ID",
		Short: "Fence the owner of a session, live or hung",
		Long: `Take-over makes the session's owner unable to write to it ever again, and says
whom. A loop that was under way becomes recovery_unsupported; the session is free
then. A fenced run ends with exit code 14 and writes nothing more.`,
		Example: "  hostctl session take-over nightly --reason 'its machine hangs'",
		Args:    verb.Exactly("ID"),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSON)
	reasonFlag(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), args[0], func(h *host.Host) error {
			r, err := h.TakeOver(cmd.Context(), args[0], reason)
			if err != nil {
				return err
			}
			whom, what := "nobody held the session", ""
			if r.Previous != nil {
				whom = "fenced " + exit.Holder(*r.Previous)
			}
			if r.Result != nil {
				what = "; its last loop is " + string(r.Result.Status)
			}
			return o.done(answer{SessionID: args[0], Did: "taken_over", Holder: r.Previous, Result: o.ended(r.Result)}, "%s%s", whom, what)
		})
	}
	return cmd
}
