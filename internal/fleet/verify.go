package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
)

// figures are what happened.
type figures struct {
	Runs, Kills, Stops, TakeOvers    int // processes started, killed, stopped; sessions taken over
	Fenced, Busy, Refused            int // runs that ended fenced, busy, refused as recovery_unsupported
	Unknown                          int // runs stopped in a write, that ended without knowing what came of it
	Sessions, Loops, Complete        int // what is stored
	EventsPublished, EventsStored    int // durable events that processes published, and all that are stored
	Answers, FoundDamaged, NotAsTold int
	StoredTwice, CompleteTwice, Lost int
}

func (f *fleet) count(do func(*figures)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(&f.figures)
}

// session is what its processes said of it. One slot drives it.
type session struct {
	id       string
	durable  map[uint64][]byte // published events by their number
	reported bool              // a run ended with exit code 0
}

func (f *fleet) add(id string) *session {
	s := &session{id: id, durable: map[uint64][]byte{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[id] = s
	return s
}

// event is what this program looks at.
type event struct {
	Seq         *uint64 `json:"seq"`
	Type        string  `json:"type"`
	ExecutionID string  `json:"execution_id"`
	Generation  string  `json:"generation"`
	Message     *struct {
		Role string `json:"role"`
		Text string `json:"text"`
	} `json:"message"`
}

// heard keeps a line that a process published. Two processes that say different things
// under one number are an error at once.
func (s *session) heard(line []byte) error {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("%s: a line that is no event: %w: %s", s.id, err, line)
	}
	if e.Seq == nil {
		return nil
	}
	if before, known := s.durable[*e.Seq]; known && !bytes.Equal(before, line) {
		return fmt.Errorf("%s: event %d was published as %sand as %s", s.id, *e.Seq, before, line)
	}
	s.durable[*e.Seq] = line
	return nil
}

// verify reads every session back, prints the figures, and names what is wrong.
func (f *fleet) verify(ctx context.Context) error {
	var wrong []error
	if out, err := f.command(ctx, "store", "check", "--store", f.store).Output(); err != nil {
		f.figures.FoundDamaged++
		wrong = append(wrong, fmt.Errorf("store check: %w: %s", err, out))
	}
	for _, s := range f.sessions {
		wrong = append(wrong, f.verifySession(ctx, s))
	}
	v := reflect.ValueOf(f.figures)
	for i := range v.NumField() {
		fmt.Printf("%-16s %d\n", v.Type().Field(i).Name, v.Field(i).Int())
	}
	err := errors.Join(wrong...)
	if err == nil && f.figures.Complete == 0 {
		err = errors.New("no session was completed: nothing was proved")
	}
	if err == nil {
		fmt.Println("every session is whole, and as its processes said")
	}
	return err
}

func (f *fleet) verifySession(ctx context.Context, s *session) error {
	out, err := f.command(ctx, "session", "events", s.id, "--store", f.store, "--output", "jsonl").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 1 && len(s.durable) == 0 && !s.reported {
			return nil // killed before it was made
		}
		f.figures.FoundDamaged++
		return fmt.Errorf("%s: session events: %w", s.id, err)
	}
	f.figures.Sessions++
	stored := map[uint64][]byte{}
	answers, complete := map[string][]string{}, 0
	generations := map[string]bool{}
	for line := range bytes.Lines(out) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: session events: %w: %s", s.id, err, line)
		}
		if e.Seq != nil {
			stored[*e.Seq] = line
		}
		generations[e.Generation] = true
		switch {
		case e.Type == "complete":
			complete++
		case e.Message != nil && e.Message.Role == "assistant":
			answers[e.ExecutionID] = append(answers[e.ExecutionID], e.Message.Text)
		}
	}
	f.figures.EventsPublished += len(s.durable)
	f.figures.EventsStored += len(stored)
	f.figures.Loops += len(generations)
	f.figures.Complete += complete
	var wrong []error
	for seq := range uint64(len(stored)) {
		if stored[seq+1] == nil {
			wrong = append(wrong, fmt.Errorf("%s: event %d is not stored", s.id, seq+1))
		}
	}
	for seq, line := range s.durable {
		if !bytes.Equal(stored[seq], line) {
			f.figures.NotAsTold++
			wrong = append(wrong, fmt.Errorf("%s: published %sstored    %s", s.id, line, stored[seq]))
		}
	}
	for execution, said := range answers {
		f.figures.Answers += len(said)
		var want []string
		for i := range said {
			want = append(want, answer(i+1))
		}
		if !slices.Equal(said, want) {
			f.figures.StoredTwice++
			wrong = append(wrong, fmt.Errorf("%s: execution %s has the answers %q, want %q", s.id, execution, said, want))
		}
	}
	if complete > 1 {
		f.figures.CompleteTwice++
		wrong = append(wrong, fmt.Errorf("%s: %d Complete events", s.id, complete))
	}
	if s.reported && complete == 0 {
		f.figures.Lost++
		wrong = append(wrong, fmt.Errorf("%s: a run ended well, and the session is not complete", s.id))
	}
	return errors.Join(wrong...)
}
