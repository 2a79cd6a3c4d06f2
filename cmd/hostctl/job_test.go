//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// awaitTimeout is when a script gives up waiting for a line: a hang, not a pace.
const awaitTimeout = 2 * time.Minute

type jobsKey struct{}

// job is a command in the background whose output is watched line by line.
type job struct {
	cmd     *exec.Cmd
	readers sync.WaitGroup
	close   func() error // of the terminal, if it has one

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when a line came or the output ended
	lines    []string      // of stdout and stderr, as they came
	seen     int           // lines before it were matched already
	ended    bool
	out, err bytes.Buffer
}

func (j *job) add(line string, to *bytes.Buffer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	to.WriteString(line + "\n")
	j.lines = append(j.lines, line)
	j.wake()
}

func (j *job) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *job) read(r io.Reader, to *bytes.Buffer) {
	defer j.readers.Done()
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		j.add(string(bytes.TrimSuffix(in.Bytes(), []byte("\r"))), to)
	}
}

// next takes the next line that matches; ok is false when there can't be one any more.
func (j *job) next(re *regexp.Regexp) (found bool, more <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.seen < len(j.lines) {
		j.seen++
		if re.MatchString(j.lines[j.seen-1]) {
			return true, nil
		}
	}
	if j.ended {
		return false, nil
	}
	return false, j.changed
}

func jobOf(ts *testscript.TestScript, name string) *job {
	j := ts.Value(jobsKey{}).(map[string]*job)[name]
	if j == nil {
		ts.Fatalf("no job %q was started", name)
	}
	return j
}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	tty := len(args) > 0 && args[0] == "-tty"
	if tty {
		args = args[1:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start [-tty] NAME ARG...")
	}
	j := &job{changed: make(chan struct{})}
	j.cmd = exec.Command(ts.Getenv("HOSTCTL"), args[1:]...)
	j.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "XDG_CACHE_HOME", "LOOPHOST_STORE", "LOOPHOST_SCOPE", "NO_COLOR", "TMPDIR"} {
		j.cmd.Env = append(j.cmd.Env, name+"="+ts.Getenv(name))
	}
	if tty {
		j.cmd.Env = append(j.cmd.Env, "TERM=xterm-256color")
		ts.Check(j.onTerminal())
	} else {
		out, err := j.cmd.StdoutPipe()
		ts.Check(err)
		errs, err := j.cmd.StderrPipe()
		ts.Check(err)
		ts.Check(j.cmd.Start())
		j.readers.Add(2)
		go j.read(out, &j.out)
		go j.read(errs, &j.err)
	}
	go func() {
		j.readers.Wait()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.ended = true
		j.wake()
	}()
	ts.Value(jobsKey{}).(map[string]*job)[args[0]] = j
	ts.Defer(func() {
		if j.cmd.ProcessState == nil { // a script that failed before its finish
			_ = j.cmd.Process.Kill()
			j.readers.Wait()
			_ = j.cmd.Wait()
		}
		if j.close != nil {
			_ = j.close()
		}
	})
}

func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await NAME PATTERN")
	}
	j := jobOf(ts, args[0])
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	limit := time.After(awaitTimeout)
	for {
		found, more := j.next(re)
		if found {
			return
		}
		if more == nil {
			ts.Fatalf("%s ended without a line that matches %s:\n%s%s", args[0], args[1], j.out.String(), j.err.String())
		}
		select {
		case <-more:
		case <-limit:
			j.mu.Lock()
			defer j.mu.Unlock()
			ts.Fatalf("%s printed no line that matches %s in %s:\n%s%s", args[0], args[1], awaitTimeout, j.out.String(), j.err.String())
		}
	}
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}
	if neg || len(args) != 2 || signals[args[1]] == 0 {
		ts.Fatalf("usage: signal NAME SIGNAL")
	}
	ts.Check(jobOf(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

func cmdFinish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: finish NAME CODE")
	}
	j := jobOf(ts, args[0])
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	stuck := time.AfterFunc(awaitTimeout, func() { _ = j.cmd.Process.Kill() })
	defer stuck.Stop()
	j.readers.Wait()
	_ = j.cmd.Wait() // the exit code is what is looked at
	_, err = ts.Stdout().Write(j.out.Bytes())
	ts.Check(err)
	_, err = ts.Stderr().Write(j.err.Bytes())
	ts.Check(err)
	if got := j.cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("%s: exit code is %d, want %d:\n%s%s", args[0], got, want, j.out.String(), j.err.String())
	}
}
