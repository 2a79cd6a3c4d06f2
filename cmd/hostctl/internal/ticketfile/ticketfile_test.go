package ticketfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/ticketfile"
	"github.com/loophost/loophost/host/ticket"
)

func TestTheExampleIsABatch(t *testing.T) {
	b, err := ticketfile.Read("../../../../docs/tickets.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Tickets) != 3 || !strings.HasSuffix(b.Place("risks"), "docs/tickets.yaml:21") {
		t.Errorf("got %d tickets, the second at %s", len(b.Tickets), b.Place("risks"))
	}
	survey, report := b.Tickets[0], b.Tickets[2]
	if got := survey.Contract; len(got.Acceptance) != 2 || got.Retry.MaxAttempts != 3 || got.UserAcceptanceRequired || !strings.HasSuffix(got.Objective, "bad input.\n") {
		t.Errorf("survey is %+v", got)
	}
	if got := report.Contract; len(got.Acceptance) != 1 || got.Retry.MaxAttempts != 1 || !got.UserAcceptanceRequired || len(got.AllowedTools) != 2 {
		t.Errorf("report is %+v", got)
	}
	if want := []string{"survey", "risks"}; !reflect.DeepEqual(report.DependsOn, want) {
		t.Errorf("report depends on %v, want %v", report.DependsOn, want)
	}
}

// entry is a file with one ticket of more keys.
func entry(more string) string {
	return "tickets:\n  - id: a\n    title: A\n    objective: do\n" + more
}

func TestABadFileIsOneUsageErrorWithItsPlace(t *testing.T) {
	dir := t.TempDir()
	good := entry("    acceptance: [done]\n")
	cases := []struct{ name, file, want string }{
		{"empty", "", "no list of tickets"},
		{"only a comment", "# nothing\n", "no list of tickets"},
		{"a text", "tickets", "no list of tickets"},
		{"a list at the top", "- id: a\n", "no list of tickets"},
		{"tickets are none", "tickets: []\n", "it has 0 tickets"},
		{"tickets are a mapping", "tickets:\n  id: a\n", ":2: tickets must be a list"},
		{"a ticket is a text", "tickets:\n  - a\n", ":2: here must be a mapping"},
		{"a ticket is a list", "tickets:\n  - [a]\n", ":2: here must be a mapping"},
		{"an unknown key at the top", good + "ticket: []\n", `:6: unknown key "ticket"`},
		{"an unknown key of a ticket", entry("    objectives: x\n"), `:5: unknown key "objectives"; the keys are id,`},
		{"an unknown key of the defaults", "defaults:\n  id: a\n" + good, `:2: unknown key "id"`},
		{"a title for all", "defaults: {title: T}\n" + good, "no defaults"},
		{"the same key twice", entry("    title: B\n"), ":5: "},
		{"no id", "tickets:\n  - title: A\n    objective: do\n    acceptance: [x]\n", ":2: the ticket has no id"},
		{"no acceptance", entry(""), ":2: acceptance needs at least one"},
		{"a blank criterion", entry("    acceptance: ['']\n"), ":2: an acceptance criterion is blank"},
		{"acceptance is a text", entry("    acceptance: done\n"), ":5: "},
		{"a fraction of an attempt", entry("    acceptance: [x]\n    max-attempts: 1.5\n"), ":6: max-attempts is 1.5"},
		{"fewer than no attempts", entry("    acceptance: [x]\n    max-attempts: -1\n"), ":6: "},
		{"too many attempts", entry("    acceptance: [x]\n    max-attempts: 101\n"), ":2: retry.max_attempts is 101"},
		{"user-acceptance is a text", entry("    acceptance: [x]\n    user-acceptance: perhaps\n"), ":6: "},
		{"an objective too long", entry("    acceptance: ['" + strings.Repeat("x", 70_000) + "']\n"), ":2: its canonical JSON has"},
		{"twice the same id", good + good[len("tickets:\n"):], `:6: the ticket "a" is there already, at `},
		{"a second document", good + "---\n" + good, "a second document"},
		{"an alias", "tickets: &a [*a]\n", ":1: anchors"},
		{"deep nesting", "tickets: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "nested more than"},
		{"another file's content by a way out", entry("    acceptance: [x]\n")[:0] + "tickets:\n  - id: a\n    title: A\n    objective: '@../secret'\n    acceptance: [x]\n", ":2: objective: "},
		{"a file that is not there", "tickets:\n  - id: a\n    title: A\n    objective: '@nope.md'\n    acceptance: [x]\n", "nope.md"},
		{"not UTF-8", "tickets: \xff", "not valid UTF-8"},
		{"broken syntax", "tickets:\n  - id: [a\n", ":"},
		{"too large", "# " + strings.Repeat("x", ticketfile.MaxBytes), "more than"},
		{"too many", "tickets:\n" + strings.Repeat("  - {}\n", 1001), "it has 1001 tickets"},
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, "tickets.yaml")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ticketfile.Read(path, nil)
			var usage *exit.UsageError
			if !errors.As(err, &usage) || !strings.HasPrefix(usage.Text, "ticket file "+path) || !strings.Contains(usage.Text, c.want) {
				t.Errorf("got %v, want a usage error that names the file and has %q", err, c.want)
			}
		})
	}
}

func TestAnObjectiveMayBeAFileBesideIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"t.yaml":    "tickets:\n  - {id: a, title: A, objective: '@sub/o.md', acceptance: [x]}\n  - {id: b, title: B, objective: '@@home', acceptance: [x]}\n",
		"sub/o.md":  "line one\nline two\n",
		"t2.yaml":   "objective: '@sub/o.md'\ntitle: T\nacceptance: [x]\n",
		"deps.yaml": "depends-on: [b, c]\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := ticketfile.Read(filepath.Join(dir, "t.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Tickets[0].Contract.Objective; got != "line one\nline two" {
		t.Errorf("the file's objective is %q", got)
	}
	if got := b.Tickets[1].Contract.Objective; got != "@home" {
		t.Errorf("the objective with two @ is %q", got)
	}
	r, err := ticketfile.ReadRevision(filepath.Join(dir, "t2.yaml"), nil, "a")
	if err != nil || r.Contract.Objective != "line one\nline two" || r.DependsOn != nil {
		t.Errorf("got %+v, %v; want a contract and no dependencies", r, err)
	}
	r, err = ticketfile.ReadRevision(filepath.Join(dir, "deps.yaml"), nil, "a")
	if err != nil || r.Contract != nil || !reflect.DeepEqual(*r.DependsOn, []string{"b", "c"}) {
		t.Errorf("got %+v, %v; want dependencies and no contract", r, err)
	}
}

func TestABadRevisionIsRefused(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "it changes nothing"},
		{"only an id", "id: a\n", "it changes nothing"},
		{"another's id", "id: b\ndepends-on: []\n", `is about the ticket "b", not "a"`},
		{"a parent", "parent: p\ndepends-on: []\n", "can't be changed"},
		{"half a contract", "title: T\n", "stdin:1: objective is blank"},
		{"a batch", "tickets: []\n", `stdin:1: unknown key "tickets"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ticketfile.ReadRevision("-", strings.NewReader(c.file), "a")
			var usage *exit.UsageError
			if !errors.As(err, &usage) || !strings.Contains(usage.Text, c.want) {
				t.Errorf("got %v, want a usage error with %q", err, c.want)
			}
		})
	}
}

// texts are hard to write as YAML so that they are read as they were.
var texts = []string{
	"plain", "two\nlines", "ends with a line\n", "ends with two\n\n", "\n  begins with space", "  indented", "trailing ", "tab\there", "#no comment", "- no list",
	"key: value", "{a: b}", "[x]", "null", "~", "true", "1.5", "0x10", "1e3", "'", `"`, `\`, `a\nb`, "@file", "@@two", "&a", "*a", "!!str x", "%x", "|", ">", "日本語",
	"👨‍👩‍👧", "\u2028", "\u0085", "\ufeff", "\x1b[2J", "\x00", "a\rb", "a\r\nb", "--- x", "---", "...", "=", "<<", "a #b", "a: b: c", "2026-12-01", "\u202e",
	"no\n  hanging\n indent", "last line without end\n x", strings.Repeat("long ", 500), "<&>",
}

func TestAWrittenTicketReadsAsItWas(t *testing.T) {
	for i, text := range texts {
		want := ticket.Ticket{ID: fmt.Sprint("t", i), DependsOn: []string{"a", "b"}, Contract: &ticket.Contract{
			Title: "T " + text, Objective: text, Constraints: []string{text, "x"}, Acceptance: []string{"x", "y" + text}, AllowedTools: []string{},
			Retry: ticket.Retry{MaxAttempts: uint64(i)}, UserAcceptanceRequired: i%2 == 0,
		}}
		if strings.TrimSpace(text) == "" {
			want.Contract.Objective, want.Contract.Constraints = "o"+text, []string{}
		}
		data, err := ticketfile.Write(&want)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got, err := ticketfile.ReadRevision("-", strings.NewReader(string(data)), want.ID)
		if err != nil || !reflect.DeepEqual(got.Contract, want.Contract) || !reflect.DeepEqual(*got.DependsOn, want.DependsOn) {
			t.Errorf("%q: written as\n%s\ngot %+v, %v\nwant %+v", text, data, got.Contract, err, want.Contract)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte("tickets:\n  - {id: a, title: A, objective: o, acceptance: [x]}\n  - id: " + text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ticketfile.Read("-", strings.NewReader(string(data)))
		var usage *exit.UsageError
		if err != nil {
			if !errors.As(err, &usage) {
				t.Errorf("got %v, want a usage error", err)
			}
			return
		}
		for i := range b.Tickets {
			if err := b.Tickets[i].Contract.Validate(); err != nil || b.Place(b.Tickets[i].ID) == "" {
				t.Errorf("ticket %q at %q: %v", b.Tickets[i].ID, b.Place(b.Tickets[i].ID), err)
			}
		}
	})
}
