package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/pluginapi"
)

// End shows how a run ended and what to do next.
func (t *Text) End(res host.Result, v exit.Verdict, took time.Duration, hints exit.Hints) {
	t.endStream()
	if res.Status == "" && v.Error != nil { // nothing was started: there is nothing to say of it
		t.Problem(v.Error)
		return
	}
	mark, style := t.ending(v.Outcome)
	line := t.p.as(style, mark+string(v.Outcome))
	if res.ReasonCode != "" && string(res.ReasonCode) != string(v.Outcome) {
		line += t.p.as(style, " ("+term.Line(string(res.ReasonCode), 64)+")")
	}
	if res.Replayed {
		line += ", reported again: this loop ended earlier under its once key"
	}
	t.l.line(line)
	if res.Reason != "" && v.Error == nil {
		t.Fact("why", term.Line(res.Reason, 500))
	}
	if res.Status != "" {
		facts := []string{
			counters(res.IterationsStarted, res.IterationsCompleted, res.RoundsStarted), tokens(res.Usage),
		}
		if took > 0 {
			facts = append(facts, Duration(took))
		}
		t.Fact("did", strings.Join(facts, ", "))
	}
	if v.Error != nil {
		t.Problem(v.Error)
		return
	}
	t.Fact("next", t.next(res, v.Outcome, hints))
}

func (t *Text) ending(o exit.Outcome) (mark string, style lipgloss.Style) {
	switch o {
	case exit.OutcomeCompleted, exit.OutcomeGoalMet:
		return t.symbol("✔ ", ""), good.Bold(true)
	case exit.OutcomeStopped, exit.OutcomeBudgetExhausted, exit.OutcomeGoalUnmet:
		return t.symbol("■ ", ""), warn.Bold(true)
	}
	return t.symbol("✘ ", ""), bad.Bold(true)
}

func (t *Text) next(res host.Result, o exit.Outcome, hints exit.Hints) string {
	switch o {
	case exit.OutcomeCompleted, exit.OutcomeGoalMet:
		return hints.Command("session log", res.SessionID, "")
	}
	return hints.Again(res.SessionID, "")
}

// counters says what a loop did.
func counters(started, completed, rounds uint32) string {
	return fmt.Sprintf("%s started, %d complete, %s", plural(started, "iteration"), completed, plural(rounds, "round"))
}

func plural(n uint32, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func tokens(u *pluginapi.Usage) string {
	if u == nil || u.InputTokens == nil && u.OutputTokens == nil {
		return "tokens unknown"
	}
	say := func(n *uint64) string {
		if n == nil {
			return "unknown"
		}
		return fmt.Sprint(*n)
	}
	return "tokens " + say(u.InputTokens) + " in, " + say(u.OutputTokens) + " out"
}

// Problem prints an error on one line, and the next step on another.
func (t *Text) Problem(p *exit.Problem) {
	t.endStream()
	t.l.line(t.p.as(bad, "hostctl: ") + term.Line(p.Headline(), 4_000))
	if p.Next != "" {
		t.Fact("next", p.Next)
	}
}

// Ending shows the terminal event of a session that is replayed.
func (t *Text) Ending(ev host.Event) {
	if e := ev.Ending; e != nil {
		t.endStream()
		line := string(e.Status)
		if e.ReasonCode != "" {
			line += " (" + string(e.ReasonCode) + ")"
		}
		if e.Reason != "" {
			line += ": " + term.Line(e.Reason, 500)
		}
		t.l.line(t.p.as(bold, line) + t.p.as(faint, "; "+counters(e.IterationsStarted, e.IterationsCompleted, e.RoundsStarted)))
	}
}

// Answer prints the final answer on stdout. A terminal gets it made safe; a file
// or pipe gets its bytes.
func Answer(w io.Writer, text string, terminal, demo bool) error {
	if terminal {
		text = term.Safe(text)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if demo && text != "" {
		text = DemoLabel + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+DemoLabel) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}
