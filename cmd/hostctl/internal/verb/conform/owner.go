package conform

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/conformance"
)

// ownerVerb is the hidden verb that the suite starts as an owner in a process of
// its own, talking over stdin and stdout. The store comes through the environment:
// arguments show in the list of processes, and its URL may hold a password.
const ownerVerb = "conformance-owner"

// NewOwnerCommand makes the hidden verb.
func NewOwnerCommand(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     ownerVerb,
		Short:   "Serve the conformance suite as an owner",
		Example: "  hostctl conformance fs:/srv --profile loop",
		Hidden:  true,
		Args:    verb.Exactly(),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, _, err := env.OpenStore(cmd.Context(), env.StoreURL(""))
		if err != nil {
			return err
		}
		return errors.Join(conformance.ServeOwner(cmd.Context(), s, env.In, env.Out), s.Close())
	}
	return cmd
}

// owner is a process of this program that serves as an owner.
type owner struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	waited bool
}

// spawn starts an owner of the store at url. It is in a process group of its own:
// a Ctrl-C is the suite's to handle.
func spawn(url string, errs io.Writer) (conformance.OwnerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &owner{cmd: exec.Command(exe, ownerVerb)}
	p.cmd.Env = append(os.Environ(), verb.StoreVariable+"="+url)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = errs
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Read reads what the owner says.
func (p *owner) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write tells the owner something.
func (p *owner) Write(b []byte) (int, error) { return p.in.Write(b) }

// Pause stops the process and waits until it stands still.
func (p *owner) Pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case !status.Stopped():
			return fmt.Errorf("the owner's process did not stop: wait status %#x", int(status))
		default:
			return nil
		}
	}
}

// Resume lets it go on.
func (p *owner) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends it at once and waits until it is gone.
func (p *owner) Kill() error {
	err := p.cmd.Process.Kill()
	p.waited = true
	_ = p.cmd.Wait() // killed is how it ended
	return err
}

// Close lets it end by itself: with its input gone it has nothing to wait for.
func (p *owner) Close() error {
	if p.waited {
		return nil
	}
	p.waited = true
	err := p.in.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	if werr := p.cmd.Wait(); werr != nil {
		err = errors.Join(err, fmt.Errorf("the owner's process: %w", werr))
	}
	return err
}
