// Command hostctl runs bounded agent loops and looks after their sessions. This
// file connects it to the process it runs in; the rest is below internal.
package main

import (
	"context"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/term"

	"github.com/loophost/loophost/backends/redis"
	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/loader"
	"github.com/loophost/loophost/cmd/hostctl/internal/root"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/plugins/bundled"
)

func main() {
	// A reader of stdout that goes away must not kill a run: the write fails
	// instead, and what was begun ends durably.
	// It is not ignored, since what a run starts would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it stays ignored
		signal.Notify(signals, syscall.SIGHUP)
	}
	redis.SilenceClient() // what it would print is in errors too
	app := &cli.App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: terminal(os.Stdin), OutTTY: terminal(os.Stdout), ErrTTY: terminal(os.Stderr), Width: width(os.Stderr),
		Size: func() (columns, rows int) { return size(os.Stdout) }, User: userName(),
		Getenv: os.Getenv, Now: time.Now, NewID: newID, Signals: signals, Exit: leave,
	}
	library := loader.Library{Names: bundled.Names, Digest: bundled.Digest, Manifest: bundled.Manifest, Module: bundled.Module}
	leave(root.Execute(context.Background(), &verb.Env{App: app, Library: library}, os.Args[1:]))
}

func leave(code exit.Code) { os.Exit(int(code)) }

func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func width(f *os.File) int {
	columns, _ := size(f)
	return columns
}

func size(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil { // no terminal
		return 0, 0
	}
	return columns, rows
}

// userName is the system's name of the user, or the number where it has none: in a
// container, say.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid-" + strconv.Itoa(os.Getuid())
}

// newID mints a UUIDv7, so that ids sort by the time of their making.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil { // the random source failed once
		return uuid.NewString()
	}
	return id.String()
}
