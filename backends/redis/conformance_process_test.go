//go:build linux || darwin

package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/loophost/loophost/conformance"
)

// ownerURL is the environment variable that makes a test process an owner: it names
// the store.
const ownerURL = "REDIS_TEST_OWNER_URL"

var _ conformance.Spawner = harness{}

// SpawnOwner runs this test binary again as an owner; it talks over pipes of its own,
// since a test binary writes to its standard output.
func (h harness) SpawnOwner(context.Context) (conformance.OwnerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	toOwner, fromSuite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromOwner, toSuite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, toOwner.Close(), fromSuite.Close())
	}
	cmd := exec.Command(exe, "-test.run=^TestOwnerInAProcessOfItsOwn$")
	cmd.Env = append(os.Environ(), ownerURL+"="+h.url)
	cmd.ExtraFiles = []*os.File{toOwner, toSuite}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Start()
	err = errors.Join(err, toOwner.Close(), toSuite.Close())
	p := &ownerProcess{cmd: cmd, in: fromSuite, out: fromOwner, said: &said}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

type ownerProcess struct {
	cmd     *exec.Cmd
	in, out *os.File
	said    *strings.Builder
	waited  bool
}

func (p *ownerProcess) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *ownerProcess) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p *ownerProcess) Pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil {
		return err
	}
	if !status.Stopped() {
		return fmt.Errorf("the process did not stop: %v", status)
	}
	return nil
}

func (p *ownerProcess) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

func (p *ownerProcess) Kill() error {
	err := p.cmd.Process.Kill()
	_ = p.wait() // it was killed: an error says only that
	return err
}

// Close lets the owner end by itself: with its input gone it has nothing to wait for.
func (p *ownerProcess) Close() error {
	err := p.in.Close()
	if p.cmd.Process != nil && !p.waited {
		if werr := p.wait(); werr != nil {
			err = errors.Join(err, fmt.Errorf("the owner's process: %w: %s", werr, p.said))
		}
	}
	return errors.Join(err, p.out.Close())
}

func (p *ownerProcess) wait() error {
	p.waited = true
	return p.cmd.Wait()
}

// TestOwnerInAProcessOfItsOwn is the owner when the suite runs it, and otherwise
// checks that one can be run: it halts where its provider is called.
func TestOwnerInAProcessOfItsOwn(t *testing.T) {
	if url := os.Getenv(ownerURL); url != "" {
		serveOwner(t, url)
		return
	}
	p, err := harness{url: startServer(t).url()}.SpawnOwner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(p, `{"session":"a session"}`); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(p)
	for _, want := range []string{"calls", "boundary"} {
		if got, err := lines.ReadString('\n'); err != nil || got != want+"\n" {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
		if _, err := fmt.Fprintln(p, "go"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got, `"complete":1`) {
		t.Errorf("got %q, %v; want an end with one Complete event", got, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func serveOwner(t *testing.T, url string) {
	s, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	in, out := os.NewFile(3, "in"), os.NewFile(4, "out")
	if err := errors.Join(conformance.ServeOwner(t.Context(), s, in, out), in.Close(), out.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}
