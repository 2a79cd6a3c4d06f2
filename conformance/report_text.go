package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteJSON writes the report as one indented JSON object.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteTable writes the report for people: a line for each profile, then every
// case that did not pass with its reason, then the notes.
func (r Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "store        %s\n", strings.TrimSpace(r.Store.Name+" "+r.Store.Version))
	fmt.Fprintf(&b, "durability   %s: %s\n", r.Store.Durability, r.Store.Probe)
	fmt.Fprintf(&b, "environment  %s\n", r.Environment.Name)
	fmt.Fprintf(&b, "seed         %d\n\n", r.Seed)
	tw := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "PROFILE\tPASSED\tFAILED\tSKIPPED\tVERDICT")
	for _, p := range r.Profiles {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%s\n", p.Profile, p.Passed, p.Failed, p.Skipped, p.Verdict)
	}
	tw.Flush() // into a strings.Builder, which never fails
	for _, p := range r.Profiles {
		for _, res := range p.Results {
			if res.Outcome != Passed {
				fmt.Fprintf(&b, "\n%s %s: %s\n%s\n", res.Outcome, res.ID, res.Sentence, indent(res.Reason))
			}
			for _, n := range res.Notes {
				fmt.Fprintf(&b, "\nnote %s\n%s\n", res.ID, indent(n))
			}
		}
	}
	fmt.Fprintf(&b, "\n%s: %s (%s)\n", r.Verdict, r.Reason, r.Duration.Round(time.Millisecond))
	_, err := io.WriteString(w, b.String())
	return err
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}
