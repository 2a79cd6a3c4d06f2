package loop

import (
	"fmt"
	"slices"
	"strings"
)

// Diagram is the machine as a Markdown document: a picture and the table of all
// transitions, both written from Transitions.
func Diagram() string {
	var b strings.Builder
	b.WriteString(`# The loop's state machine

Written by a test of ` + "`host/loop`" + ` from the machine's own table.

A phase is what a running loop waits for. An event is what happened: an effect
answered, or a signal came from outside. The first row that matches is taken.

## Picture

Left out are the rows that keep the phase, and those for a raised cancel: where
one was raised, every answer leads to ` + "`ending`" + `. The table has them.

` + "```mermaid\nstateDiagram-v2\n")
	for _, g := range phaseGroups() {
		fmt.Fprintf(&b, "    state \"%s\" as %s\n", g.title, g.node)
	}
	fmt.Fprintf(&b, "    [*] --> %s\n", Idle)
	for _, t := range Transitions() {
		if t.To == Stay || t.If.Name == ifCancelled.Name {
			continue
		}
		for _, node := range sources(t.From, func(g phaseGroup) string { return g.node }) {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", node, t.To, label(t))
		}
	}
	fmt.Fprintf(&b, "    %s --> [*]\n```\n\n## Table\n\n", Done)
	for _, g := range phaseGroups() {
		fmt.Fprintf(&b, "- *%s*: %s\n", g.title, code(g.phases))
	}
	b.WriteString("\n| from | event | condition | to | rule |\n|---|---|---|---|---|\n")
	for _, t := range Transitions() {
		from := sources(t.From, func(g phaseGroup) string { return "*" + g.title + "*" })
		for i, f := range from {
			if !strings.HasPrefix(f, "*") {
				from[i] = "`" + f + "`"
			}
		}
		to := "–"
		if t.To != Stay {
			to = "`" + string(t.To) + "`"
		}
		condition := t.If.Name
		if condition == "" {
			condition = "–"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", strings.Join(from, ", "), t.On, condition, to, t.Rule)
	}
	return b.String()
}

// phaseGroup is a set of phases that many rows name together.
type phaseGroup struct {
	node   string // in the picture
	title  string
	phases []Phase
}

// phaseGroups lists them, larger ones before those they contain.
func phaseGroups() []phaseGroup {
	return []phaseGroup{
		{"not_yet_bound", "a signal still counts", open},
		{"at_work", "an effect that can be cut off", working},
		{"at_hooks", "hooks run", hooking},
		{"at_commit", "a checkpoint under way", committing},
	}
}

// sources names where a row starts: by its groups as named by name, and by what
// phases are left over.
func sources(from []Phase, name func(phaseGroup) string) []string {
	var out []string
	left := slices.Clone(from)
	for _, g := range phaseGroups() {
		if !containsAll(left, g.phases) {
			continue
		}
		out = append(out, name(g))
		left = slices.DeleteFunc(left, func(p Phase) bool { return slices.Contains(g.phases, p) })
	}
	for _, p := range left {
		out = append(out, string(p))
	}
	return out
}

func containsAll(set, subset []Phase) bool {
	for _, p := range subset {
		if !slices.Contains(set, p) {
			return false
		}
	}
	return true
}

// label is a row on an arrow of the picture.
func label(t Transition) string {
	event := string(t.On)
	if t.On == EvAuto {
		event = "" // the gate decides at once
	}
	switch {
	case t.If.Name == "":
		if event == "" {
			return "otherwise"
		}
		return event
	case event == "":
		return t.If.Name
	}
	return event + " (" + t.If.Name + ")"
}

func code(phases []Phase) string {
	var out []string
	for _, p := range phases {
		out = append(out, "`"+string(p)+"`")
	}
	return strings.Join(out, ", ")
}
