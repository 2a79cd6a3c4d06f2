package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// told is what a process published: one whole session.
var told = []string{
	`{"seq":1,"type":"started","execution_id":"e","generation":"g"}`,
	`{"seq":2,"type":"message","execution_id":"e","generation":"g","message":{"role":"assistant","text":"answer 1"}}`,
	`{"seq":3,"type":"message","execution_id":"e","generation":"g","message":{"role":"assistant","text":"answer 2"}}`,
}

const completeEvent = `{"seq":null,"type":"complete","execution_id":"e","generation":"g"}`

func TestWhatIsStoredIsComparedWithWhatWasSaid(t *testing.T) {
	for _, c := range []struct {
		name   string
		stored []string
		want   string // part of the error; "": none
	}{
		{"the same", append(told[:3:3], completeEvent), ""},
		{"an event is lost", append(told[:2:2], completeEvent), "published"},
		{"an event is another", []string{told[0], told[1], strings.Replace(told[2], "answer 2", "answer 3", 1), completeEvent}, "published"},
		{"an event in the middle is lost", []string{told[0], told[2], completeEvent}, "event 2 is not stored"},
		{"an answer is stored twice", append(told[:3:3], strings.Replace(told[2], `"seq":3`, `"seq":4`, 1), completeEvent), "has the answers"},
		{"two Complete events", append(told[:3:3], completeEvent, completeEvent), "2 Complete events"},
		{"not complete", told, "is not complete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			f := &fleet{dir: dir, hostctl: filepath.Join(dir, "hostctl"), sessions: map[string]*session{}}
			script := fmt.Sprintf("#!/bin/sh\ncat <<'END'\n%s\nEND\n", strings.Join(c.stored, "\n"))
			if err := os.WriteFile(f.hostctl, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			s := f.add("s")
			s.reported = true
			for _, line := range told {
				if err := s.heard([]byte(line + "\n")); err != nil {
					t.Fatal(err)
				}
			}
			err := f.verifySession(t.Context(), s)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestTwoProcessesThatSayDifferentThingsAreNoticed(t *testing.T) {
	s := (&fleet{sessions: map[string]*session{}}).add("s")
	if err := s.heard([]byte(told[0])); err != nil {
		t.Fatal(err)
	}
	if err := s.heard([]byte(strings.Replace(told[0], `"e"`, `"other"`, 1))); err == nil {
		t.Error("got no error for another event under the same number")
	}
}
