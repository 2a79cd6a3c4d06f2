package ticket

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/progress"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// exitTable is in the help of every verb that ends with how tickets stand.
const exitTable = `  0   accepted, each of them
  13  failed: all attempts of one are spent
  21  one needs a person: a draft, a pause, a block, a dependency that will not come,
      or a stop that nothing proves
  20  a result is submitted and waits for acceptance
  22  one is under way still
  12  one was cancelled

Of several the worst counts; the table is in that order, the best first, then the worst.`

// patience is how long a watch waits for the proof of a stop that a worker may still
// bring: workers look for what others left every few seconds.
const patience = 15 * time.Second

// tick is how often a screen is redrawn where nothing happens.
const tick = time.Second

// Causes for which a wait ends without a change.
var (
	errTimeout  = errors.New("the watch's timeout is over")
	errPatience = errors.New("nobody brought the proof of a stop")
	errTick     = errors.New("time to draw again")
)

// watching is ticket watch.
type watching struct {
	*options
	timeout time.Duration
}

func newWatch(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch [ID...]",
		Short: "Follow tickets until each is over or waits for a person",
		Long: `Watch follows the named tickets, or all of the scope: on a terminal as one screen that
is drawn again, elsewhere as a line for each change. It ends when none of them goes on by
itself, and its exit code tells how they stand:

` + exitTable,
		Example: `  hostctl ticket watch
  hostctl ticket watch report --timeout 1h --output jsonl`,
		Args: plain,
	}
	w := &watching{options: newOptions(env, cmd)}
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "longest time to watch; then the exit code is 22 where one is under way (default: no limit)")
	cmd.ValidArgsFunction = w.completeTickets
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return w.with(cmd.Context(), func(s *scope.Scope) error {
			if w.timeout < 0 {
				return exit.Usagef("ticket watch: --timeout is %s; it can't be negative", w.timeout)
			}
			return w.watch(cmd.Context(), s, args)
		})
	}
	return cmd
}

// frame is what is watched, at one moment.
type frame struct {
	scopeID  string
	seq      uint64
	rows     []row
	changed  []row // since the frame before
	outcome  exit.Outcome
	unproved bool // one waits for the proof of a stop
	next     []string
}

// settled reports whether nothing goes on by itself.
func (f *frame) settled() bool {
	for i := range f.rows {
		if f.rows[i].Outcome == exit.OutcomeUnderWay {
			return false
		}
	}
	return true
}

// watch follows tickets until they are settled.
func (w *watching) watch(ctx context.Context, s *scope.Scope, ids []string) error {
	if w.timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, w.timeout, errTimeout)
		defer cancel()
		ctx = limited
	}
	if s.State().Authority().Coordinator == "" && w.output.Value == cli.Text {
		w.env.Say("no worker has served this scope yet; start one: %s", w.hints().Worker())
	}
	show := w.newScreen()
	began := w.env.Now()
	var f frame
	var proofBy time.Time // zero: nothing waits for a proof alone
	state := s.State()
	for {
		next, err := w.look(state, ids, &f)
		if err != nil {
			return err
		}
		f = next
		if err := show.frame(f, w.env.Now().Sub(began)); err != nil {
			return err
		}
		switch {
		case !f.settled():
			proofBy = time.Time{}
		case !f.unproved:
			return w.end(show, f, false)
		case proofBy.IsZero():
			proofBy = time.Now().Add(patience)
		}
		state, err = w.wait(ctx, s, f.seq, proofBy, show)
		switch {
		case err == nil:
		case errors.Is(err, errTick):
			state = s.State()
		case errors.Is(err, errPatience):
			return w.end(show, f, false)
		case errors.Is(err, errTimeout):
			return w.end(show, f, true)
		default:
			return err
		}
	}
}

// wait waits for a change, for the end of patience, or for the next drawing.
func (w *watching) wait(ctx context.Context, s *scope.Scope, seq uint64, proofBy time.Time, show screen) (*ticket.State, error) {
	if !proofBy.IsZero() {
		limited, cancel := context.WithDeadlineCause(ctx, proofBy, errPatience)
		defer cancel()
		ctx = limited
	}
	if show.ticks() {
		limited, cancel := context.WithTimeoutCause(ctx, tick, errTick)
		defer cancel()
		ctx = limited
	}
	state, err := s.Wait(ctx, seq)
	if err != nil && ctx.Err() != nil { // a store call that was cut short says less
		err = context.Cause(ctx)
	}
	return state, err
}

// look makes a frame of a state.
func (w *watching) look(s *ticket.State, ids []string, before *frame) (frame, error) {
	of := progress.New(s)
	f := frame{scopeID: s.Binding().ScopeID, seq: s.Seq()}
	add := func(t *ticket.Ticket) {
		f.rows = append(f.rows, rowOf(s, of, t))
		f.unproved = f.unproved || of.Unproved(t.ID)
		standing := of.Ticket(t.ID)
		if next := w.next(standing.Next); standing.Outcome != exit.OutcomeUnderWay && next != "" && len(f.next) < mostNext && !slices.Contains(f.next, next) {
			f.next = append(f.next, next)
		}
	}
	for _, id := range ids {
		t, ok := s.Ticket(ticketOf(id))
		if !ok {
			return f, none("watch", id)
		}
		add(&t)
	}
	if len(ids) == 0 {
		for t := range s.Tickets() {
			add(t)
		}
	}
	if len(f.rows) == 0 {
		return f, &ticket.Error{Op: "watch", Kind: ticket.ResourceBlocked, Detail: "there is no ticket in this scope; create one"}
	}
	was := make(map[string]*row, len(before.rows))
	for i := range before.rows {
		was[before.rows[i].TicketID] = &before.rows[i]
	}
	each := make([]exit.Outcome, len(f.rows))
	for i := range f.rows {
		r := &f.rows[i]
		each[i] = r.Outcome
		if old := was[r.TicketID]; old == nil || !reflect.DeepEqual(old, r) {
			f.changed = append(f.changed, *r)
		}
	}
	f.outcome = exit.Worst(each)
	return f, nil
}

// mostNext is how many next steps are shown.
const mostNext = 5

// watched is how a watch ended.
type watched struct {
	Type     string         `json:"type,omitempty"`
	ScopeID  string         `json:"scope_id"`
	Seq      uint64         `json:"seq"`
	Outcome  exit.Outcome   `json:"outcome"`
	Counts   map[string]int `json:"counts"` // of every state
	Tickets  []row          `json:"tickets,omitempty"`
	TimedOut bool           `json:"timed_out"`
	Error    *exit.Problem  `json:"error"`
	ExitCode exit.Code      `json:"exit_code"`
}

func (w *watching) end(show screen, f frame, timedOut bool) error {
	code := exit.CodeOf(f.outcome)
	v := watched{ScopeID: f.scopeID, Seq: f.seq, Outcome: f.outcome, Counts: map[string]int{}, TimedOut: timedOut, ExitCode: code}
	for _, s := range states {
		v.Counts[string(s)] = 0
	}
	for i := range f.rows {
		v.Counts[string(f.rows[i].State)]++
	}
	if err := show.end(f, v); err != nil {
		return err
	}
	if w.output.Value == cli.Text {
		if timedOut {
			w.env.Say("%s", fmt.Sprintf("%v (%s)", errTimeout, w.timeout))
		}
		for _, next := range f.next {
			w.env.Say("next    %s", next)
		}
	}
	if code != exit.OK {
		return &verb.Reported{Code: code}
	}
	return nil
}
