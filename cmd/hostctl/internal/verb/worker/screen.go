package worker

import (
	"sync"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/ticket"
)

// line is one assignment's end, as JSON.
type line struct {
	Type       string             `json:"type"` // "assignment"
	ScopeID    string             `json:"scope_id"`
	Assignment string             `json:"assignment"`
	Status     ticket.ChildStatus `json:"status"` // how the child's run ended; "" where it did not run to an end
	SessionID  string             `json:"session_id"`
	Error      *string            `json:"error"` // why it did not complete, or what is not published; null: neither
}

// summary is the last line, as JSON.
type summary struct {
	Type    string                     `json:"type"` // "result"
	ScopeID string                     `json:"scope_id"`
	Done    map[ticket.ChildStatus]int `json:"done"` // children whose run ended, by how
}

// screen tells people, or a script, what a worker does. It is safe for many goroutines.
type screen struct {
	env   *verb.Env
	quiet bool

	mu    sync.Mutex
	scope string
	count map[ticket.ChildStatus]int
	err   error // of writing to stdout
}

func newScreen(env *verb.Env, want settings.Run) *screen {
	return &screen{env: env, quiet: want.Quiet, count: map[ticket.ChildStatus]int{}}
}

func (s *screen) say(format string, args ...any) {
	if !s.quiet {
		s.env.Say(format, args...)
	}
}

func (s *screen) ready(b ticket.Binding, name string, slots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scope = b.ScopeID
	s.say("worker %s: scope %s, at most %d at once", name, b.ScopeID, slots)
}

// done tells how an assignment went.
func (s *screen) done(assignment string, o child.Outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := line{Type: "assignment", ScopeID: s.scope, Assignment: assignment, Status: o.Status, SessionID: o.Result.SessionID}
	why := err
	if why == nil {
		why = o.Err
	}
	if why != nil {
		text := why.Error()
		l.Error = &text
	}
	s.count[o.Status]++
	switch {
	case err != nil:
		s.env.Say("%s: not published to its end: %v", assignment, err)
	case o.Err != nil:
		s.say("%s: %s: %v", assignment, o.Status, o.Err)
	default:
		s.say("%s: %s", assignment, o.Status)
	}
	if s.env.Format == cli.JSONL {
		s.print(l)
	}
}

func (s *screen) print(v any) {
	if err := s.env.Print(v); err != nil && s.err == nil {
		s.err = err
		s.env.Say("hostctl: stdout: %v", err)
	}
}

// end prints the summary. The error is that of stdout, which a script must not miss.
func (s *screen) end(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.env.Format.Object() {
		s.print(summary{Type: "result", ScopeID: s.scope, Done: s.count})
	}
	return s.err
}
