package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// Spawner lets the suite run an owner in a process of its own, which it pauses
// and kills (M-6, L-3).
type Spawner interface {
	// SpawnOwner starts a process that opens the same data and calls ServeOwner on
	// the other end of what is returned.
	SpawnOwner(ctx context.Context) (OwnerProcess, error)
}

// OwnerProcess is a running process that serves as an owner. Reading is what it
// writes, and writing is what it reads.
type OwnerProcess interface {
	io.ReadWriter
	Pause() error  // as SIGSTOP does; it returns when the process stands still
	Resume() error // as SIGCONT does
	Kill() error   // as SIGKILL does; it returns when the process is gone
	// Close ends the process, if it still lives, and waits for it.
	Close() error
}

// ownerOrder is the suite's first line: what the owner has to do.
type ownerOrder struct {
	Session string `json:"session"`
	// Without one of these, the owner runs the loop of one round that ServeOwner describes.
	Crash  *crashOrder  `json:"crash,omitempty"`
	Ticket *ticketOrder `json:"ticket,omitempty"` // a ticket's life instead of a session
}

// What owner and suite say to each other then, a line each.
const (
	ownerCalls    = "calls"    // the owner's provider was called and waits
	ownerBoundary = "boundary" // the boundary checkpoint is durable; the owner waits before the final mirror
	ownerGo       = "go"       // the suite's answer to either
)

// ownerEnd is the owner's last line.
type ownerEnd struct {
	Error    string `json:"error"`
	Fenced   bool   `json:"fenced"`
	Complete int    `json:"complete"` // Complete events
}

// ServeOwner is the other side of a Spawner: it runs one loop in the session that
// the first line of in names, or lives the life of a ticket, halts where the suite wants
// to act, and reports its end on out. The error says that suite and owner did not understand each other.
func ServeOwner(ctx context.Context, st store.Store, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := readLine(lines)
	if err != nil {
		return err
	}
	var order ownerOrder
	if err := json.Unmarshal([]byte(line), &order); err != nil {
		return fmt.Errorf("the suite's order %q: %w", line, err)
	}
	switch {
	case order.Crash != nil:
		return order.Crash.serve(ctx, st, order.Session, lines, out)
	case order.Ticket != nil:
		return order.Ticket.serve(ctx, st, lines, out)
	}
	halt := func(where string) error {
		if _, err := fmt.Fprintln(out, where); err != nil {
			return err
		}
		_, err := readLine(lines)
		return err
	}
	h, err := host.New(host.Config{Store: st, Owner: "conformance, in another process"})
	if err != nil {
		return err
	}
	s, err := h.Open(ctx, host.OpenRequest{ID: order.Session})
	if err != nil {
		return err
	}
	var end ownerEnd
	var lost error
	_, err = s.Run(ctx, host.RunSpec{
		Objective: "prove it", Iterations: 1, Rounds: 1,
		Provider: &model{answer: func(ctx context.Context, n int) (pluginapi.Message, error) {
			if err := halt(ownerCalls); err != nil {
				return pluginapi.Message{}, err
			}
			return direct(ctx, n)
		}},
		Observer: func(ev host.Event) {
			if ev.Type == host.EventComplete {
				end.Complete++
			}
			if c := ev.Checkpoint; c != nil && c.Name == string(loop.CheckpointBoundary) {
				lost = errors.Join(lost, halt(ownerBoundary))
			}
		},
	})
	if err != nil {
		end.Error, end.Fenced = err.Error(), host.IsFenced(err)
	}
	return errors.Join(lost, json.NewEncoder(out).Encode(end), s.Close(ctx))
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read a line: %w", err)
	}
	return line[:len(line)-1], nil
}

func processCases() []Case {
	spawning := func(id, sentence string, run func(context.Context, *Env) error) Case {
		c := inLoop(id, sentence, run)
		c.Needs = []Need{NeedSpawn}
		return c
	}
	return []Case{
		spawning("M-6/stopped-process-in-the-provider", "An owner whose process was stopped during its provider call and that was taken over ends fenced when it is continued.", func(ctx context.Context, e *Env) error {
			return stoppedProcess(ctx, e, ownerCalls)
		}),
		spawning("M-6/stopped-process-before-the-mirror", "An owner whose process was stopped between boundary and final mirror and that was taken over ends fenced when it is continued.", func(ctx context.Context, e *Env) error {
			return stoppedProcess(ctx, e, ownerBoundary)
		}),
		spawning("L-3/killed-process", "A loop whose owner's process was killed is recorded as recovery_unsupported by the next owner.", killedProcess),
	}
}

// remote is an owner in another process, as the case talks to it.
type remote struct {
	OwnerProcess
	lines *bufio.Reader
}

// spawn starts an owner of the rig's session and lets it go on until it halts at where.
func (r *loopRig) spawn(ctx context.Context, e *Env, where string) (*remote, error) {
	p, err := e.Harness.(Spawner).SpawnOwner(ctx)
	if err != nil {
		return nil, failf("start an owner's process: %w", err)
	}
	o := &remote{p, bufio.NewReader(p)}
	err = json.NewEncoder(p).Encode(ownerOrder{Session: r.id})
	for err == nil {
		var at string
		if at, err = readLine(o.lines); err != nil || at == where {
			break
		}
		if at != ownerCalls && at != ownerBoundary {
			err = failf("want it to reach %q, got %s", where, at)
			break
		}
		_, err = fmt.Fprintln(p, ownerGo)
	}
	if err != nil {
		return nil, failf("talk to the owner's process: %w", errors.Join(err, p.Close()))
	}
	return o, nil
}

func stoppedProcess(ctx context.Context, e *Env, where string) (err error) {
	rig, err := e.loop(ctx, "stopped", never)
	if err != nil {
		return err
	}
	owner, err := rig.spawn(ctx, e, where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, owner.Close()) }()
	if err := owner.Pause(); err != nil {
		return failf("stop the owner's process: %w", err)
	}
	after, taken := rig.succeed(ctx)
	if err := errors.Join(taken, owner.Resume()); err != nil {
		return err
	}
	end, err := owner.end()
	if err != nil {
		return err
	}
	return errors.Join(
		wantEqual("the old owner ends fenced ("+end.Error+")", end.Fenced, true),
		wantEqual("Complete events of both", end.Complete+rig.count(host.EventComplete), 1),
		expectUntouched(ctx, rig.other, "the old owner's end", rig.key(), after),
	)
}

// end lets the owner go on to its end.
func (o *remote) end() (end ownerEnd, err error) {
	if _, err := fmt.Fprintln(o, ownerGo); err != nil {
		return end, failf("talk to the owner's process: %w", err)
	}
	for {
		line, err := readLine(o.lines)
		if err != nil {
			return end, failf("the owner's end: %w", err)
		}
		if line == ownerCalls || line == ownerBoundary {
			if _, err := fmt.Fprintln(o, ownerGo); err != nil {
				return end, failf("talk to the owner's process: %w", err)
			}
			continue
		}
		if err := json.Unmarshal([]byte(line), &end); err != nil {
			return end, failf("the owner's end: %w", err)
		}
		return end, nil
	}
}

func killedProcess(ctx context.Context, e *Env) error {
	rig, err := e.loop(ctx, "killed", never)
	if err != nil {
		return err
	}
	owner, err := rig.spawn(ctx, e, ownerCalls)
	if err != nil {
		return err
	}
	if err := errors.Join(owner.Kill(), owner.Close()); err != nil {
		return failf("kill the owner's process: %w", err)
	}
	m := &model{answer: direct}
	// Where the store can't tell that the owner is dead, an operator's word takes the lease's place.
	s, err := rig.host.Open(ctx, host.OpenRequest{ID: rig.id, Force: !e.Store.Has("liveness")})
	if err != nil {
		return failf("open the session of a dead owner: want success, got %w", err)
	}
	defer func() { _ = s.Close(ctx) }() // the clean-up takes what stays
	_, err = s.Run(ctx, rig.spec(m, 1, 1))
	lost, ok := errors.AsType[*host.RecoveryError](err)
	if !ok {
		return failf("the next start: want a *host.RecoveryError, got %w", orNone(err))
	}
	return errors.Join(
		wantEqual("provider calls", m.count(), 0),
		wantEqual("counters", countsOf(&lost.State), counts{1, 0, 1}),
		wantLoop("memory", s.Snapshot().Head, loop.RecoveryUnsupported, loop.RuntimeFailed, counts{1, 0, 1}),
		rig.wantStored(ctx, "the store", s.Snapshot().Head),
		rig.wantOnceEach(ctx),
	)
}
