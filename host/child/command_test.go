package child_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/ticket"
)

func sh(script string, args ...string) child.Command {
	return child.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Grace: 200 * time.Millisecond}
}

// alive reports whether a process that wrote its number to a file lives.
func alive(t *testing.T, file string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// One that is on its way out has no memory any more, though it is listed still.
	environ, err := os.ReadFile("/proc/" + strings.TrimSpace(string(data)) + "/environ")
	return err == nil && len(environ) > 0
}

// appears waits for a file.
func appears(ctx context.Context, t *testing.T, file string) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Errorf("%s did not appear", file)
			return
		}
	}
}

// T-14: a process child, from its dispatch to its result.
func TestACommandLives(t *testing.T) {
	needsLinux(t)
	r := newRig(t, nil)
	c := contract()
	c.Constraints = []string{"in one word"}
	id := r.start("a", c)
	t.Setenv("A_SECRET", "hidden")
	o, err := r.runner.Run(t.Context(), id, sh(`cat; printf '%s %s %s [%s]' "$LOOPHOST_TICKET" "$LOOPHOST_ASSIGNMENT" "$LOOPHOST_SCOPE" "$A_SECRET"`))
	if err != nil || o.Status != ticket.ChildCompleted {
		t.Fatalf("got %+v, %v", o, err)
	}
	a := r.assignment(id)
	if a.State != ticket.AssignmentSubmitted || !a.ProcessStopped {
		t.Errorf("got %+v", a)
	}
	head := r.stored(a.Runtime.SessionID)
	stop, err := ticket.DecodeStop([]byte(head.Child.Metadata[ticket.MetaOwnedStop]))
	if err != nil || stop.PID == nil || stop.TaskInstance != nil || !stop.Completed {
		t.Errorf("got %+v, %v; want the receipt of a process", stop, err)
	}
	p, err := ticket.DecodeProcessIdentity([]byte(head.Child.Metadata[ticket.MetaProcessIdentity]))
	if err != nil || p.PID != *stop.PID {
		t.Errorf("got %+v, %v; want the receipt's process", p, err)
	}
	sub, _ := r.scope.State().Submission(id)
	content := r.artifact(sub.Artifacts[0].SHA256)
	for _, want := range []string{"an objective", "in one word", "it is there", "a a@1 s []"} {
		if !strings.Contains(content, want) {
			t.Errorf("the result %q lacks %q", content, want)
		}
	}
}

func TestACommandThatFailsSaysWhy(t *testing.T) {
	needsLinux(t)
	for name, c := range map[string]struct {
		work child.Work
		want string
	}{
		"exit":           {sh("echo why >&2; exit 3"), "exit status 3: why"},
		"no answer":      {sh("true"), "answered nothing"},
		"no UTF-8":       {sh(`printf '\377'`), "not valid UTF-8"},
		"too much":       {sh("head -c 1048577 /dev/zero | tr '\\0' x"), "longer than 1048576 bytes"},
		"no program":     {child.Command{Argv: []string{"/no/such/program"}}, "/no/such/program"},
		"nothing at all": {child.Command{}, "the command is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			id := r.start("a", contract())
			o, err := r.runner.Run(t.Context(), id, c.work)
			if err != nil || o.Status != ticket.ChildFailed || o.Err == nil || !strings.Contains(o.Err.Error(), c.want) {
				t.Errorf("got %s %v, %v; want it failed with %q", o.Status, o.Err, err, c.want)
			}
			if a := r.assignment(id); a.State != ticket.Failed || !a.ProcessStopped {
				t.Errorf("got %+v", a)
			}
		})
	}
}

// T-14: the stop is written when nothing of the command is left.
func TestACommandThatIsCancelledIsEndedAsAWhole(t *testing.T) {
	needsLinux(t)
	for name, script := range map[string]string{
		"one that ends when asked":    `sleep 600 & echo $! >$1; wait`,
		"one that does not":           `trap "" TERM; sleep 600 & echo $! >$1; while :; do sleep 600; done`,
		"one whose daemon went away":  `setsid sh -c 'echo $$ >$0; exec sleep 600' $1 & while :; do sleep 600; done`,
		"one that holds its own pipe": `sleep 600 & echo $! >$1; exec sleep 600`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			id := r.start("a", contract())
			file := filepath.Join(t.TempDir(), "pid")
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				appears(t.Context(), t, file)
				cancel()
			}()
			o, err := r.runner.Run(ctx, id, sh(script, file))
			if err != nil || o.Status != ticket.ChildCancelled {
				t.Errorf("got %+v, %v; want it cancelled", o, err)
			}
			if a := r.assignment(id); !a.ProcessStopped {
				t.Errorf("got %+v; want its stop published", a)
			}
			if alive(t, file) {
				t.Error("a process of the child survived its stop receipt")
			}
		})
	}
}

func TestACommandThatLeavesSomethingBehindIsEndedAsAWhole(t *testing.T) {
	needsLinux(t)
	r := newRig(t, nil)
	id := r.start("a", contract())
	file := filepath.Join(t.TempDir(), "pid")
	o, err := r.runner.Run(t.Context(), id, sh(`sleep 600 & echo $! >$1; echo done`, file))
	if err != nil || o.Status != ticket.ChildCompleted {
		t.Errorf("got %+v, %v", o, err)
	}
	if alive(t, file) {
		t.Error("a process of the child survived its stop receipt")
	}
}

func TestACommandThatTakesTooLongIsTimedOut(t *testing.T) {
	needsLinux(t)
	r := newRig(t, nil)
	id := r.start("a", contract())
	work := sh("sleep 600")
	work.Timeout = 100 * time.Millisecond
	o, err := r.runner.Run(t.Context(), id, work)
	if err != nil || o.Status != ticket.ChildTimedOut {
		t.Errorf("got %s %v, %v; want it timed out", o.Status, o.Err, err)
	}
	if a := r.assignment(id); a.State != ticket.Failed || !a.ProcessStopped {
		t.Errorf("got %+v", a)
	}
}

func TestAnAbandonedCommandNeverRuns(t *testing.T) {
	needsLinux(t)
	r := newRig(t, nil)
	id := r.start("a", contract())
	task, err := r.runner.Prepare(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ran")
	gone := make(chan struct{})
	close(gone)
	if err := task.Track(gone); err != nil {
		t.Fatal(err)
	}
	if err := task.Execute(t.Context(), sh("echo ran >$1; echo done", file)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran: %v", err)
	}
	if err := task.Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A process that hides from its group can't be found, and must not hold the worker.
func TestAProcessThatHidesDoesNotHoldTheWorker(t *testing.T) {
	needsLinux(t)
	r := newRig(t, nil)
	id := r.start("a", contract())
	file := filepath.Join(t.TempDir(), "pid")
	o, err := r.runner.Run(t.Context(), id, sh(`env -i PATH="$PATH" X=1 setsid sh -c 'echo $$ >$0; exec sleep 600' $1 & while [ ! -s $1 ]; do :; done; echo done`, file))
	if err != nil || o.Status != ticket.ChildCompleted {
		t.Errorf("got %+v, %v", o, err)
	}
	if !alive(t, file) {
		t.Fatal("the process was found after all: the test shows nothing")
	}
	data, _ := os.ReadFile(file)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}
