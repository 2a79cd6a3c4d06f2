package procgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const errNoProcess = syscall.ESRCH

// Group is a command that was started as the leader of a process group. Its methods
// are for one goroutine, but for Signal.
type Group struct {
	cmd   *exec.Cmd
	id    Identity
	gate  *os.File // what lets it run
	ended chan struct{}
}

// gateScript waits for one line on descriptor 3 and becomes the command then. Where
// the descriptor is closed first, nothing was ever run.
const gateScript = `read -r go <&3 || exit 125; exec 3<&-; exec "$@"`

// Start starts argv, held at its gate, with cmd's other fields (Dir, Env, Stdin,
// Stdout, Stderr, which must be files or nil) and mark in its environment.
func Start(cmd *exec.Cmd, mark string, argv ...string) (*Group, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	sh, err := exec.LookPath("sh")
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	cmd.Path, cmd.Args = sh, append([]string{"sh", "-c", gateScript, "sh"}, argv...)
	cmd.ExtraFiles = []*os.File{r}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, MarkVariable+"="+mark)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	g := &Group{cmd: cmd, gate: w, ended: make(chan struct{})}
	p, err := inspect(cmd.Process.Pid)
	boot, berr := Boot()
	if err = errors.Join(err, berr); err != nil {
		_ = w.Close() // the command ends by itself
		return nil, errors.Join(err, cmd.Wait())
	}
	g.id = Identity{PID: p.pid, Start: p.start, Boot: boot, Mark: mark}
	go g.watch()
	return g, nil
}

// watch learns of the leader's end without reaping it.
func (g *Group) watch() {
	defer close(g.ended)
	for {
		err := unix.Waitid(unix.P_PID, g.id.PID, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Identity names the group.
func (g *Group) Identity() Identity { return g.id }

// Release lets the command run. An error says that it never will.
func (g *Group) Release() error {
	_, err := g.gate.WriteString("go\n")
	return errors.Join(err, g.gate.Close())
}

// Abandon ends a command that was not released: it never ran.
func (g *Group) Abandon() error {
	err := g.gate.Close()
	<-g.ended
	_ = g.cmd.Wait() // its exit says only that
	return err
}

// Ended is closed when the leader has ended. Others of its group may go on.
func (g *Group) Ended() <-chan struct{} { return g.ended }

// Signal sends sig to the whole group. A group without a process left is no error.
func (g *Group) Signal(sig syscall.Signal) error {
	if err := syscall.Kill(-g.id.PID, sig); !errors.Is(err, errNoProcess) {
		return err
	}
	return nil
}

// Reap waits for the leader's end, kills what is left of its group and waits until
// all of it is gone. It answers how the leader ended. The end of ctx is an error:
// something may still run then, and Reap may be called again.
func (g *Group) Reap(ctx context.Context) (*os.ProcessState, error) {
	select {
	case <-g.ended:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: process %d runs: %w", ErrUnproved, g.id.PID, context.Cause(ctx))
	}
	if err := g.id.clear(ctx, true); err != nil {
		return nil, err
	}
	var exit *exec.ExitError
	if err := g.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return g.cmd.ProcessState, err
	}
	return g.cmd.ProcessState, nil
}

// End kills what is left of a group whose starter is gone, and waits until all of it
// is gone. A nil error is the proof. Errors: ErrElsewhere, ErrUnproved.
func End(ctx context.Context, id Identity) error {
	if err := id.Validate(); err != nil {
		return err
	}
	boot, err := Boot()
	if err != nil {
		return err
	}
	if boot != id.Boot {
		return fmt.Errorf("%w: it ran in boot %s, this is %s", ErrElsewhere, id.Boot, boot)
	}
	return id.clear(ctx, false)
}

// Alive reports whether the leader lives. Error: ErrElsewhere.
func Alive(id Identity) (bool, error) {
	boot, err := Boot()
	if err != nil {
		return false, err
	}
	if boot != id.Boot {
		return false, fmt.Errorf("%w: it ran in boot %s, this is %s", ErrElsewhere, id.Boot, boot)
	}
	p, err := inspect(id.PID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && p.start == id.Start && !p.dead, err
}

// bareLooks is how often clear looks at a process without an environment until it
// takes it for one that has none for good: a process that becomes another program has
// none for a moment, and must not be missed in it.
const bareLooks = 40

// clear kills until nothing is left.
func (id Identity) clear(ctx context.Context, ours bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	if ours {
		// At once for all of the group: one that is being forked does not escape.
		if err := syscall.Kill(-id.PID, syscall.SIGKILL); err != nil && !errors.Is(err, errNoProcess) {
			return fmt.Errorf("%w: kill the group %d: %w", ErrUnproved, id.PID, err)
		}
	}
	for clean, bare := 0, 0; ; {
		s, err := id.look(ours)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnproved, err)
		}
		if s.empty() && s.bare && bare < bareLooks {
			bare++
			select {
			case <-tick.C:
				continue
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", ErrUnproved, context.Cause(ctx))
			}
		}
		if s.empty() {
			if len(s.unsure) > 0 {
				return fmt.Errorf("%w: process %d is in a group of the number %d, and this user may not see whose it is", ErrUnproved, s.unsure[0].pid, id.PID)
			}
			// A list of processes is no instant: one that was born as its parent died
			// may be missed by one look.
			if clean++; clean == 2 {
				return nil
			}
			continue
		}
		clean = 0
		if s.leader {
			s.members = append(s.members, process{pid: id.PID, start: id.Start})
		}
		for _, p := range s.members {
			if err := p.kill(); err != nil {
				return fmt.Errorf("%w: kill process %d: %w", ErrUnproved, p.pid, err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: process %d does not end: %w", ErrUnproved, s.members[0].pid, context.Cause(ctx))
		}
	}
}

// kill kills exactly this process, even if its number is another's by now.
func (p process) kill() error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, errNoProcess) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	now, err := inspect(p.pid)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.start != p.start {
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); !errors.Is(err, errNoProcess) {
		return err
	}
	return nil
}
