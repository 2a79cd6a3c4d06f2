//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	backend "github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/store"
)

// readers are the verbs that show a session, and what they showed of the whole one.
type readers map[string]answer

func readersOf(c *commander, t *testing.T, id string) readers {
	out := readers{}
	for name, args := range map[string][]string{
		"show": {"session", "show", id, "--output=json"}, "log": {"session", "log", id, "--output=jsonl"}, "events": {"session", "events", id, "--output=jsonl"},
		"export": {"session", "export", id}, "check": {"store", "check", "--output=json"}, "list": {"session", "list", "--output=json"},
	} {
		out[name] = c.call(t, args...)
	}
	return out
}

// compare says what is wrong with what the verbs show of a damaged record. They
// may all find it whole, or all find the damage; what is shown is never another state.
func (whole readers) compare(t *testing.T, c *commander, id string) (damaged bool, wrong string) {
	t.Helper()
	got := readersOf(c, t, id)
	for name, a := range got {
		w := whole[name]
		switch {
		case a.code == exit.OK && a.out != w.out && name != "check": // check counts bytes
			return false, name + " succeeds and shows another state"
		case a.code != exit.OK && a.code != exit.StoreError:
			return false, fmt.Sprintf("%s: exit code %d: %s", name, a.code, a.err)
		case a.code == exit.StoreError:
			damaged = true
		}
		switch name {
		case "log", "events":
			shown := a.out
			if a.code != exit.OK { // the last line is the error's object
				lines := strings.SplitAfter(strings.TrimSuffix(a.out, "\n"), "\n")
				shown = strings.Join(lines[:len(lines)-1], "")
			}
			if !strings.HasPrefix(w.out, shown) {
				return damaged, name + " shows what was never written"
			}
		case "export":
			if a.code != exit.OK && strings.Contains(a.out, `"sha256"`) {
				return damaged, "export fails and looks whole"
			}
		}
	}
	if damaged && got["check"].code != exit.StoreError {
		return true, "store check finds nothing"
	}
	return damaged, ""
}

// recordFiles are the files of the only session in the store.
func recordFiles(t *testing.T, c *commander) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(c.store(), "session"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 3 {
		t.Fatalf("got files %v, %v", files, err)
	}
	return files
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNoFlippedByteAndNoTruncationShowsAWrongState samples what the store's own
// tests do at every byte: here each verb and the exit code are looked at.
func TestNoFlippedByteAndNoTruncationShowsAWrongState(t *testing.T) {
	c := newCommander(t)
	c.session(t, "s")
	whole := readersOf(c, t, "s")
	for name, a := range whole {
		if a.code != exit.OK {
			t.Fatalf("%s of the whole record: %d: %s", name, a.code, a.err)
		}
	}
	const samples = 60
	for _, path := range recordFiles(t, c) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, journal := filepath.Base(path), strings.HasPrefix(filepath.Base(path), "journal")
		stride := max(1, len(content)/samples)
		if stride%2 == 0 {
			stride++ // not always the same place of a header
		}
		for i := 0; i < len(content); i += stride {
			flipped := bytes.Clone(content)
			flipped[i] ^= []byte{1, 0x80, 0xff, 0x20}[i/stride%4]
			write(t, path, flipped)
			if damaged, wrong := whole.compare(t, c, "s"); wrong != "" || journal && !damaged {
				t.Errorf("%s, byte %d of %d: damaged %v; %s", name, i, len(content), damaged, wrong)
			}
			write(t, path, content[:i])
			if damaged, wrong := whole.compare(t, c, "s"); wrong != "" || journal && !damaged {
				t.Errorf("%s, cut to %d of %d: damaged %v; %s", name, i, len(content), damaged, wrong)
			}
		}
		if journal {
			flipped := bytes.Clone(content)
			flipped[len(content)/2] ^= 1
			write(t, path, flipped)
			for _, args := range [][]string{
				{"run", "--provider=demo", "--config=", "--session=s", "--output=json", "--quiet", "go"},
				{"run", "--provider=demo", "--config=", "--resume=s", "--new-loop", "--output=json", "--quiet", "go"},
				{"run", "--provider=demo", "--config=", "--session=s", "--once=k", "--output=json", "--quiet", "go"},
				{"session", "fork", "s", "--output=json"},
				{"session", "cancel", "s", "--output=json"},
				{"session", "stop", "s", "--output=json"},
				{"session", "take-over", "s", "--output=json"},
				{"session", "delete", "s", "--output=json"},
			} {
				if got := c.want(t, exit.StoreError, args...); got.kind(t) != "corrupt" {
					t.Errorf("%q on a damaged record: got %.300q, want corrupt", args, got.out)
				}
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, flipped) {
				t.Errorf("the damaged journal was changed (%v)", err)
			}
		}
		write(t, path, content)
	}
	if damaged, wrong := whole.compare(t, c, "s"); damaged || wrong != "" {
		t.Errorf("restored: damaged %v; %s", damaged, wrong)
	}
}

// What the store keeps faithfully may still be no state of a session.
func TestAHeadOrEntryThatIsNoneIsAStoreError(t *testing.T) {
	good := `{"schema":1,"created":"2026-01-02T03:04:05Z","loop":null,"runtime":{"status":"idle","execution_id":""},"run":null}`
	loop := func(fields string) string {
		return `{"schema":1,"created":"2026-01-02T03:04:05Z","loop":{"schema_version":1,"generation":"597ecba9-6633-4cbe-9325-c5dc7d01d20f","revision":4,"owner_execution_id":"7e9b2ea2-a17c-4c04-b938-51923f98f247","objective":"go",` +
			`"max_iterations":1,"max_total_rounds":20,` + fields + `},"runtime":{"status":"completed","execution_id":"7e9b2ea2-a17c-4c04-b938-51923f98f247"},"run":null}`
	}
	message := `{"type":"message","time":"2026-01-02T03:04:05Z","execution_id":"x","generation":"","message":{"role":"user","text":"hi"}}`
	cases := []struct {
		name, head, entry string
		badHead           bool // else the entry is what is wrong
	}{
		{"no JSON", "not JSON", "", true},
		{"null", "null", "", true},
		{"a list", "[]", "", true},
		{"nothing", "", "", true},
		{"an unknown schema", strings.Replace(good, `"schema":1`, `"schema":2`, 1), "", true},
		{"an unknown field", strings.Replace(good, `"run":null`, `"run":null,"x":1`, 1), "", true},
		{"a field twice", strings.Replace(good, `"run":null`, `"run":null,"run":null`, 1), "", true},
		{"bytes that are no UTF-8", strings.Replace(good, `"idle"`, "\"\xff\"", 1), "", true},
		{"more rounds than the bound", loop(`"iterations_started":1,"iterations_completed":1,"rounds_started":21,"status":"completed","reason_code":"","reason":""`), "", true},
		{"more complete than started", loop(`"iterations_started":0,"iterations_completed":1,"rounds_started":1,"status":"completed","reason_code":"","reason":""`), "", true},
		{"a status that there isn't", loop(`"iterations_started":1,"iterations_completed":1,"rounds_started":1,"status":"done","reason_code":"","reason":""`), "", true},
		{"a negative counter", loop(`"iterations_started":-1,"iterations_completed":1,"rounds_started":1,"status":"completed","reason_code":"","reason":""`), "", true},
		{"a loop that is too large", loop(`"iterations_started":1,"iterations_completed":1,"rounds_started":1,"status":"completed","reason_code":"","reason":"` + strings.Repeat("x", 140_000) + `"`), "", true},
		{"lists in lists", strings.Repeat("[", 100_000), "", true},
		{"an entry that is no JSON", good, "\x00\xff", false},
		{"an entry of an unknown type", good, `{"type":"surprise"}`, false},
		{"a message without one", good, `{"type":"message"}`, false},
	}
	c := newCommander(t)
	s, err := backend.Open(backend.Config{Dir: c.store()})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range append(cases, struct {
		name, head, entry string
		badHead           bool
	}{"good", good, message, false}) {
		entries := [][]byte{[]byte(message)}
		if k.entry != "" {
			entries = append(entries, []byte(k.entry))
		}
		if _, err := s.Create(t.Context(), store.SessionKey(k.name), store.Commit{ID: uuid.NewString(), Head: []byte(k.head), Entries: entries}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"show", "log"} {
		c.want(t, exit.OK, "session", verb, "good")
	}
	c.want(t, exit.OK, "store", "check")
	c.want(t, exit.StoreError, "session", "list")
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			verbs := [][]string{{"session", "fork", k.name, "--output=json"}, {"session", "export", k.name}}
			if k.badHead {
				verbs = append(verbs, []string{"session", "show", k.name, "--output=json"}, []string{"session", "show", k.name}, []string{"session", "cancel", k.name})
			} else {
				verbs = append(verbs, []string{"session", "log", k.name, "--output=jsonl"}, []string{"session", "events", k.name})
			}
			for _, args := range verbs {
				got := c.want(t, exit.StoreError, args...)
				if strings.HasSuffix(args[len(args)-1], "=json") && got.kind(t) != "unusable_state" {
					t.Errorf("%q: got %.300q, want unusable_state", args, got.out)
				}
			}
		})
	}
	for _, id := range []string{"null", "more rounds than the bound", "an entry of an unknown type"} {
		if got := c.want(t, exit.StoreError, "run", "--provider=demo", "--config=", "--session="+id, "--output=json", "--quiet", "go"); got.kind(t) != "unusable_state" {
			t.Errorf("%s: got %.300q, want unusable_state", id, got.out)
		}
	}
}
