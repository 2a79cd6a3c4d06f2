package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/pluginapi"
)

// Options say how a run is shown to people.
type Options struct {
	Out   io.Writer
	Live  bool // a terminal: streamed text, symbols, progress
	Color bool
	Width int  // columns; 0: 100
	Demo  bool // label every line
}

// Text shows events as lines. It is used by one goroutine at a time.
type Text struct {
	l     lines
	p     palette
	live  bool
	width int

	maxIterations, maxRounds uint32 // 0: not known
	iteration                uint32 // of the last header
	streaming                string // what the current line streams: "", "text", "reasoning"
	streamed                 bool   // the answer at hand was streamed already
	started                  map[string]time.Time
	finished                 map[string]bool
}

// DemoLabel stands before everything that the demonstration says.
const DemoLabel = "[demo] "

// NewText makes a Text.
func NewText(o Options) *Text {
	t := &Text{l: lines{w: o.Out}, p: palette{on: o.Color}, live: o.Live, width: o.Width, started: map[string]time.Time{}, finished: map[string]bool{}}
	t.label(o.Demo)
	if t.width <= 0 {
		t.width = 100
	}
	return t
}

// Err is the first write that failed; it holds up nothing.
func (t *Text) Err() error { return t.l.err }

// label starts every line with DemoLabel, or with nothing.
func (t *Text) label(demo bool) {
	t.l.prefix = ""
	if demo {
		t.l.prefix = t.p.as(warn, DemoLabel)
	}
}

// Fact prints a line of what the run works with. The value may come from anywhere.
func (t *Text) Fact(name, value string) {
	t.l.line(t.p.as(faint, fmt.Sprintf("%-8s", name)) + term.Field(value))
}

// symbol is mark on a terminal, word elsewhere.
func (t *Text) symbol(mark, word string) string {
	if t.live {
		return mark
	}
	return word
}

// Event shows one event.
func (t *Text) Event(ev host.Event) {
	if ev.Type != host.EventToken {
		t.endStream()
	}
	switch ev.Type {
	case host.EventStarted:
		if s := ev.Started; s != nil {
			t.maxIterations, t.maxRounds = s.MaxIterations, s.MaxTotalRounds
			t.label(s.Demo)
		}
	case host.EventIterationStarted:
		t.header(ev.Iteration)
	case host.EventRoundStarted:
		t.streamed = false
		t.l.line("  " + t.p.as(faint, "round "+count(ev.Round, t.maxRounds)))
	case host.EventToken:
		t.token(ev.Token)
	case host.EventMessage:
		t.message(ev.Message)
	case host.EventToolStarted:
		if ev.Call != nil {
			t.started[ev.Call.ID] = ev.Time
			t.call(*ev.Call)
		}
	case host.EventToolFinished:
		if ev.Result != nil {
			t.finished[ev.Result.CallID] = true
			t.result(*ev.Result, ev.Time)
		}
	case host.EventHook:
		t.hook(ev)
	case host.EventRetryScheduled:
		if r := ev.Retry; r != nil {
			t.streamed = false
			wait := time.Duration(r.WaitMS) * time.Millisecond
			t.l.line("    " + t.p.as(warn, fmt.Sprintf("%s attempt %d failed: %s; next one in %s, at %s", t.symbol("↻", "retry:"),
				r.Attempt, term.Line(r.Error, 300), wait.Round(time.Millisecond), r.Until.Local().Format("15:04:05"))))
		}
	case host.EventStopRequested:
		again := t.symbol(" (Ctrl-C again cancels)", "")
		t.l.line(t.p.as(warn, t.symbol("■ ", "")+"stop requested: "+term.Line(ev.Reason, 300)+"; what is admitted may finish"+again))
	case host.EventFenced:
		t.l.line(t.p.as(bad, t.symbol("✘", "fenced:")+" another owner took the session over "+term.Line(ev.Reason, 300)))
	case host.EventComplete, host.EventCancelled, host.EventFailed, host.EventRecoveryUnsupported:
		// End says it, from the same committed record.
	}
}

func (t *Text) header(n uint32) {
	t.iteration = n
	head := "iteration " + count(n, t.maxIterations)
	if !t.live {
		t.l.line(head)
		return
	}
	line := t.p.as(heading, "▶ "+head)
	if k := t.maxIterations; k > 1 && k <= 40 && n <= k {
		line += "  " + t.p.as(good, strings.Repeat("▰", int(n))) + t.p.as(faint, strings.Repeat("▱", int(k-n)))
	}
	t.l.line(line)
}

// count is "2/3", or "2" where the bound is not known.
func count(n, of uint32) string {
	if of == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d/%d", n, of)
}

const answerIndent = "    "

// token streams text; only a terminal shows it as it comes.
func (t *Text) token(tok *host.Token) {
	if !t.live || tok == nil || tok.Text == "" {
		return
	}
	kind := "text"
	if tok.Reasoning {
		kind = "reasoning"
	}
	if t.streaming != kind {
		t.endStream()
		t.streaming = kind
	}
	t.streamed = t.streamed || kind == "text"
	text := term.Safe(tok.Text)
	if kind == "reasoning" && t.p.on {
		text = styled(t.p, faint, text)
	}
	t.l.text(text, answerIndent)
}

// styled styles text that may hold line ends; a style must not reach over them.
func styled(p palette, s lipgloss.Style, text string) string {
	parts := strings.Split(text, "\n")
	for i := range parts {
		parts[i] = p.as(s, parts[i])
	}
	return strings.Join(parts, "\n")
}

func (t *Text) endStream() {
	if t.streaming != "" {
		t.l.fresh()
		t.streaming = ""
	}
}

func (t *Text) message(m *pluginapi.Message) {
	if m == nil {
		return
	}
	switch m.Role {
	case pluginapi.RoleAssistant:
		if m.Text != "" && !t.streamed {
			t.block(t.symbol("", "assistant: "), m.Text)
		}
		t.streamed = false
	case pluginapi.RoleUser:
		if m.Origin != "" {
			t.l.line("    " + t.p.as(accent, t.symbol("✎ ", "injected ")+"by "+term.Line(m.Origin, 80)+": ") + term.Line(m.Text, t.width))
		}
	case pluginapi.RoleTool:
		if r := m.Result; r != nil && !t.finished[r.CallID] {
			t.result(*r, time.Time{})
		}
	}
}

// block prints a text that may have many lines.
func (t *Text) block(label, text string) {
	t.l.fresh()
	t.l.text(label+term.Safe(strings.TrimRight(text, " \n"))+"\n", answerIndent)
}

func (t *Text) call(c pluginapi.ToolCall) {
	t.l.line("    " + t.p.as(accent, t.symbol("⚙ ", "tool ")+term.Line(c.Name, 64)) + " " + t.p.as(faint, term.Line(string(c.Arguments), t.width-10)))
}

// result prints what became of a call; at is when it finished, zero where that is not known.
func (t *Text) result(r pluginapi.ToolResult, at time.Time) {
	mark, style := t.symbol("✔ ", ""), good
	if r.Status != pluginapi.ResultOK {
		mark, style = t.symbol("✘ ", ""), bad
	}
	took := ""
	began, announced := t.started[r.CallID]
	if announced && !at.IsZero() {
		took = " (" + Duration(at.Sub(began)) + ")"
	}
	delete(t.started, r.CallID)
	name := "    " + t.p.as(accent, t.symbol("⚙ ", "tool ")+term.Line(r.Name, 64)) + " "
	if announced && t.live { // the line above has the name
		name = "      "
	}
	line := name + t.p.as(style, mark+string(r.Status)) + t.p.as(faint, took)
	if r.Text != "" {
		line += " " + t.p.as(faint, term.Line(r.Text, t.width-24))
	}
	t.l.line(line)
}

// hook prints decisions that changed something; a hook without an opinion is no news.
func (t *Text) hook(ev host.Event) {
	h := ev.Hook
	if h == nil || h.Fault == "" && (h.Action == pluginapi.Continue || h.Action == pluginapi.Allow) && h.Reason == "" {
		return
	}
	style := accent
	switch h.Action {
	case pluginapi.Deny, pluginapi.Ask, pluginapi.Abort:
		style = bad
	case pluginapi.Stop:
		style = warn
	}
	line := "    " + t.p.as(style, fmt.Sprintf("%s %s at %s: %s", t.symbol("⚑", "hook"), term.Line(h.Plugin, 64), h.Point, h.Action))
	if h.Reason != "" {
		line += ": " + term.Line(h.Reason, 300)
	}
	if h.Fault != "" {
		line += t.p.as(bad, " (fault: "+term.Line(h.Fault, 300)+")")
	}
	t.l.line(line)
}

// Duration is d for people: 12ms, 1.3s, 2m5s.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
