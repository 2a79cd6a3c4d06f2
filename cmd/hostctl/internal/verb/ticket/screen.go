package ticket

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/report"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/cmd/hostctl/internal/view"
	"github.com/loophost/loophost/host/ticket"
)

// screen is what a watch shows.
type screen interface {
	frame(f frame, elapsed time.Duration) error
	end(f frame, v watched) error
	ticks() bool // it shows time, so it is drawn again where nothing happens
}

func (w *watching) newScreen() screen {
	switch {
	case w.output.Value.Object():
		return &objects{env: w.env, stream: w.output.Value == cli.JSONL}
	case w.env.OutTTY && w.env.Getenv("TERM") != "dumb":
		color := w.env.Color() && w.env.ErrTTY
		return &live{env: w.env, screen: view.NewScreen(view.BoardOptions{Out: w.env.Out, Color: color, Size: w.env.Size})}
	}
	return &lines{env: w.env}
}

// objects prints changes as lines of JSON, if it is a stream, and the ending.
type objects struct {
	env    *verb.Env
	stream bool
}

// change is one change of a ticket.
type change struct {
	Type string    `json:"type"` // "ticket"
	Time time.Time `json:"time"` // when the watch saw it
	Seq  uint64    `json:"seq"`  // of the scope
	row
}

func (s *objects) frame(f frame, _ time.Duration) error {
	if !s.stream {
		return nil
	}
	now := s.env.Now().UTC()
	for _, r := range f.changed {
		if err := s.env.Print(change{typeTicket, now, f.seq, r}); err != nil {
			return err
		}
	}
	return nil
}

func (s *objects) end(f frame, v watched) error {
	if s.stream {
		v.Type = report.TypeResult
	} else {
		v.Tickets = f.rows
	}
	return s.env.Print(v)
}

func (*objects) ticks() bool { return false }

// lines prints a line for each change.
type lines struct{ env *verb.Env }

func (s *lines) frame(f frame, _ time.Duration) error {
	now := s.env.Now().Format(time.TimeOnly)
	for i := range f.changed {
		r := &f.changed[i]
		line := now + " " + cell(r.TicketID, 128) + " " + r.stateWord()
		if r.WaitsFor != nil {
			line += ": waits for " + cell(*r.WaitsFor, 300)
		}
		if _, err := fmt.Fprintln(s.env.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func (s *lines) end(_ frame, v watched) error {
	_, err := fmt.Fprintln(s.env.Out, summary(v))
	return err
}

func (*lines) ticks() bool { return false }

// summary is an ending for people.
func summary(v watched) string {
	var counts []string
	all := 0
	for _, s := range states {
		if n := v.Counts[string(s)]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
			all += n
		}
	}
	word := "tickets"
	if all == 1 {
		word = "ticket"
	}
	return fmt.Sprintf("%s: %d %s, %s", strings.ReplaceAll(string(v.Outcome), "_", " "), all, word, strings.Join(counts, ", "))
}

// live redraws one screen.
type live struct {
	env    *verb.Env
	screen *view.Screen
	moved  map[string]uint64 // when a ticket moved last, by seq
}

func (s *live) frame(f frame, elapsed time.Duration) error {
	if s.moved == nil {
		s.moved = map[string]uint64{}
	}
	for i := range f.changed {
		s.moved[f.changed[i].TicketID] = f.seq
	}
	s.screen.Draw(s.board(f, elapsed))
	return s.screen.Err()
}

func (s *live) end(_ frame, v watched) error {
	_, err := fmt.Fprintln(s.env.Out, summary(v))
	return err
}

func (*live) ticks() bool { return true }

// board is a frame with what moves, and what somebody has to do, in front.
func (s *live) board(f frame, elapsed time.Duration) view.Board {
	b := view.Board{Title: "tickets of scope " + f.scopeID, All: len(f.rows), Elapsed: elapsed}
	counts := map[ticket.TicketState]int{}
	rows := make([]*row, len(f.rows))
	for i := range f.rows {
		rows[i] = &f.rows[i]
		counts[f.rows[i].State]++
	}
	b.Done = counts[ticket.Accepted]
	for _, st := range states {
		b.Counts = append(b.Counts, view.Count{Word: string(st), N: counts[st]})
	}
	slices.SortStableFunc(rows, func(x, y *row) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(s.moved[y.TicketID], s.moved[x.TicketID]))
	})
	for _, r := range rows {
		text := r.Title
		if r.WaitsFor != nil {
			text = "waits for " + *r.WaitsFor
		}
		b.Items = append(b.Items, view.Item{Mood: moodOf(r), ID: r.TicketID, State: r.stateWord(), Text: text})
	}
	return b
}

// rank orders tickets on a screen: what runs, what somebody has to do, what waits, what is over.
func rank(r *row) int {
	switch {
	case r.State == ticket.Active:
		return 0
	case r.Outcome == exit.OutcomeFailed, r.Outcome == exit.OutcomeNeedsPerson, r.State == ticket.Submitted:
		return 1
	case r.State == ticket.Accepted, r.Outcome == exit.OutcomeCancelled:
		return 3
	}
	return 2
}

func moodOf(r *row) view.Mood {
	switch r.Outcome {
	case exit.OutcomeAccepted:
		return view.Good
	case exit.OutcomeFailed:
		return view.Bad
	case exit.OutcomeCancelled:
		return view.Gone
	case exit.OutcomeNeedsPerson:
		return view.Asking
	case exit.OutcomeSubmitted:
		if r.State == ticket.Submitted {
			return view.Asking
		}
	}
	if r.State == ticket.Active {
		return view.Busy
	}
	return view.Calm
}
