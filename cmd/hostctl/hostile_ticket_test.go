//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
)

// newTicket are the arguments that make a ticket.
func newTicket(more ...string) []string {
	return append([]string{"ticket", "create", "--title=T", "--objective=o", "--acceptance=x", "--output=json"}, more...)
}

// steers reports whether text holds what could steer a terminal.
func steers(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x2028
	})
}

func TestAnyIDIsATicketScope(t *testing.T) {
	c := newCommander(t)
	var want []string
	for _, id := range hostileIDs() {
		if len(id) > 190 { // a scope's and a ticket's name are bounded together
			if got := c.want(t, exit.Error, newTicket("--id=a", "--scope="+id)...); got.kind(t) != "context_budget_exceeded" {
				t.Errorf("%.40q: got %.300q", id, got.out)
			}
			continue
		}
		want = append(want, id)
		c.want(t, exit.OK, newTicket("--id=a", "--scope="+id)...)
		if got := c.want(t, exit.Error, newTicket("--id=a", "--scope="+id)...); got.kind(t) != "invalid_transition" {
			t.Errorf("%q again: got %.200q, want that it exists", id, got.out)
		}
		for _, verb := range []string{"list", "show", "watch"} {
			args := []string{"ticket", verb, "--scope=" + id}
			if verb != "list" {
				args = append(args, "a")
			}
			if got := c.call(t, args...); steers(got.out) || steers(got.err) {
				t.Errorf("%q: %s steers the terminal: %q %q", id, verb, got.out, got.err)
			}
		}
	}
	var rows []struct {
		ScopeID string `json:"scope_id"`
	}
	if err := json.Unmarshal([]byte(c.want(t, exit.OK, "ticket", "scopes", "--output=json").out), &rows); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.ScopeID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if out := c.want(t, exit.OK, "ticket", "scopes").out; steers(out) {
		t.Errorf("the list steers the terminal: %q", out)
	}
	for _, id := range []string{strings.Repeat("x", 257), "\xff", "a\xc3"} {
		for _, args := range [][]string{newTicket("--scope=" + id), {"ticket", "list", "--output=json", "--scope=" + id}, {"ticket", "show", "--output=json", "--scope=" + id, "a"}, {"ticket", "accept", "--output=json", "--scope=" + id, "a"}} {
			if got := c.want(t, exit.Usage, args...); got.kind(t) != "invalid_id" {
				t.Errorf("%.60q: got %.300q, want invalid_id", args, got.out)
			}
		}
	}
}

func TestATicketIDIsPlainOrRefused(t *testing.T) {
	c := newCommander(t)
	c.want(t, exit.OK, newTicket("--id=plain")...)
	before := c.want(t, exit.OK, "ticket", "list", "--output=json").out
	for _, id := range append(hostileIDs(), strings.Repeat("x", 129), "\xff", "a@1", "-", "_a") {
		if plainID(id) {
			continue
		}
		got := c.call(t, newTicket("--id="+id)...)
		if got.code != exit.Error && got.code != exit.Usage || steers(got.err) {
			t.Errorf("create %q: code %d, %q", id, got.code, got.err)
		}
		for _, verb := range []string{"show", "accept", "ready", "start", "pause", "resume", "unblock", "cancel", "reopen", "watch"} {
			got := c.call(t, "ticket", verb, "--output=json", "--", id)
			want, kind := exit.Error, "scope_denied"
			if !utf8.ValidString(id) {
				want, kind = exit.Usage, "usage"
			}
			if got.code != want || got.kind(t) != kind || steers(got.err) {
				t.Errorf("%s %q: code %d, %.200q, %.200q; want %s", verb, id, got.code, got.out, got.err, kind)
			}
		}
	}
	if after := c.want(t, exit.OK, "ticket", "list", "--output=json").out; after != before {
		t.Errorf("the scope changed:\n%s\nwas\n%s", after, before)
	}
}

// plainID is what the rules of package ticket take, as far as hostileIDs go.
func plainID(id string) bool {
	return len(id) <= 128 && len(id) > 0 && strings.Trim(id[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" &&
		strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

func TestTicketVerbsThatAreCalledWronglyAreUsageErrors(t *testing.T) {
	c := newCommander(t)
	c.want(t, exit.OK, newTicket("--id=a")...)
	cases := []struct{ args, want string }{
		{"ready", "ticket ready: ID is missing"},
		{"show", "ticket show: ID is missing"},
		{"confirm-stopped a@1", "--reason is missing"},
		{"reject a --reason=", "--reason is missing"},
		{"list --state nope", "want draft, ready, active, submitted, accepted, blocked, cancelled"},
		{"list extra", "unexpected argument"},
		{"show a --result --contract", "exclude each other"},
		{"show a --result --output json", "print nothing but their bytes"},
		{"show a --submission x", "--submission needs --result"},
		{"ready a --as root", "want user or supervisor"},
		{"ready a --operation " + strings.Repeat("x", 121), "--operation has 121 bytes"},
		{"ready a b --if-revision 3", "about one ticket, not 2"},
		{"accept a b --submission x", "about one ticket, not 2"},
		{"watch --timeout -1s", "can't be negative"},
		{"revise a", "hostctl ticket show --contract a"},
		{"create --title T --objective o", "acceptance needs at least one criterion"},
		{"create --objective o --acceptance x", "title is blank"},
		{"create --title T --acceptance x", "objective is blank"},
		{"create --title T --objective o --acceptance x --id=", "--id is empty"},
		{"create --title T --objective o --acceptance x --max-attempts 101", "at most 100"},
		{"create --title T --objective @missing.md --acceptance x", "missing.md"},
		{"create --title T --objective \xff --acceptance x", "not valid UTF-8"},
		{"create --file x.yaml --title T", "--title describes one ticket"},
		{"create --file missing.yaml", "missing.yaml"},
		{"frobnicate", "unknown command"},
	}
	before := c.want(t, exit.OK, "ticket", "list", "--output=json").out
	for _, tc := range cases {
		if got := c.want(t, exit.Usage, append([]string{"ticket"}, strings.Fields(tc.args)...)...); !strings.Contains(got.err, tc.want) || steers(got.err) {
			t.Errorf("%s: got %q, want %q in it", tc.args, got.err, tc.want)
		}
	}
	if after := c.want(t, exit.OK, "ticket", "list", "--output=json").out; after != before {
		t.Errorf("the scope changed:\n%s\nwas\n%s", after, before)
	}
}

func TestAThousandTicketsAreOneCommand(t *testing.T) {
	c := newCommander(t)
	batch := func(n int, last string) string {
		var b strings.Builder
		b.WriteString("defaults: {acceptance: [done]}\ntickets:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - id: t%d\n    title: Ticket %d\n    objective: Do %d.\n", i, i, i)
			if i > 0 {
				fmt.Fprintf(&b, "    depends-on: [t%d]\n", i-1)
			}
		}
		return b.String() + last
	}
	// All or none: the last ticket is wrong, and the message says where.
	c.in = batch(999, "  - id: t999\n    title: Last\n    objective: x\n    depends-on: [nope]\n")
	got := c.want(t, exit.Error, "ticket", "create", "--file=-", "--output=json")
	if got.kind(t) != "invalid_transition" || !strings.Contains(got.err, "ticket file stdin:3998: ") {
		t.Errorf("got %.300q, want the place of the last ticket", got.err)
	}
	c.want(t, exit.Error, "ticket", "list")
	c.in = batch(999, "  - id: t999\n    title: Last\n    objective: x\n    depends-on: [t999]\n")
	if got := c.want(t, exit.Error, "ticket", "create", "--file=-", "--output=json"); !strings.Contains(got.err, "depend on itself") {
		t.Errorf("got %.300q, want that it depends on itself", got.err)
	}
	c.in = batch(1000, "")
	first := c.want(t, exit.OK, "ticket", "create", "--file=-", "--ready", "--operation=all")
	if n := strings.Count(first.out, "\n"); n != 1000 {
		t.Errorf("made %d tickets, want 1000", n)
	}
	c.in = batch(1000, "")
	if again := c.want(t, exit.OK, "ticket", "create", "--file=-", "--ready", "--operation=all"); again.out != first.out {
		t.Errorf("again: got %.100q, want the same ids", again.out)
	}
	if n := strings.Count(c.want(t, exit.OK, "ticket", "list", "--state=ready", "--output=jsonl").out, "\n"); n != 1000 {
		t.Errorf("%d are ready, want 1000", n)
	}
	if got := c.want(t, exit.OK, "ticket", "show", "--output=json", "t999"); !strings.Contains(got.out, `"waits_for":"t998 (ready) to be accepted"`) {
		t.Errorf("got %.400q", got.out)
	}
}
