package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loophost/loophost/host/store"
)

// killRow is one life of the kill matrix.
type killRow struct {
	name, words string
	coordinated bool
	process     bool
}

func killRows() []killRow {
	return []killRow{
		{name: "local", words: "a coordinator with a local task in it", coordinated: true},
		{name: "process", words: "a worker with a process child", process: true},
	}
}

func killCases() []Case {
	var out []Case
	for _, row := range killRows() {
		needs := []Need{NeedSpawn}
		if row.process {
			needs = append(needs, NeedGroups)
		}
		for _, at := range []side{killBefore, killAfter} {
			out = append(out, inTickets("M-4/killed/"+row.name+"/"+string(at),
				fmt.Sprintf("Whichever write of its life %s is killed right %s, what is left is whole, nothing that was acknowledged is lost, no attempt is run twice, no process of the child survives, and another worker brings the ticket to its one result.", row.words, at),
				func(ctx context.Context, e *Env) error { return killEveryWrite(ctx, e, row, at) }, needs...))
		}
	}
	return append(out,
		inTickets("M-4/killed/in-the-agent", "A worker that is killed while its local task's agent works has its stop proved by another one; the run has no result and is not run again, and a second attempt gives the ticket's one result.", killedInAgent, NeedSpawn),
		inTickets("M-4/killed/while-the-command-runs", "A worker that is killed while its process child works leaves it behind; another one ends the whole of it before it proves the stop, and a second attempt gives the ticket's one result.", killedBesideCommand, NeedSpawn, NeedGroups),
	)
}

// killedLife is what the suite knows of a worker that it killed.
type killedLife struct {
	life   ticketLife
	facts  []fact
	writes []ticketWrite
	calls  int    // of the agent
	halted string // where; "": nowhere
	killed bool
	end    *ticketEnd // nil: it did not come to its end
}

// killEveryWrite kills the worker at its first write, at its second, and so on, until a
// life comes to its end. The cells must be those of a life that nobody kills.
func killEveryWrite(ctx context.Context, e *Env, row killRow, at side) error {
	whole, err := row.cell(ctx, e, at, 0)
	if err != nil {
		return failf("the life that nobody kills: %w", err)
	}
	if whole.killed {
		return failf("the life that nobody kills: want its end, got a halt at %s", whole.halted)
	}
	err = fewAtOnce(len(whole.writes), func(n int) error {
		op := string(whole.writes[n-1].Op)
		k, err := row.cell(ctx, e, at, n)
		switch {
		case err != nil:
			return failf("killed %s write %d (%s): %w", at, n, op, err)
		case !k.killed:
			return failf("there is no cell %s write %d (%s): the life came to its end", at, n, op)
		case k.halted != op:
			return failf("killed %s write %d: want the cell %s, got %s", at, n, op, k.halted)
		}
		return nil
	})
	if err != nil {
		return err
	}
	past, err := row.cell(ctx, e, at, len(whole.writes)+1)
	if err == nil && past.killed {
		err = failf("a write more than those of the life that nobody kills: want an end, got %s", past.halted)
	}
	var cells []string
	for _, w := range whole.writes {
		cells = append(cells, string(w.Op))
	}
	e.Note("killed %s %d writes: %s", at, len(cells), strings.Join(cells, " "))
	return err
}

// cell makes one life and what follows it. n is the write at which the worker is killed;
// 0: it is not.
func (row killRow) cell(ctx context.Context, e *Env, at side, n int) (k *killedLife, err error) {
	l := e.newLife(fmt.Sprintf("%s-%s-%d", row.name, at, n))
	l.Coordinated = row.coordinated
	if row.process {
		done, derr := l.asProcess()
		if derr != nil {
			return nil, derr
		}
		defer func() { err = errors.Join(err, done()) }()
	}
	k, err = e.killedLife(ctx, ticketOrder{Life: l, Halt: n, After: at == killAfter}, nil)
	if err != nil {
		return k, err
	}
	if k.end != nil && (k.end.Error != "" || !has(k.facts, stepAccepted)) {
		return k, failf("a life that nobody killed: want it accepted, got %v, %s", k.facts, k.end.Error)
	}
	return k, k.inherited(ctx, e)
}

// asProcess makes the child of l a process, which tells of its runs in a file.
func (l *ticketLife) asProcess() (done func() error, err error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	l.Process = newProcessChild(l.Answer)
	l.Process.Ran = filepath.Join(dir, "ran")
	return func() error { return errors.Join(l.Process.end(), os.RemoveAll(dir)) }, nil
}

// runs is how often the process child ran.
func (c *processChild) runs() (int, error) {
	data, err := os.ReadFile(c.Ran)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return strings.Count(string(data), "\n"), err
}

// inherited checks what the store holds of the worker's writes, and lets an heir go on.
func (k *killedLife) inherited(ctx context.Context, e *Env) error {
	if k.life.Process != nil {
		var err error
		if k.calls, err = k.life.Process.runs(); err != nil {
			return err
		}
	}
	if err := k.kept(ctx, e); err != nil {
		return err
	}
	return e.inherit(ctx, k.life, k.facts, k.calls)
}

// kept checks that each record is as the store acknowledged it last: no write was on its
// way when the worker was killed.
func (k *killedLife) kept(ctx context.Context, e *Env) (err error) {
	s, err := e.Harness.Open(ctx)
	if err != nil {
		return failf("open a handle: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	last := map[store.Key]store.Mark{}
	for _, w := range k.writes {
		if w.Mark != (store.Mark{}) {
			last[w.Key] = w.Mark
		}
	}
	var bad []error
	for key, mark := range last {
		rec, err := s.Load(ctx, key)
		if err != nil {
			bad = append(bad, failf("load %s, which was acknowledged: %w", key, err))
			continue
		}
		bad = append(bad, wantEqual("the acknowledged mark of "+key.String(), rec.Mark, mark))
	}
	return errors.Join(bad...)
}

// hear takes one line in.
func (k *killedLife) hear(l ticketLine) {
	switch {
	case l.Fact != nil:
		k.facts = append(k.facts, *l.Fact)
	case l.Wrote != nil:
		k.writes = append(k.writes, *l.Wrote)
	case l.Agent:
		k.calls++
	case l.Halt != "":
		k.halted = l.Halt
	case l.End != nil:
		k.end = l.End
	}
}

// killedLife starts a process with order, listens, and kills it when it halts, or when
// now, if not nil, has returned nil. One that comes to its end is not killed.
func (e *Env) killedLife(ctx context.Context, order ticketOrder, now func(context.Context) error) (k *killedLife, err error) {
	p, err := e.Harness.(Spawner).SpawnOwner(ctx)
	if err != nil {
		return nil, failf("start an owner's process: %w", err)
	}
	k = &killedLife{life: order.Life}
	var dead atomic.Bool
	kill := func() error {
		dead.Store(true)
		return wantOK("kill the owner's process", p.Kill())
	}
	watch, heard := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	var missed error
	if now != nil {
		watcher.Go(func() {
			if missed = now(watch); missed == nil {
				missed = kill()
			}
		})
	}
	defer func() {
		heard()
		watcher.Wait()
		k.killed = dead.Load()
		if err = errors.Join(err, missed); err != nil && !k.killed {
			err = errors.Join(err, p.Kill()) // it may wait for somebody who listens
		}
		err = errors.Join(err, p.Close())
	}()
	if err := json.NewEncoder(p).Encode(ownerOrder{Ticket: &order}); err != nil {
		return k, failf("talk to the owner's process: %w", err)
	}
	in := bufio.NewReader(p)
	for {
		line, err := readLine(in)
		switch {
		case err != nil && dead.Load(), errors.Is(err, io.EOF) && k.end != nil:
			return k, nil // what it could still say is heard; half a line says nothing
		case err != nil:
			return k, failf("listen to the owner's process: %w", err)
		}
		var l ticketLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			return k, failf("the owner says %q: %w", brief([]byte(line)), err)
		}
		k.hear(l)
		if k.halted != "" && !dead.Load() {
			if err := kill(); err != nil {
				return k, err
			}
		}
	}
}

func killedInAgent(ctx context.Context, e *Env) error {
	k, err := e.killedLife(ctx, ticketOrder{Life: e.newLife("in-agent"), InAgent: true}, nil)
	if err != nil {
		return err
	}
	return errors.Join(wantEqual("calls of the agent before the kill", k.calls, 1), k.inherited(ctx, e))
}

func killedBesideCommand(ctx context.Context, e *Env) (err error) {
	l := e.newLife("command")
	done, err := l.asProcess()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	l.Process.Waits = true
	k, err := e.killedLife(ctx, ticketOrder{Life: l}, l.Process.running)
	if err != nil {
		return err
	}
	alive, err := l.Process.alive()
	if err != nil {
		return err
	}
	if len(alive) < 2 {
		return failf("want the child and what it started to outlive their worker, got %d processes", len(alive))
	}
	return k.inherited(ctx, e)
}

// running waits until the child has run its first command.
func (c *processChild) running(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := c.runs()
		if err != nil || n > 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return failf("want the process child to run, got %w", context.Cause(ctx))
		}
	}
}
