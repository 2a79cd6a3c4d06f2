package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/internal/procgroup"
	"github.com/loophost/loophost/pluginapi"
)

// DefaultGrace is how long a command may take to end after SIGTERM.
const DefaultGrace = 10 * time.Second

// maxStderr is how many bytes of a failed command's standard error are kept.
const maxStderr = 1024

// Command is work done by an agent that is a program: it gets the assignment on its
// standard input (see Prompt) and answers on its standard output, at most
// ticket.MaxArtifactBytes of UTF-8, with exit 0. It runs in a process group of its
// own with the worker's full rights; the whole group is ended before its stop is
// written (T-14). Linux only.
//
// The environment is Env and these: LOOPHOST_SCOPE, LOOPHOST_TICKET,
// LOOPHOST_ASSIGNMENT, LOOPHOST_SESSION and LOOPHOST_GROUP.
type Command struct {
	Argv    []string
	Dir     string        // working directory; "": the worker's
	Env     []string      // NAME=value; nil: PATH, HOME, LANG, TMPDIR and USER of the worker
	Timeout time.Duration // wall time of the run; 0: none
	Grace   time.Duration // from SIGTERM to SIGKILL when it is cancelled; 0: DefaultGrace
}

// inherited are the variables that a command gets where Env is nil: none holds a secret.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR", "USER"}

func (c Command) environ(t *Task) []string {
	env := append([]string{}, c.Env...)
	if c.Env == nil {
		for _, name := range inherited {
			if v, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+v)
			}
		}
	}
	return append(env,
		"LOOPHOST_SCOPE="+t.spec.Binding.ScopeID, "LOOPHOST_TICKET="+t.spec.Ticket,
		"LOOPHOST_ASSIGNMENT="+t.spec.Assignment, "LOOPHOST_SESSION="+t.session.ID())
}

// commandExecution is a command behind its gate. It is the provider of a loop of one
// round, so that what it answers is an ordinary message of an ordinary session.
type commandExecution struct {
	t              *Task
	c              Command
	group          *procgroup.Group
	text           string
	in             *os.File
	out, complaint *capture
	released       bool // and reaped: set by complete, read once the loop was joined
	reaped         bool
	loop           host.RunSpec
	mu             sync.Mutex
	called         bool
}

func (c Command) begin(ctx context.Context, t *Task) (_ execution, err error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("the command is empty")
	}
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	text, err := t.prompt(ctx)
	if err != nil {
		return nil, err
	}
	e := &commandExecution{t: t, c: c, text: text}
	if err := e.start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	e.loop, err = t.told(ctx, host.RunSpec{
		Iterations: 1, Rounds: 1, Timeout: c.Timeout, DrainTimeout: c.Grace,
		Provider: plugin.FuncProvider{Name: "command", Fn: e.complete},
	})
	if err == nil {
		// Durable before it runs: a group that nobody knows of can't be running.
		err = t.session.UpdateChild(ctx, func(d *host.Child) error {
			identity, err := identityOf(e.group.Identity(), t.runner.machine).Encode()
			if err != nil {
				return err
			}
			d.Metadata[ticket.MetaProcessIdentity] = identity
			return runActor(d)
		})
	}
	if err != nil {
		return nil, errors.Join(err, e.abandon())
	}
	return e, nil
}

// start starts the command behind its gate, with a pipe for each of its streams.
func (e *commandExecution) start() error {
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return err
	}
	cmd := &exec.Cmd{Dir: e.c.Dir, Env: e.c.environ(e.t), Stdin: inR, Stdout: outW, Stderr: errW}
	group, err := procgroup.Start(cmd, e.t.RunID(), e.c.Argv...)
	if err != nil {
		closeAll()
		return err
	}
	for _, f := range []*os.File{inR, outW, errW} {
		_ = f.Close() // the command has its own
	}
	e.group, e.in = group, inW
	e.out, e.complaint = newCapture(outR, ticket.MaxArtifactBytes), newCapture(errR, maxStderr)
	return nil
}

func (e *commandExecution) spec() host.RunSpec { return e.loop }

// complete is the one provider call: it lets the command run and waits for its end.
func (e *commandExecution) complete(ctx context.Context, _ plugin.Session, _ *plugin.Request, emit func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
	fail := func(format string, args ...any) error {
		return &pluginapi.Failure{Kind: pluginapi.FailInternal, Message: fmt.Sprintf(format, args...)}
	}
	e.mu.Lock()
	again := e.called
	e.called = true
	e.mu.Unlock()
	if again {
		return nil, fail("the command was run already")
	}
	if err := e.group.Release(); err != nil {
		return nil, fail("the command can't be let run: %v", err)
	}
	e.released = true
	go func() {
		_, _ = io.WriteString(e.in, e.text) // one that does not read it is free to
		_ = e.in.Close()
	}()
	select {
	case <-e.group.Ended():
	case <-ctx.Done():
		e.terminate()
	}
	state, err := e.group.Reap(context.WithoutCancel(ctx))
	if err != nil {
		return nil, fail("%v", err)
	}
	e.reaped = true
	answer, over := e.out.wait()
	complaint, _ := e.complaint.wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !state.Success():
		return nil, fail("the command ended with %s: %s", state, strings.TrimSpace(strings.ToValidUTF8(complaint, "\uFFFD")))
	case over:
		return nil, fail("the command's answer is longer than %d bytes", ticket.MaxArtifactBytes)
	case !utf8.ValidString(answer):
		return nil, fail("the command's answer is not valid UTF-8")
	case strings.TrimSpace(answer) == "":
		return nil, fail("the command answered nothing")
	}
	if err := emit(pluginapi.Chunk{Type: pluginapi.ChunkText, Text: answer}); err != nil {
		return nil, err
	}
	return &pluginapi.ProviderResult{Message: pluginapi.Message{Role: pluginapi.RoleAssistant, Text: answer}, Finish: pluginapi.FinishStop}, nil
}

// terminate asks the group to end, and gives it its grace. Reap kills what is left.
func (e *commandExecution) terminate() {
	if err := e.group.Signal(syscall.SIGTERM); err == nil {
		timer := time.NewTimer(e.c.Grace)
		defer timer.Stop()
		select {
		case <-e.group.Ended():
			return
		case <-timer.C:
		}
	}
	_ = e.group.Signal(syscall.SIGKILL) // Reap says whether it is gone
}

// stopped: the whole group is gone.
func (e *commandExecution) stopped(ctx context.Context) (ticket.StopReceipt, error) {
	if !e.reaped {
		if !e.released {
			if err := e.abandon(); err != nil {
				return ticket.StopReceipt{}, err
			}
		} else if _, err := e.group.Reap(ctx); err != nil {
			return ticket.StopReceipt{}, err
		}
		e.reaped = true
	}
	pid := uint64(e.group.Identity().PID)
	return ticket.StopReceipt{Receipt: *e.t.dispatch.Receipt, ChildBirth: e.t.dispatch.ChildBirth, PID: &pid}, nil
}

// abandon ends a command that was never let run.
func (e *commandExecution) abandon() error {
	err := errors.Join(e.group.Abandon(), e.in.Close())
	e.out.wait()
	e.complaint.wait()
	return err
}

// capture reads a pipe to its end and keeps the first bytes.
type capture struct {
	pipe *os.File
	done chan struct{}
	data []byte
	over bool
}

func newCapture(r *os.File, limit int) *capture {
	c := &capture{pipe: r, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer r.Close()
		c.data, _ = io.ReadAll(io.LimitReader(r, int64(limit)+1)) // what was read counts
		if len(c.data) > limit {
			c.data, c.over = c.data[:limit], true
		}
		_, _ = io.Copy(io.Discard, r)
	}()
	return c
}

// pipeGrace is how long a pipe is read after everybody who should write it is gone:
// one that left the group and its mark behind may hold it open for ever.
const pipeGrace = 2 * time.Second

// wait gives what was kept, and whether there was more.
func (c *capture) wait() (string, bool) {
	_ = c.pipe.SetReadDeadline(time.Now().Add(pipeGrace)) // closed already: all was read
	<-c.done
	return string(c.data), c.over
}
