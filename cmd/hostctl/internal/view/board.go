package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/loophost/loophost/cmd/hostctl/internal/term"
)

// Mood is how a line of a board is meant.
type Mood int

// The moods.
const (
	Calm   Mood = iota // it waits its turn
	Busy               // it goes on
	Asking             // somebody has to act
	Good               // it is as wanted
	Bad                // it failed
	Gone               // it is over, and was not wanted
)

// Item is one line of a board. Its texts may come from anywhere.
type Item struct {
	Mood  Mood
	ID    string
	State string
	Text  string
}

// Count says how many there are of a kind.
type Count struct {
	Word string
	N    int
}

// Board is what a screen shows of work in many pieces.
type Board struct {
	Title   string
	Counts  []Count // those of 0 are left out
	Done    int     // of All
	All     int
	Items   []Item // the most interesting first; those that have no room are counted
	Elapsed time.Duration
}

// BoardOptions say how a board is shown.
type BoardOptions struct {
	Out   io.Writer
	Color bool
	Size  func() (columns, rows int) // 0: not known
}

// Screen redraws a board in place, on a terminal.
type Screen struct {
	o     BoardOptions
	drawn int // lines that are there
	err   error
}

// Sizes of a terminal that doesn't tell.
const (
	defaultColumns = 80
	defaultRows    = 24
)

// NewScreen makes a screen.
func NewScreen(o BoardOptions) *Screen { return &Screen{o: o} }

// Err is the first write that failed.
func (s *Screen) Err() error { return s.err }

// Draw shows a board in the place of the one before.
func (s *Screen) Draw(b Board) {
	columns, rows := 0, 0
	if s.o.Size != nil {
		columns, rows = s.o.Size()
	}
	if columns <= 0 {
		columns = defaultColumns
	}
	if rows <= 0 {
		rows = defaultRows
	}
	lines := b.Lines(columns-1, rows-1, s.o.Color)
	var out strings.Builder
	if up := min(s.drawn, rows-1); up > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r", up)
	}
	for _, l := range lines {
		out.WriteString(l + "\x1b[K\n") // and nothing behind it
	}
	out.WriteString("\x1b[J") // nor below
	s.drawn = len(lines)
	if _, err := io.WriteString(s.o.Out, out.String()); err != nil && s.err == nil {
		s.err = err
	}
}

// barWidth is how many steps a bar has.
const barWidth = 24

// Lines are a board's lines, at most rows of at most columns each.
func (b Board) Lines(columns, rows int, color bool) []string {
	p := palette{on: color}
	fit := lipgloss.NewStyle().MaxWidth(max(columns, 1))
	var out []string
	add := func(line string) { out = append(out, fit.Render(line)) }
	add(p.as(heading, term.Line(b.Title, 200)) + p.as(faint, "  "+b.Elapsed.Round(time.Second).String()))
	filled := 0
	if b.All > 0 {
		filled = barWidth * b.Done / b.All
	}
	bar := p.as(good, strings.Repeat("▰", filled)) + p.as(faint, strings.Repeat("▱", barWidth-filled))
	var counts []string
	for _, c := range b.Counts {
		if c.N > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.N, c.Word))
		}
	}
	add(fmt.Sprintf("%s %d/%d  %s", bar, b.Done, b.All, strings.Join(counts, ", ")))
	room := max(rows-len(out), 0)
	items := b.Items
	if len(items) > room {
		items = items[:max(room-1, 0)]
	}
	longest := 0
	for _, it := range items {
		longest = max(longest, lipgloss.Width(idOf(it)))
	}
	for _, it := range items {
		mark, style := moods(it.Mood)
		line := p.as(style, mark+" ") + padded(idOf(it), longest) + "  " + p.as(style, padded(term.Line(it.State, 24), 9))
		if it.Text != "" {
			line += "  " + p.as(faint, term.Line(it.Text, 400))
		}
		add(line)
	}
	if more := len(b.Items) - len(items); more > 0 && room > 0 {
		add(p.as(faint, fmt.Sprintf("  … and %d more", more)))
	}
	return out
}

func idOf(it Item) string { return term.Line(term.Field(it.ID), 40) }

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-lipgloss.Width(s)))
}

func moods(m Mood) (mark string, style lipgloss.Style) {
	switch m {
	case Busy:
		return "▶", accent
	case Asking:
		return "◆", warn
	case Good:
		return "✔", good
	case Bad:
		return "✘", bad
	case Gone:
		return "■", faint
	}
	return "·", faint
}
