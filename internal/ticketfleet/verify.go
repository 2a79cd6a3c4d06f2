package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// figures are what happened.
type figures struct {
	Seconds                                     int
	Workers, Kills, Stops, Drains               int // processes started, killed, frozen, drained
	Tickets, Accepted, Failed                   int
	Assignments, Completed, Unsuccessful        int // attempts, and how their children ended
	ByTask, ByProcess                           int // stop receipts of either kind
	Stale                                       int // late results that were kept
	ProgramsRun                                 int // process children that were let run
	NotEnded, WithoutStop, RanTwice, LeftBehind int // what must be 0
}

func (f *fleet) count(do func(*figures)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(&f.figures)
}

// shown is what this program looks at of a ticket.
type shown struct {
	Ticket struct {
		ID                 string `json:"id"`
		State              string `json:"state"`
		CurrentSubmission  string `json:"current_submission"`
		AcceptedSubmission string `json:"accepted_submission"`
		Attempts           int    `json:"attempts"`
	} `json:"ticket"`
	Assignments []struct {
		ID             string `json:"id"`
		State          string `json:"state"`
		ProcessStopped bool   `json:"process_stopped"`
		Runtime        *struct {
			RunID     string `json:"run_id"`
			SessionID string `json:"session_id"`
		} `json:"runtime"`
		Stop *struct {
			Completed bool `json:"completed"`
			Receipt   struct {
				RunID     string `json:"run_id"`
				SessionID string `json:"session_id"`
			} `json:"receipt"`
			TaskInstance *string `json:"task_instance"`
			PID          *uint64 `json:"pid"`
		} `json:"stop"`
	} `json:"assignments"`
	Submissions []struct {
		ID         string `json:"id"`
		Assignment string `json:"assignment"`
		Stale      bool   `json:"stale"`
	} `json:"submissions"`
}

// verify reads every ticket back, prints the figures, and names what is wrong.
func (f *fleet) verify(ctx context.Context) error {
	var wrong []error
	for i := range f.tickets {
		wrong = append(wrong, f.verifyTicket(ctx, i))
	}
	wrong = append(wrong, f.verifyPrograms())
	if out, err := f.command(ctx, "store", "check").CombinedOutput(); err != nil {
		wrong = append(wrong, fmt.Errorf("store check: %w\n%s", err, out))
	}
	v := reflect.ValueOf(f.figures)
	for i := range v.NumField() {
		fmt.Printf("%-14s %d\n", v.Type().Field(i).Name, v.Field(i).Int())
	}
	err := errors.Join(wrong...)
	if err == nil && f.figures.Accepted == 0 {
		err = errors.New("no ticket was accepted: nothing was proved")
	}
	if err == nil {
		fmt.Println("every ticket ended accepted or honestly failed, and every result has the proof of its stop")
	}
	return err
}

func (f *fleet) verifyTicket(ctx context.Context, n int) error {
	out, err := f.command(ctx, "ticket", "show", id(n), "--output", "json").Output()
	var s shown
	if jerr := json.Unmarshal(out, &s); jerr != nil {
		return fmt.Errorf("ticket show %s: %w: %w: %s", id(n), err, jerr, out)
	}
	f.figures.Tickets++
	var wrong []error
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s: %s", id(n), fmt.Sprintf(format, args...)))
	}
	current := map[string]bool{}
	for _, sub := range s.Submissions {
		if sub.Stale {
			f.figures.Stale++
		} else {
			current[sub.ID] = true
		}
	}
	t := s.Ticket
	byProgram := map[string]bool{}
	for _, a := range s.Assignments {
		byProgram[a.ID] = a.Stop != nil && a.Stop.PID != nil
	}
	switch {
	case t.State == "accepted" && (!doomed(n) || !byProgram[t.AcceptedSubmission]):
		f.figures.Accepted++
		if len(current) != 1 || !current[t.AcceptedSubmission] || t.CurrentSubmission != t.AcceptedSubmission {
			say("accepted is %q of the current submissions %v; want exactly one", t.AcceptedSubmission, current)
		}
	case t.State == "blocked" && doomed(n) && len(current) == 0:
		f.figures.Failed++
	default:
		f.figures.NotEnded++
		say("it ended %s with the submissions %v after %d attempts", t.State, current, t.Attempts)
	}
	for _, a := range s.Assignments {
		f.figures.Assignments++
		if a.Runtime == nil {
			continue // given up before a run was admitted
		}
		if a.Stop == nil || !a.ProcessStopped || a.Stop.Receipt.RunID != a.Runtime.RunID || a.Stop.Receipt.SessionID != a.Runtime.SessionID || (a.Stop.TaskInstance == nil) == (a.Stop.PID == nil) {
			f.figures.WithoutStop++
			say("%s is %s and has no valid stop receipt: %+v", a.ID, a.State, a.Stop)
			continue
		}
		if a.Stop.TaskInstance != nil {
			f.figures.ByTask++
		} else {
			f.figures.ByProcess++
		}
		if a.Stop.Completed {
			f.figures.Completed++
		} else {
			f.figures.Unsuccessful++
		}
	}
	return errors.Join(wrong...)
}

// verifyPrograms looks at what the programs of process children noted: each session
// has at most one, and none of their processes is alive.
func (f *fleet) verifyPrograms() error {
	var wrong []error
	notes, err := os.ReadDir(f.ran)
	if err != nil {
		return err
	}
	for _, note := range notes {
		data, err := os.ReadFile(filepath.Join(f.ran, note.Name()))
		if err != nil {
			return err
		}
		f.figures.ProgramsRun++
		if n := strings.Count(string(data), "\n"); n != 1 {
			f.figures.RanTwice++
			wrong = append(wrong, fmt.Errorf("session %s: its program ran %d times: %q", note.Name(), n, data))
		}
	}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, file := range environs {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it is gone, or another user's
		}
		if bytes.Contains(data, []byte("LOOPHOST_GROUP=")) && bytes.Contains(data, []byte("HOME="+f.dir+"\x00")) {
			f.figures.LeftBehind++
			wrong = append(wrong, fmt.Errorf("%s: a process of a child is alive", filepath.Dir(file)))
		}
	}
	return errors.Join(wrong...)
}
