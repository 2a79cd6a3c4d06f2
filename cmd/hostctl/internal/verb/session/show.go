package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/report"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
)

func newShow(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show a session's state",
		Long:    "Show prints what a session is now. With --output json it is the head as stored, with session_id, log_length, revision, birth and the current holder.",
		Example: "  hostctl session show nightly\n  hostctl session show nightly --output json | jq .loop.status",
		Args:    verb.Exactly("ID"),
	}
	o := newOptions(env, cmd, cli.Text, cli.JSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.with(cmd.Context(), args[0], func(h *host.Host) error { return o.show(cmd.Context(), h, args[0]) })
	}
	return cmd
}

func (o *options) show(ctx context.Context, h *host.Host, id string) error {
	v, err := h.Show(ctx, id)
	if err != nil {
		return err
	}
	if o.output.Value == cli.JSON {
		object, err := shown(v)
		if err != nil {
			return err
		}
		_, err = o.env.Out.Write(object)
		return err
	}
	_, err = o.env.Out.Write(described(v))
	return err
}

// extra is what show adds to a head.
type extra struct {
	SessionID string        `json:"session_id"`
	Birth     store.Birth   `json:"birth"`
	Revision  uint64        `json:"revision"`
	LogLength uint64        `json:"log_length"`
	Holder    *store.Holder `json:"holder"`
}

// shown is the head, byte for byte as it is stored, with more members behind its own.
func shown(v host.SessionView) ([]byte, error) {
	var more bytes.Buffer
	err := report.Write(&more, extra{SessionID: v.ID, Birth: v.Record.Mark.Birth, Revision: v.Record.Mark.Revision, LogLength: v.Record.LogLength, Holder: v.Record.Holder})
	if err != nil {
		return nil, err
	}
	head := bytes.TrimSpace(v.Record.Head)
	if !json.Valid(head) || len(head) < 3 || head[0] != '{' {
		return nil, fmt.Errorf("session %q: the head is no JSON object", v.ID)
	}
	out := bytes.Clone(head[:len(head)-1])
	out = append(out, ',')
	return append(out, more.Bytes()[1:]...), nil
}

// described is the session for people, a fact a line.
func described(v host.SessionView) []byte {
	var b bytes.Buffer
	fact := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, term.Line(fmt.Sprintf(format, args...), 400))
	}
	fact("session", "%s", v.ID)
	fact("created", "%s", v.Record.Mark.Birth.Time().Format(time.RFC3339))
	if l := v.Head.Loop; l != nil {
		status := string(l.Status)
		if l.ReasonCode != "" {
			status += " (" + string(l.ReasonCode) + ")"
		}
		if v.Head.Run != nil && v.Head.Run.Demo {
			status += " [demo]"
		}
		fact("status", "%s", status)
		if l.Reason != "" {
			fact("why", "%s", l.Reason)
		}
		fact("objective", "%s", l.Objective)
		fact("iterations", "%d of %d complete, %d started", l.IterationsCompleted, l.MaxIterations, l.IterationsStarted)
		fact("rounds", "%d of at most %d", l.RoundsStarted, l.MaxTotalRounds)
		fact("execution", "%s", l.OwnerExecutionID)
		fact("generation", "%s", l.Generation)
	} else {
		fact("status", "no loop yet")
	}
	fact("runtime", "%s", v.Head.Runtime.Status)
	if r := v.Head.Run; r != nil {
		fact("provider", "%s %s %s", r.Provider, r.Model, r.ProviderDigest)
	}
	if f := v.Head.Forked; f != nil {
		fact("forked from", "%s at revision %d", f.SessionID, f.Mark.Revision)
	}
	fact("revision", "%d", v.Record.Mark.Revision)
	fact("log", "%d entries", v.Record.LogLength)
	if v.Record.Holder != nil {
		fact("holder", "%s", exit.Holder(*v.Record.Holder))
	} else {
		fact("holder", "none")
	}
	return b.Bytes()
}
