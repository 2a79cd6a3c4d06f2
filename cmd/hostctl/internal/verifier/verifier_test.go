package verifier

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestVerify(t *testing.T) {
	cases := []struct {
		name, line string
		passed     bool
		detail     string // part of it
		fails      bool
	}{
		{"exit 0 passes", "echo fine", true, "fine", false},
		{"another exit does not pass and says why", "echo 3 tests failed >&2; exit 1", false, "exit 1: 3 tests failed", false},
		{"a command that is not there could not run", "no-such-command-here", false, "", true},
		{"a file that can't be executed could not run", "/dev/null", false, "", true},
		{"a command killed by a signal could not run", "kill -9 $$", false, "", true},
		{"stdin is closed", "! read line", true, "", false},
		{"only the end of a long output is kept", "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); done; exit 1", false, "line 399", false},
		{"a child that keeps the output open does not hold the verdict", "sleep 4 & exit 0", true, "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			passed, detail, err := Command{Line: c.line}.Verify(t.Context())
			if passed != c.passed || (err != nil) != c.fails || !strings.Contains(detail, c.detail) {
				t.Errorf("got %v, %q, %v; want %v, detail with %q, error %v", passed, detail, err, c.passed, c.detail, c.fails)
			}
			if len(detail) > maxDetail+len("exit 255: ") {
				t.Errorf("detail has %d bytes", len(detail))
			}
		})
	}
}

func TestCancelKillsTheWholeGroup(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "ready")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the operator cancelled")
	go func() {
		for { // the command makes the file when its child is running
			if _, err := os.Stat(fifo); err == nil {
				cancel(why)
				return
			}
			if t.Context().Err() != nil {
				return
			}
		}
	}()
	start := time.Now()
	passed, _, err := Command{Line: "sleep 600 & touch ready; wait", Dir: dir}.Verify(ctx)
	if passed || !errors.Is(err, why) {
		t.Errorf("got %v, %v; want the cause of the cancel", passed, err)
	}
	if d := time.Since(start); d > grace {
		t.Errorf("took %s: the child kept the output open", d)
	}
}

func TestTimeoutCouldNotRun(t *testing.T) {
	passed, _, err := Command{Line: "sleep 600"}.verify(t.Context(), 50*time.Millisecond)
	if passed || err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v; want an error that names the time", passed, err)
	}
}

func TestDigestFollowsTheText(t *testing.T) {
	a, b := Command{Line: "true"}.Digest(), Command{Line: "false"}.Digest()
	if a == b || !strings.HasPrefix(a, "sha256:") || len(a) != len("sha256:")+64 {
		t.Errorf("got %q and %q", a, b)
	}
}
