//go:build unix

package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/loophost/loophost/host/store"
)

// The descriptors over which suite and owner talk: not standard output, to which a
// test binary writes.
const (
	ownerIn  = 3
	ownerOut = 4
)

// StartOwner starts cmd as an owner's process, for a Spawner whose program calls
// ServeStartedOwner: usually the test binary itself, told by an argument and the
// environment to run nothing but that. It sets cmd's ExtraFiles, Stdout and Stderr.
func StartOwner(cmd *exec.Cmd) (OwnerProcess, error) {
	toOwner, fromSuite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromOwner, toSuite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, toOwner.Close(), fromSuite.Close())
	}
	p := &startedOwner{cmd: cmd, in: fromSuite, out: fromOwner}
	cmd.ExtraFiles = []*os.File{toOwner, toSuite}
	cmd.Stdout, cmd.Stderr = &p.said, &p.said
	err = cmd.Start()
	if err = errors.Join(err, toOwner.Close(), toSuite.Close()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// ServeStartedOwner is ServeOwner in a process that StartOwner started.
func ServeStartedOwner(ctx context.Context, s store.Store) error {
	in, out := os.NewFile(ownerIn, "in"), os.NewFile(ownerOut, "out")
	if in == nil || out == nil {
		return errors.New("conformance: this process was not started by StartOwner")
	}
	// A command that the owner starts must not keep the suite waiting for its end.
	syscall.CloseOnExec(ownerIn)
	syscall.CloseOnExec(ownerOut)
	return errors.Join(ServeOwner(ctx, s, in, out), in.Close(), out.Close())
}

type startedOwner struct {
	cmd     *exec.Cmd
	in, out *os.File
	said    bytes.Buffer // what it wrote to stdout and stderr; read after it was waited for
	waited  bool
}

func (p *startedOwner) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *startedOwner) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p *startedOwner) Pause() error {
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

func (p *startedOwner) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Kill says nothing of how the process ended: it was killed.
func (p *startedOwner) Kill() error {
	err := p.cmd.Process.Kill()
	_ = p.wait()
	return err
}

// Close lets the owner end by itself: with its input gone it has nothing to wait for.
func (p *startedOwner) Close() error {
	err := p.in.Close()
	if p.cmd.Process != nil && !p.waited {
		if ended := p.wait(); ended != nil {
			err = errors.Join(err, fmt.Errorf("the owner's process: %w: %s", ended, p.said.Bytes()))
		}
	}
	return errors.Join(err, p.out.Close())
}

func (p *startedOwner) wait() error {
	p.waited = true
	return p.cmd.Wait()
}
