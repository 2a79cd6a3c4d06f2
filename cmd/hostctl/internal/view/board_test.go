package view_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/loophost/loophost/cmd/hostctl/internal/view"
)

func board() view.Board {
	return view.Board{
		Title: "tickets of scope nightly", Done: 7, All: 16, Elapsed: 83*time.Second + 400*time.Millisecond,
		Counts: []view.Count{{Word: "draft"}, {Word: "active", N: 2}, {Word: "accepted", N: 7}},
		Items: []view.Item{
			{Mood: view.Busy, ID: "survey", State: "active", Text: "waits for survey@1 to finish"},
			{Mood: view.Asking, ID: "risks-of-all-the-parsers", State: "submitted", Text: "waits for somebody"},
			{Mood: view.Bad, ID: "evil", State: "blocked (failed)", Text: "all\x1b[2J attempts\nare spent \u202e"},
			{Mood: view.Calm, ID: "日本語", State: "ready", Text: strings.Repeat("日本", 60)},
			{Mood: view.Good, ID: "b", State: "accepted"},
			{Mood: view.Gone, ID: "c", State: "cancelled"},
		},
	}
}

func TestBoards(t *testing.T) {
	cases := []struct {
		name          string
		columns, rows int
		color         bool
	}{
		{"board.txt", 79, 23, false},
		{"board_colour.txt", 79, 23, true},
		{"board_small.txt", 40, 5, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			lines := board().Lines(c.columns, c.rows, c.color)
			if len(lines) > c.rows {
				t.Errorf("got %d lines; want at most %d", len(lines), c.rows)
			}
			for _, l := range lines {
				if w := lipgloss.Width(l); w > c.columns {
					t.Errorf("a line has %d columns, want at most %d: %q", w, c.columns, l)
				}
			}
			got := []byte(strings.Join(lines, "\n") + "\n")
			path := filepath.Join("testdata", c.name)
			if *update {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestABoardFitsAnyScreen(t *testing.T) {
	for columns := range 30 {
		for rows := range 12 {
			for _, l := range board().Lines(columns, rows, true) {
				if w := lipgloss.Width(l); w > max(columns, 1) {
					t.Errorf("%d columns, %d rows: a line has %d", columns, rows, w)
				}
			}
		}
	}
}

func TestAScreenIsDrawnInPlace(t *testing.T) {
	var out bytes.Buffer
	columns, rows := 0, 0
	s := view.NewScreen(view.BoardOptions{Out: &out, Size: func() (int, int) { return columns, rows }})
	b := board()
	s.Draw(b)
	if got := out.String(); strings.Contains(got, "A\r") || strings.Count(got, "\n") != 8 {
		t.Errorf("the first drawing is %q; want 8 lines and no move", got)
	}
	out.Reset()
	b.Items = b.Items[:1]
	s.Draw(b)
	if got := out.String(); !strings.HasPrefix(got, "\x1b[8A\r") || strings.Count(got, "\n") != 3 || !strings.HasSuffix(got, "\x1b[J") {
		t.Errorf("the second drawing is %q; want it over the 8 lines, and the rest cleared", got)
	}
	out.Reset()
	columns, rows = 50, 3 // the window was made smaller
	s.Draw(board())
	if got := out.String(); !strings.HasPrefix(got, "\x1b[2A\r") || strings.Count(got, "\n") > 3 {
		t.Errorf("the third drawing is %q; want no more than the screen has", got)
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if strings.ContainsAny(strings.NewReplacer("\x1b[2A\r", "", "\x1b[K", "", "\x1b[J", "").Replace(line), "\x1b\r") {
			t.Errorf("foreign text steers the terminal: %q", line)
		}
	}
	broken := view.NewScreen(view.BoardOptions{Out: failing{}})
	broken.Draw(b)
	if broken.Err() == nil {
		t.Error("a write that failed is not told")
	}
}

// failing takes nothing.
type failing struct{}

var errFailing = errors.New("nobody reads")

func (failing) Write(p []byte) (int, error) { return 0, fmt.Errorf("%d bytes: %w", len(p), errFailing) }
