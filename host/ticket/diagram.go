package ticket

import (
	"fmt"
	"strings"
)

// Diagram is the tables as a Markdown document with pictures.
func Diagram() string {
	var b strings.Builder
	b.WriteString("# What moves tickets, assignments and actors\n\nWritten by a test of `host/ticket` from the package's own tables. A move that is in\nno row is refused as `invalid_transition`. Rows that keep the state are left out of\nthe pictures.\n\n## Tickets\n\n")
	draw(&b, ticketMoves)
	b.WriteString("\n`unblock` leads back to the state that the block remembered.\n\n## Assignments\n\n")
	draw(&b, assignmentMoves)
	b.WriteString("\n## Actors\n\n")
	draw(&b, activationMoves)
	return b.String()
}

func draw[S ~string](b *strings.Builder, table []Move[S]) {
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, m := range table {
		from := []string{"[*]"}
		if len(m.From) > 0 {
			from = words(m.From, "")
		}
		label := m.On
		if m.If != "" {
			label += " (" + m.If + ")"
		}
		for _, f := range from {
			for _, to := range m.To {
				fmt.Fprintf(b, "    %s --> %s: %s\n", f, to, label)
			}
		}
	}
	b.WriteString("```\n\n| from | on | condition | to | rule |\n|---|---|---|---|---|\n")
	for _, m := range table {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", cell(m.From), m.On, dash(m.If), cell(m.To), m.Rule)
	}
}

func words[S ~string](states []S, quote string) []string {
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = quote + string(s) + quote
	}
	return out
}

func cell[S ~string](states []S) string { return dash(strings.Join(words(states, "`"), ", ")) }

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
