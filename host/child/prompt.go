package child

import (
	"context"
	"fmt"
	"strings"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/ticket"
)

// Prompt is what a child is told, as text for a model: the contract, and what the
// tickets it depends on gave. contents are the artifacts of spec's inputs by their
// hash.
func Prompt(spec ticket.DispatchSpec, contents map[string][]byte) string {
	var b strings.Builder
	c := spec.Contract
	fmt.Fprintf(&b, "You do one assignment, ticket %s. Your last answer is its result, as a whole.\n\n# %s\n\n%s\n", spec.Ticket, c.Title, c.Objective)
	list := func(title string, items []string) {
		if len(items) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		for _, s := range items {
			fmt.Fprintf(&b, "- %s\n", s)
		}
	}
	list("Constraints", c.Constraints)
	list("The result is accepted if", c.Acceptance)
	for _, in := range spec.Inputs {
		for _, a := range in.Artifacts {
			fmt.Fprintf(&b, "\n## What ticket %s gave\n\n%s\n", in.Ticket, contents[a.SHA256])
		}
	}
	return b.String()
}

// shortObjective stands in for an objective that is longer than a loop's may be; the
// system message has it whole.
const shortObjective = "Do the assignment that the system message describes, and answer with its result."

// told adds what the child is told: the assignment to the system message, and the
// objective where the caller left it out.
func (t *Task) told(ctx context.Context, spec host.RunSpec) (host.RunSpec, error) {
	text, err := t.prompt(ctx)
	if err != nil {
		return spec, err
	}
	if spec.System != "" {
		text = spec.System + "\n\n" + text
	}
	spec.System = text
	if spec.Objective == "" {
		if spec.Objective = t.spec.Contract.Objective; len(spec.Objective) > loop.MaxObjectiveBytes {
			spec.Objective = shortObjective
		}
	}
	return spec, nil
}

// prompt reads the inputs' artifacts.
func (t *Task) prompt(ctx context.Context) (string, error) {
	contents := map[string][]byte{}
	for _, in := range t.spec.Inputs {
		for _, a := range in.Artifacts {
			data, err := t.runner.artifacts.Get(ctx, a.SHA256)
			if err != nil {
				return "", fmt.Errorf("input from ticket %s: %w", in.Ticket, err)
			}
			contents[a.SHA256] = data
		}
	}
	return Prompt(t.spec, contents), nil
}
