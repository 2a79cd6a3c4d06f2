//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/internal/bench"
)

// BenchmarkColdRun is a new process of hostctl run with a provider and two hooks,
// its compilation cache warm, up to the first round's event. The floor is a new
// process that does nothing but print its version. ms/first-round is what an
// operator waits.
func BenchmarkColdRun(b *testing.B) {
	hostctl, err := exec.LookPath("hostctl") // put there by testscript.Main
	if err != nil {
		b.Fatal(err)
	}
	home := b.TempDir()
	command := func(args ...string) *exec.Cmd {
		c := exec.Command(hostctl, args...)
		c.Dir = home
		c.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "LOOPHOST_STORE=")
		return c
	}
	var waited []float64
	first := func() (time.Duration, error) {
		c := command("run", "--provider", "demo", "--hook", "redact", "--hook", "stop-when",
			"--hook-opt", "stop-when.pattern=never said", "--output", "jsonl", "hello")
		out, err := c.StdoutPipe()
		if err != nil {
			return 0, err
		}
		start := time.Now()
		if err := c.Start(); err != nil {
			return 0, err
		}
		var took time.Duration
		lines := bufio.NewReader(out)
		for took == 0 {
			line, err := lines.ReadString('\n')
			if err != nil {
				return 0, fmt.Errorf("no round began: %w; %w", err, c.Wait())
			}
			if strings.Contains(line, `"round_started"`) {
				took = time.Since(start)
			}
		}
		if _, err := io.Copy(io.Discard, lines); err != nil {
			return 0, err
		}
		return took, c.Wait()
	}
	bench.Against(b, 1, func(steps int) error {
		for range steps {
			took, err := first()
			if err != nil {
				return err
			}
			waited = append(waited, float64(took.Microseconds())/1000)
		}
		return nil
	}, func(steps int) error {
		for range steps {
			if err := command("version").Run(); err != nil {
				return err
			}
		}
		return nil
	})
	b.ReportMetric(bench.Median(waited[1:]), "ms/first-round") // the first one compiled
}
