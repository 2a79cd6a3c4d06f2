//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
)

// hostileIDs are ids that break a store that makes file names of them (S-10).
func hostileIDs() []string {
	return []string{
		".", "..", "../x", "../../etc/passwd", "/", "//", "a/b", `a\b`, "a", "A", "é", "e\u0301", "\u212b", "Å",
		"\x00", "a\x00b", "\n", "a\nb", "a b", "\t", " ", "\r", "\x1b]0;title\a", "\x7f", "\u009b31m", "\u202etxt", "\u2028", "\ufffd", "\ufeff",
		"con", "NUL", "aux.txt", "COM1", "id.json", "journal-1.jsonl", "-rf", "--", "-", "~", "*", "?", "%2e%2e", "<&>", `"`, "'", "$(x)", "日本", "👨‍👩‍👧",
		strings.Repeat("x", 256), strings.Repeat("/", 256), strings.Repeat("é", 128), strings.Repeat("%", 255), strings.Repeat("x", 255) + ".",
	}
}

func TestAnyIDIsASession(t *testing.T) {
	c := newCommander(t)
	c.session(t, "first")
	export := c.want(t, exit.OK, "session", "export", "first").out
	c.want(t, exit.OK, "session", "delete", "first")
	want := hostileIDs()
	for _, id := range want {
		c.in = export
		if got := c.want(t, exit.OK, "session", "import", "-", "--session="+id, "--output=json"); !strings.Contains(got.out, `"did":"imported"`) {
			t.Errorf("%q: import says %.200q", id, got.out)
		}
		c.in = export
		if got := c.want(t, exit.Error, "session", "import", "-", "--session="+id, "--output=json"); got.kind(t) != "exists" {
			t.Errorf("%q again: got %.200q, want that it exists", id, got.out)
		}
	}
	var rows []struct {
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(c.want(t, exit.OK, "session", "list", "--output", "json").out), &rows); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.SessionID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	for line := range strings.Lines(c.want(t, exit.OK, "session", "list").out) {
		if i := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x2028 }); i >= 0 {
			t.Errorf("the list steers the terminal: %q", line)
		}
	}
	for _, id := range want {
		var shown struct {
			SessionID string `json:"session_id"`
		}
		if err := json.Unmarshal([]byte(c.want(t, exit.OK, "session", "show", "--output=json", "--", id).out), &shown); err != nil || shown.SessionID != id {
			t.Errorf("%q: shown as %q, %v", id, shown.SessionID, err)
		}
		c.want(t, exit.OK, "session", "log", "--", id)
		c.want(t, exit.OK, "session", "delete", "--", id)
		got := c.want(t, exit.Error, "session", "show", "--", id)
		if strings.ContainsAny(strings.ReplaceAll(got.err, "\n", ""), "\x00\x1b\x7f\r\a") || strings.Count(got.err, "\n") != 2 {
			t.Errorf("%q: the message is %q; want one line and the next step on another", id, got.err)
		}
	}
	if got := c.want(t, exit.OK, "session", "list").out; got != "" {
		t.Errorf("left are %q", got)
	}
}

func TestAnInvalidIDIsAUsageErrorWhateverTheVerb(t *testing.T) {
	c := newCommander(t)
	for _, id := range []string{strings.Repeat("x", 257), strings.Repeat("é", 129), "\xff", "a\xc3", "\xed\xa0\x80"} {
		for _, args := range [][]string{
			{"run", "--provider", "demo", "--config=", "--session=" + id, "--output=json", "go"},
			{"run", "--provider", "demo", "--config=", "--resume=" + id, "--output=json", "go"},
			{"session", "show", "--output=json", "--", id},
			{"session", "log", "--output=json", "--", id},
			{"session", "stop", "--output=json", "--", id},
			{"session", "cancel", "--output=json", "--", id},
			{"session", "take-over", "--output=json", "--", id},
			{"session", "delete", "--output=json", "--", id},
			{"session", "fork", "--output=json", "--", id},
			{"session", "import", "--output=json", "--session=" + id, "-"},
		} {
			if got := c.want(t, exit.Usage, args...); got.kind(t) != "invalid_id" {
				t.Errorf("%.60q: got %.300q, want invalid_id", args, got.out)
			}
		}
		for _, args := range [][]string{{"session", "events", "--", id}, {"session", "export", "--", id}} {
			c.want(t, exit.Usage, args...)
		}
	}
}
