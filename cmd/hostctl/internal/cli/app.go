// Package cli is what every verb is given: streams, environment, clock, signals.
// Nothing below it reads os.Std*, os.Getenv or time.Now.
package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
)

// App is the world of one call of the command.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// InTTY, OutTTY and ErrTTY say which streams are terminals.
	InTTY, OutTTY, ErrTTY bool
	Width                 int // columns of the terminal; 0: not known
	// Size measures the terminal that stdout is, in columns and rows; 0: not known. nil: never known.
	Size   func() (columns, rows int)
	Getenv func(string) string
	User   string // the system's name of who runs the command; "": not known
	Now    func() time.Time
	NewID  func() string // of new sessions: UUIDv7
	// Signals brings SIGINT, SIGTERM and SIGHUP.
	Signals <-chan os.Signal
	// Exit leaves the process at once, when a person insists.
	Exit func(exit.Code)
	// NoColor is --no-color; see Color.
	NoColor bool
	// Format is the output format in force, once it is known.
	Format Format
}

// Color reports whether output to stderr may be coloured: a terminal that can,
// and nobody said no (https://no-color.org).
func (a *App) Color() bool {
	return a.ErrTTY && !a.NoColor && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
}

// StateDir is the user's state folder of this program, "" where none is known.
func (a *App) StateDir() string { return a.userDir("XDG_STATE_HOME", ".local", "state") }

// CacheDir is the user's cache folder of this program, "" where none is known.
func (a *App) CacheDir() string { return a.userDir("XDG_CACHE_HOME", ".cache") }

func (a *App) userDir(variable string, below ...string) string {
	if dir := a.Getenv(variable); filepath.IsAbs(dir) { // the base directory rules ignore relative ones
		return filepath.Join(dir, "loophost")
	}
	home := a.Getenv("HOME")
	if home == "" {
		return ""
	}
	return filepath.Join(append(append([]string{home}, below...), "loophost")...)
}

// Interruptible gives a context that the first signal ends; the second leaves
// the process. It is for every verb but run, which drains. Call done when finished.
func (a *App) Interruptible(parent context.Context) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-quit:
				return
			case <-a.Signals:
				if ctx.Err() != nil {
					a.Exit(exit.Interrupted)
					return
				}
				cancel(exit.ErrInterrupted)
			}
		}
	}()
	return ctx, func() {
		close(quit)
		<-gone
		cancel(nil)
	}
}
