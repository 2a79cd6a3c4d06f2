package view

import (
	"charm.land/lipgloss/v2"
)

// palette styles words. The zero value leaves them as they are.
type palette struct{ on bool }

// The colours are the terminal's own sixteen, so that they fit any theme.
var (
	bold    = lipgloss.NewStyle().Bold(true)
	heading = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)
	faint   = lipgloss.NewStyle().Faint(true)
	good    = lipgloss.NewStyle().Foreground(lipgloss.Green)
	warn    = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	bad     = lipgloss.NewStyle().Foreground(lipgloss.Red)
	accent  = lipgloss.NewStyle().Foreground(lipgloss.Magenta)
)

// as styles one line's worth of text.
func (p palette) as(s lipgloss.Style, text string) string {
	if !p.on || text == "" {
		return text
	}
	return s.Inline(true).Render(text)
}
