package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// slot is one worker process at a time, and its replacements.
type slot struct {
	*fleet
	n      int
	random *rand.Rand
}

// disturb keeps every slot at work until the whole batch has ended.
func (f *fleet) disturb(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.limit, fmt.Errorf("the batch did not end within %v", f.limit))
	defer cancel()
	work, done := context.WithCancel(ctx)
	defer done()
	var slots sync.WaitGroup
	errs := make(chan error, f.workers+1)
	for i := range f.workers {
		slots.Go(func() {
			s := slot{fleet: f, n: i, random: rand.New(rand.NewPCG(f.seed, uint64(i)+1))}
			if err := s.work(work); err != nil {
				errs <- err
				done()
			}
		})
	}
	if err := f.ended(work); err != nil && work.Err() == nil {
		errs <- err
	}
	done()
	slots.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	if ctx.Err() != nil {
		all = append(all, context.Cause(ctx))
	}
	return errors.Join(all...)
}

// ended waits until every ticket is accepted, or blocked.
func (f *fleet) ended(ctx context.Context) error {
	for {
		watch := f.command(ctx, "ticket", "watch")
		out, err := watch.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() <= exitUsage) { // the others say how tickets stand
			return fmt.Errorf("ticket watch: %w\n%s", err, out)
		}
		// What waits for a person may yet be accepted by a worker.
		list, err := f.command(ctx, "ticket", "list", "--output", "jsonl").Output()
		if err != nil {
			return fmt.Errorf("ticket list: %w", err)
		}
		onTheirWay := 0
		for line := range bytes.Lines(list) {
			var t struct {
				State string `json:"state"`
			}
			if err := json.Unmarshal(line, &t); err != nil {
				return fmt.Errorf("ticket list: %w: %s", err, line)
			}
			if t.State != "" && t.State != "accepted" && t.State != "blocked" {
				onTheirWay++
			}
		}
		if onTheirWay == 0 {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// exitUsage is the highest exit code of hostctl that says nothing of a ticket.
const exitUsage = 2

// work runs one worker after the other; each ends in another way.
func (s *slot) work(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.worker(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *slot) arguments() []string {
	args := []string{"worker", "--accept", "--concurrency", "2", "--lease", s.lease.String(), "--sweep", "500ms", "--drain-timeout", "10s", "--quiet"}
	if s.n%2 == 0 {
		return append(args, "--exec", "exec "+s.agent+" "+s.ran)
	}
	return append(args, "--provider", "scripted", "--provider-opt", "script=@"+s.script)
}

// worker runs one worker process until its fate or the end of ctx.
func (s *slot) worker(ctx context.Context) error {
	cmd := s.command(context.WithoutCancel(ctx), s.arguments()...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return err
	}
	s.count(func(f *figures) { f.Workers++ })
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	life := time.Duration(float64(s.lease) * (0.5 + 4*s.random.Float64()))
	timer := time.NewTimer(life)
	defer timer.Stop()
	select {
	case err := <-exited:
		return fmt.Errorf("worker %d ended by itself: %w\n%s", s.n, err, said.Bytes())
	case <-ctx.Done():
		return s.drain(cmd, exited, &said)
	case <-timer.C:
	}
	switch s.random.IntN(4) {
	case 0, 1:
		s.count(func(f *figures) { f.Kills++ })
		err := cmd.Process.Kill()
		<-exited
		return gone(err)
	case 2:
		s.count(func(f *figures) { f.Stops++ })
		if err := gone(cmd.Process.Signal(syscall.SIGSTOP)); err != nil {
			return err
		}
		frozen := time.NewTimer(3 * s.lease)
		defer frozen.Stop()
		<-frozen.C
		if err := gone(cmd.Process.Signal(syscall.SIGCONT)); err != nil {
			return err
		}
	}
	return s.drain(cmd, exited, &said)
}

// drain ends a worker as an operator does.
func (s *slot) drain(cmd *exec.Cmd, exited <-chan error, said *bytes.Buffer) error {
	s.count(func(f *figures) { f.Drains++ })
	if err := gone(cmd.Process.Signal(syscall.SIGTERM)); err != nil {
		return err
	}
	err := <-exited
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		// One that had not begun yet is interrupted, or ended by the signal itself.
		status, ok := exit.Sys().(syscall.WaitStatus)
		if ok && status.Signaled() && status.Signal() == syscall.SIGTERM || exit.ExitCode() == exitInterrupted {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("worker %d did not drain: %w\n%s", s.n, err, said.Bytes())
	}
	return nil
}

// exitInterrupted is the exit code of a worker that a signal ended before it began.
const exitInterrupted = 130

// gone forgets that a process had ended before the signal.
func gone(err error) error {
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
