// Package verifier runs the operator's command that decides whether a goal is
// met. It runs with the user's full rights.
package verifier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// Timeout bounds one run of the command; after it, it could not be run.
	Timeout = 10 * time.Minute
	// maxDetail bounds what is kept of the command's output, in bytes.
	maxDetail = 1024
	// grace is how long the command's pipes may stay open after it was killed.
	grace = 2 * time.Second
	// Exits of sh for a command that it can't execute or can't find.
	exitNotExecutable = 126
	exitNotFound      = 127
)

// Command is a host.Verifier: sh -c, in a process group of its own, with stdin closed.
type Command struct {
	Line string
	Dir  string // working directory; "": the host's
}

// Name is for the journal.
func (Command) Name() string { return "until" }

// Digest names the command's text.
func (c Command) Digest() string {
	sum := sha256.Sum256([]byte(c.Line))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Verify runs the command once. Exit 0 passes; 126, 127, a signal of its own
// and the timeout mean that it could not run; any other exit doesn't pass, and
// the end of its output is the detail.
func (c Command) Verify(ctx context.Context) (passed bool, detail string, err error) {
	return c.verify(ctx, Timeout)
}

func (c Command) verify(ctx context.Context, timeout time.Duration) (bool, string, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out tail
	cmd := exec.CommandContext(limited, "sh", "-c", c.Line)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, &out, &out
	cmd.WaitDelay = grace
	ownGroup(cmd)
	err := cmd.Run()
	detail := out.text()
	var exited *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, detail, context.Cause(ctx)
	case limited.Err() != nil:
		return false, detail, fmt.Errorf("the verifier %q did not end within %s", c.Line, timeout)
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		return true, detail, nil
	case errors.As(err, &exited):
		switch code := exited.ExitCode(); code {
		case exitNotExecutable, exitNotFound, -1:
			return false, detail, fmt.Errorf("the verifier %q could not run (%w): %s", c.Line, err, detail)
		default:
			return false, strings.TrimSpace(fmt.Sprintf("exit %d: %s", code, detail)), nil
		}
	}
	return false, detail, fmt.Errorf("the verifier %q could not run: %w", c.Line, err)
}

// tail keeps the last bytes that were written to it.
type tail struct{ kept []byte }

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxDetail; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// text is what was kept, as valid UTF-8.
func (t *tail) text() string {
	b := t.kept
	if len(b) == maxDetail {
		for len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))
}
