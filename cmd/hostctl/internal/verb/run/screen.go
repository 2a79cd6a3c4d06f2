package run

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/loader"
	"github.com/loophost/loophost/cmd/hostctl/internal/report"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/cmd/hostctl/internal/view"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
)

// screen is what a run shows: lines for people on stderr, data on stdout.
type screen struct {
	env    *verb.Env
	format cli.Format
	quiet  bool
	demo   bool
	text   *view.Text
	events *json.Encoder // jsonl; nil: none
	werr   error         // the first failed write to stdout
	queue  *view.Queue
}

func newScreen(env *verb.Env, want settings.Run, demo bool) *screen {
	s := &screen{
		env: env, format: want.Output, quiet: want.Quiet, demo: demo,
		text: view.NewText(view.Options{Out: env.Err, Live: env.ErrTTY, Color: env.Color(), Width: env.Width, Demo: demo}),
	}
	if want.Output == cli.JSONL {
		s.events = json.NewEncoder(env.Out)
		s.events.SetEscapeHTML(false)
	}
	s.queue = view.NewQueue(s.show)
	return s
}

// session prints the id: the first thing that is printed at all.
func (s *screen) session(id string) {
	if !s.quiet {
		s.text.Fact("session", id)
	}
}

func (s *screen) plan(d store.Description, want settings.Run, plugins *loader.Plan) {
	if s.quiet {
		return
	}
	durability := d.Durability.String()
	if want.Durability != (store.Durability{}) {
		durability += ", at least " + want.Durability.String() + " required"
	}
	place := d.Name
	if d.Location != "" {
		place += " " + d.Location
	}
	s.text.Fact("store", fmt.Sprintf("%s, durability %s", place, durability))
	s.text.Fact("loop", planned(want, plugins))
}

// observe is the run's observer; it never waits for a slow terminal.
func (s *screen) observe(ev host.Event) { s.queue.Put(ev) }

func (s *screen) show(ev host.Event) {
	if s.events != nil && s.werr == nil {
		// A reader that went away doesn't end the run: what was begun ends durably.
		s.werr = s.events.Encode(ev)
	}
	if !s.quiet {
		s.text.Event(ev)
	}
}

// end shows everything that is left and then the ending. The error says that
// stdout could not be written.
func (s *screen) end(res host.Result, v exit.Verdict, took time.Duration, hints exit.Hints) error {
	s.close()
	switch {
	case !s.quiet:
		s.text.End(res, v, took, hints)
	case v.Error != nil:
		s.text.Problem(v.Error)
	}
	if s.werr != nil {
		return s.werr
	}
	if s.format.Object() {
		object := report.Of(res, v)
		if s.format == cli.JSONL {
			object.Type = report.TypeResult
		}
		return s.env.Print(object)
	}
	switch v.Outcome {
	case exit.OutcomeCompleted, exit.OutcomeGoalMet, exit.OutcomeGoalUnmet, exit.OutcomeStopped, exit.OutcomeBudgetExhausted:
		return view.Answer(s.env.Out, res.FinalText, s.env.OutTTY, res.Demo)
	}
	return nil
}

// close waits until every event was shown. Closing twice is fine.
func (s *screen) close() {
	if s.queue != nil {
		s.queue.Close()
		s.queue = nil
	}
}
