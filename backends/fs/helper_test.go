package fs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

// The test binary is also the other process: with helperEnv set it opens the
// store in that folder, acquires the record and does what its input says.
const helperEnv = "FS_TEST_HELPER_DIR"

// runHelper is the other process's main; false in the tests themselves.
func runHelper() bool {
	dir := os.Getenv(helperEnv)
	if dir == "" {
		return false
	}
	if err := helper(dir, os.Stdin, os.Stdout); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	return true
}

func helper(dir string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	s, err := Open(Config{Dir: dir})
	if err != nil {
		return err
	}
	f, rec, err := s.Acquire(ctx, key, store.Claim{Owner: "helper", Run: uuid.NewString(), Force: true})
	if err != nil {
		return err
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "owns %s\n", b)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "commit": // once
			c := store.Commit{ID: uuid.NewString(), After: rec.Mark, Head: []byte("one more"), Entries: [][]byte{[]byte("e")}}
			ack, err := s.Commit(ctx, key, f, c)
			if err == nil {
				rec.Mark = ack.Mark
			}
			fmt.Fprintf(out, "commit %v\n", store.KindOf(err))
		case "enqueue": // until the end of the process
			for n := 0; ; n++ {
				if err := s.Enqueue(ctx, dispatches, store.Item{ID: fmt.Sprint(rest, "-", n)}); err != nil {
					return err
				}
				fmt.Fprintf(out, "enqueued %d\n", n)
			}
		case "lease": // and keep it
			got, err := s.Lease(ctx, dispatches, "helper", time.Hour, 1)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "leased %s\n", got[0].ID)
		case "loop": // until an error or the end of the process
			for n := 0; ; n++ {
				c := store.Commit{ID: uuid.NewString(), After: rec.Mark, Head: []byte(fmt.Sprint(n)), Entries: [][]byte{[]byte(fmt.Sprint(n))}}
				ack, err := s.Commit(ctx, key, f, c)
				if err != nil {
					fmt.Fprintf(out, "ended %v\n", store.KindOf(err))
					break
				}
				rec.Mark = ack.Mark
				fmt.Fprintf(out, "acked %d\n", ack.Mark.Revision)
			}
		}
	}
	return errors.Join(lines.Err(), s.Close())
}

// process is another process that owns the record.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	fence store.Fence
}

func startProcess(t *testing.T, dir string, prefix ...string) *process {
	t.Helper()
	args := append(prefix, os.Args[0])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	cmd.Stderr = os.Stderr
	p := &process{t: t, cmd: cmd}
	p.in = must[io.WriteCloser](t)(cmd.StdinPipe())
	p.out = bufio.NewScanner(must[io.ReadCloser](t)(cmd.StdoutPipe()))
	wantKind(t, "start", cmd.Start(), nil)
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			p.kill()
		}
	})
	wantKind(t, "fence", json.Unmarshal([]byte(p.read("owns")), &p.fence), nil)
	return p
}

// read gives what follows verb on the next line.
func (p *process) read(verb string) string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("the other process ended, want a line %q: %v", verb, p.out.Err())
	}
	got, rest, _ := strings.Cut(p.out.Text(), " ")
	if got != verb {
		p.t.Fatalf("the other process says %q, want %q", p.out.Text(), verb)
	}
	return rest
}

func (p *process) say(line string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	wantKind(p.t, "say", err, nil)
}

// kill ends the process as a crash does, and waits until it is gone.
func (p *process) kill() {
	p.t.Helper()
	wantKind(p.t, "kill", p.cmd.Process.Kill(), nil)
	var gone *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &gone) {
		p.t.Errorf("wait: %v", err)
	}
}
