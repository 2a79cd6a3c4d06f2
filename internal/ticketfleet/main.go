// Command ticketfleet gives a batch of tickets to worker processes that it kills, stops
// and replaces at random, and then reads back what became of every ticket.
//
//	go run ./internal/ticketfleet -store redis     (starts a redis-server of its own)
//	go run ./internal/ticketfleet -tickets 40 -workers 4
//
// Half of the workers run a provider plugin inside their own process, half a program.
// At the end it prints its figures. It exits 1 when a ticket ends neither accepted nor
// honestly failed, a ticket has two current submissions, a submission has no valid stop
// receipt, an agent ran twice for one assignment, or a process of a child is alive.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/loophost/loophost/internal/redisserver"
)

func main() {
	var f fleet
	flag.StringVar(&f.store, "store", "", "store URL; redis: a redis-server of this program's own (default: a folder of its own)")
	flag.IntVar(&f.tickets, "tickets", 200, "tickets in the batch")
	flag.IntVar(&f.workers, "workers", 8, "worker processes at once")
	flag.DurationVar(&f.lease, "lease", 2*time.Second, "lease of a worker")
	flag.DurationVar(&f.limit, "limit", 5*time.Minute, "how long all of it may take")
	flag.Uint64Var(&f.seed, "seed", rand.Uint64(), "decides what is disturbed when")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := f.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ticketfleet:", err)
		os.Exit(1)
	}
}

// fleet is one run of this program.
type fleet struct {
	store            string
	tickets, workers int
	lease, limit     time.Duration
	seed             uint64

	dir, hostctl, agent, script, ran string

	mu      sync.Mutex
	figures figures
}

func (f *fleet) run(ctx context.Context) (err error) {
	if f.workers < 1 || f.tickets < 1 {
		return errors.New("-workers and -tickets must be 1 or more")
	}
	if f.dir, err = os.MkdirTemp("", "ticketfleet-"); err != nil {
		return err
	}
	defer os.RemoveAll(f.dir)
	if err := f.prepare(ctx); err != nil {
		return err
	}
	switch f.store {
	case "":
		f.store = "fs:" + filepath.Join(f.dir, "store")
	case "redis":
		server, startErr := redisserver.Start(ctx)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		f.store = "unix://" + server.Socket
	}
	fmt.Printf("store %s, %d tickets, %d workers, lease %v, seed %d\n", f.store, f.tickets, f.workers, f.lease, f.seed)
	if out, err := f.command(ctx, "ticket", "create", "--file", filepath.Join(f.dir, "tickets.yaml"), "--ready").CombinedOutput(); err != nil {
		return fmt.Errorf("ticket create: %w\n%s", err, out)
	}
	began := time.Now()
	if err := f.disturb(ctx); err != nil {
		return err
	}
	f.figures.Seconds = int(time.Since(began).Seconds())
	return f.verify(ctx)
}

// prepare builds hostctl, fills its compilation cache, and writes the batch and the agents.
func (f *fleet) prepare(ctx context.Context) error {
	f.hostctl = filepath.Join(f.dir, "hostctl")
	build := exec.CommandContext(ctx, "go", "build", "-o", f.hostctl, "github.com/loophost/loophost/cmd/hostctl")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build hostctl: %w\n%s", err, out)
	}
	f.script, f.agent, f.ran = filepath.Join(f.dir, "script.json"), filepath.Join(f.dir, "agent.sh"), filepath.Join(f.dir, "ran")
	random := rand.New(rand.NewPCG(f.seed, 0))
	err := errors.Join(
		os.Mkdir(f.ran, 0o700),
		os.WriteFile(f.script, []byte(`{"repeat": true, "steps": [{"text": "done", "delay_ms": 1500}]}`), 0o600),
		os.WriteFile(f.agent, []byte(agentScript), 0o700),
		os.WriteFile(filepath.Join(f.dir, "tickets.yaml"), batch(f.tickets, random), 0o600),
	)
	if err != nil {
		return err
	}
	warm := f.command(ctx, "run", "--store", "memory:", "--provider", "scripted", "--provider-opt", "script=@"+f.script, "warm up")
	if out, err := warm.CombinedOutput(); err != nil {
		return fmt.Errorf("hostctl run: %w\n%s", err, out)
	}
	return nil
}

// command is hostctl with a home of its own, on the fleet's store.
func (f *fleet) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, f.hostctl, args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "HOME="+f.dir, "XDG_CACHE_HOME="+f.dir+"/cache", "XDG_STATE_HOME="+f.dir+"/state", "LOOPHOST_STORE="+f.store)
	return cmd
}
