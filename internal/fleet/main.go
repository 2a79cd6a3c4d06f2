// Command fleet is what nobody should do to a store: many hostctl processes run
// sessions over it at once, are killed and stopped at random and replaced, for as long
// as it is told to. Then it reads every session back and compares it with what the
// processes said while they lived.
//
//	go run ./internal/fleet -store fs:/tmp/fleet -processes 24 -for 5m
//	go run ./internal/fleet -store redis -for 1m       (starts a redis-server of its own)
//
// At the end it prints its figures. It exits 1 when a session is damaged, an event that
// a process published as durable is not stored as it was said, an answer is stored
// twice, a session has two Complete events, or a session that was reported complete is
// not.
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
	flag.IntVar(&f.processes, "processes", 24, "hostctl processes at once")
	flag.DurationVar(&f.duration, "for", time.Minute, "how long they are disturbed")
	flag.Uint64Var(&f.seed, "seed", rand.Uint64(), "decides what is disturbed when")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := f.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// fleet is one run of this program.
type fleet struct {
	store     string
	processes int
	duration  time.Duration
	seed      uint64

	dir, hostctl, script string

	mu       sync.Mutex
	sessions map[string]*session
	figures  figures
}

func (f *fleet) run(ctx context.Context) (err error) {
	if f.processes < 1 {
		return errors.New("-processes must be 1 or more")
	}
	f.dir, err = os.MkdirTemp("", "fleet-")
	if err != nil {
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
	fmt.Printf("store %s, %d processes for %v, seed %d\n", f.store, f.processes, f.duration, f.seed)
	f.sessions = map[string]*session{}
	if err := f.disturb(ctx); err != nil {
		return err
	}
	return f.verify(ctx)
}

// prepare builds hostctl, fills its compilation cache, and writes the provider's script.
func (f *fleet) prepare(ctx context.Context) error {
	f.hostctl = filepath.Join(f.dir, "hostctl")
	build := exec.CommandContext(ctx, "go", "build", "-o", f.hostctl, "github.com/loophost/loophost/cmd/hostctl")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build hostctl: %w\n%s", err, out)
	}
	f.script = filepath.Join(f.dir, "script.json")
	if err := os.WriteFile(f.script, scripted(), 0o600); err != nil {
		return err
	}
	warm := f.command(ctx, "run", "--store", "memory:", "--provider", "scripted", "--provider-opt", "script=@"+f.script, "warm up")
	if out, err := warm.CombinedOutput(); err != nil {
		return fmt.Errorf("hostctl run: %w\n%s", err, out)
	}
	return nil
}

// disturb keeps every slot busy with one session after the other. The first error of a
// slot ends all.
func (f *fleet) disturb(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := time.Now().Add(f.duration)
	var slots sync.WaitGroup
	for i := range f.processes {
		slots.Go(func() {
			s := slot{fleet: f, n: i, random: rand.New(rand.NewPCG(f.seed, uint64(i))), end: end}
			if err := s.work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	slots.Wait()
	return context.Cause(ctx)
}
