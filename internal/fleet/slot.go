package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

const (
	iterations = 5
	stepDelay  = 60 * time.Millisecond // of each answer
	starting   = time.Second           // about how long a process takes to its first event
	published  = 20                    // about how many events a run publishes
	onceKey    = "fleet"
)

// The exit codes of hostctl that a disturbed run may have.
const (
	exitOK       = 0
	exitFenced   = 14
	exitBusy     = 15
	exitRecovery = 16
	exitUnknown  = 17
)

// scripted is the provider's script: answers that say which call of the execution they
// answer, so that one that is stored twice, or in the wrong place, shows.
func scripted() []byte {
	type step struct {
		Text  string `json:"text"`
		Delay int64  `json:"delay_ms"`
	}
	var script struct {
		Steps []step `json:"steps"`
	}
	for i := range iterations {
		script.Steps = append(script.Steps, step{answer(i + 1), stepDelay.Milliseconds()})
	}
	doc, err := json.Marshal(script)
	if err != nil {
		return nil // a struct of strings and numbers always encodes
	}
	return doc
}

func answer(n int) string { return fmt.Sprintf("answer %d", n) }

// slot is one of the processes at a time, and its replacements.
type slot struct {
	*fleet
	n      int
	random *rand.Rand
	end    time.Time
}

// work drives one session after the other to its end, until the time is over.
func (s *slot) work(ctx context.Context) error {
	for i := 0; time.Now().Before(s.end); i++ {
		if err := s.session(ctx, fmt.Sprintf("fleet-%d-%d", s.n, i)); err != nil {
			return err
		}
	}
	return nil
}

// session runs one session until it is complete, whatever happens to its processes.
// After the end of time nothing is disturbed any more.
func (s *slot) session(ctx context.Context, id string) error {
	sess := s.add(id)
	args := []string{"--session", id}
	for {
		code, err := s.process(ctx, sess, args)
		if err != nil {
			return err
		}
		switch code {
		case exitOK:
			sess.reported = true
			return nil
		case exitBusy:
			s.count(func(f *figures) { f.Busy++ })
			if err := s.takeOver(ctx, id); err != nil {
				return err
			}
			args = []string{"--session", id}
		case exitRecovery:
			s.count(func(f *figures) { f.Refused++ })
			args = []string{"--session", id, "--new-loop"}
		case exitFenced:
			s.count(func(f *figures) { f.Fenced++ })
			args = []string{"--session", id}
		case exitUnknown:
			s.count(func(f *figures) { f.Unknown++ })
			args = []string{"--session", id}
		case killed:
			args = []string{"--session", id}
		default:
			return fmt.Errorf("%s: hostctl run ended with exit code %d", id, code)
		}
	}
}

// killed stands for the exit code of a process that was killed.
const killed = -1

// process is one hostctl run, which may be killed, or stopped while another takes its
// session over.
func (s *slot) process(ctx context.Context, sess *session, args []string) (int, error) {
	cmd := s.command(ctx, append([]string{
		"run", "--store", s.store, "--provider", "scripted", "--provider-opt", "script=@" + s.script, "--once", onceKey,
		"--iterations", strconv.Itoa(iterations), "--output", "jsonl", "go on",
	}, args...)...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	s.count(func(f *figures) { f.Runs++ })
	heard, fate := s.fate(ctx, cmd.Process, sess.id)
	for lines := bufio.NewReader(stdout); ; heard() {
		line, err := lines.ReadBytes('\n')
		if err != nil { // what has no line end was cut off, and published by nobody
			break
		}
		if err := sess.heard(line); err != nil {
			return 0, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
		}
	}
	err = cmd.Wait()
	stopped, disturbed := fate()
	if disturbed != nil {
		return 0, disturbed
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return exitOK, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case !errors.As(err, &exit):
		return 0, err
	case exit.ExitCode() == killed: // by a signal
		return killed, nil
	}
	switch code := exit.ExitCode(); {
	case code == exitFenced, code == exitBusy, code == exitRecovery:
		return code, nil
	case code == exitUnknown && stopped:
		// It was stopped in the middle of a write, and can't know what came of it
		// after another went past it. Whoever was not stopped must know.
		return code, nil
	default:
		return code, fmt.Errorf("%s: %w: %s", sess.id, err, stderr.Bytes())
	}
}

// fate decides what happens to a process, and when: after so many events, or some time
// into its start. heard is to be called for each event; end ends the disturbance of a
// process that has ended, waits for it, and tells whether the process was stopped.
func (s *slot) fate(ctx context.Context, p *os.Process, id string) (heard func(), end func() (stopped bool, err error)) {
	if time.Now().After(s.end) {
		return func() {}, func() (bool, error) { return false, nil }
	}
	stopped := false // read after done
	what, left := s.random.IntN(4), s.random.IntN(published)
	reached, ended, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	timer := time.NewTimer(time.Duration(s.random.Int64N(int64(starting))))
	if left > 0 {
		timer.Stop()
	}
	go func() {
		select {
		case <-ended:
			timer.Stop()
			done <- nil
			return
		case <-reached:
		case <-timer.C:
		}
		switch what {
		case 0, 1:
			s.count(func(f *figures) { f.Kills++ })
			done <- gone(p.Kill())
		case 2:
			s.count(func(f *figures) { f.Stops++ })
			stopped = true
			err := gone(p.Signal(syscall.SIGSTOP))
			if err == nil {
				err = s.takeOver(ctx, id)
			}
			done <- errors.Join(err, gone(p.Signal(syscall.SIGCONT)))
		default:
			done <- nil
		}
	}()
	heard = func() {
		if left--; left == 0 {
			close(reached)
		}
	}
	return heard, func() (bool, error) {
		close(ended)
		err := <-done
		return stopped, err
	}
}

// gone forgets that a process had ended before the signal.
func gone(err error) error {
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// takeOver fences whoever owns the session. That nobody does, or that there is no such
// session yet, is no error.
func (s *slot) takeOver(ctx context.Context, id string) error {
	out, err := s.command(ctx, "session", "take-over", id, "--store", s.store, "--output", "json").Output()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) && exit.ExitCode() == 1 {
		s.count(func(f *figures) { f.TakeOvers++ })
		return nil
	}
	return fmt.Errorf("%s: take over: %w: %s", id, err, out)
}

// command is hostctl with a home of its own.
func (f *fleet) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, f.hostctl, args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "HOME="+f.dir, "XDG_CACHE_HOME="+f.dir+"/cache", "XDG_STATE_HOME="+f.dir+"/state")
	return cmd
}
