package child

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// Config says what a Runner works with. Host, Scope and ID are required.
type Config struct {
	Host  *host.Host
	Scope *scope.Scope
	// ID names this start of this host: another one after each restart (T-2). 1–256 bytes.
	ID string
	// Machine names the machine to others; "": the system's host name.
	Machine string
	Logger  *slog.Logger // nil: silent
	// Require is the least durability of an artifact; zero: whatever the store reaches (S-5).
	Require store.Durability
}

// Runner runs children of one scope. It is safe for many goroutines.
type Runner struct {
	host      *host.Host
	scope     *scope.Scope
	artifacts *scope.Artifacts
	principal ticket.Principal
	machine   string
	self      *ticket.ProcessIdentity // nil where the system can't tell
	log       *slog.Logger

	mu     sync.Mutex
	closed bool
	tasks  map[*Task]struct{} // claimed and not finished
}

// New makes a runner. It touches nothing.
func New(c Config) (*Runner, error) {
	switch {
	case c.Host == nil:
		return nil, errors.New("child runner: Host is missing")
	case c.Scope == nil:
		return nil, errors.New("child runner: Scope is missing")
	case c.ID == "" || len(c.ID) > ticket.MaxIDBytes:
		return nil, fmt.Errorf("child runner: ID has %d bytes; it needs 1 to %d", len(c.ID), ticket.MaxIDBytes)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	machine, err := machineName(c.Machine)
	if err != nil {
		return nil, fmt.Errorf("child runner: %w", err)
	}
	self, err := selfIdentity(machine)
	if err != nil {
		return nil, fmt.Errorf("child runner: %w", err)
	}
	return &Runner{
		host: c.Host, scope: c.Scope, artifacts: scope.NewArtifacts(c.Host.Store(), scope.Config{Require: c.Require}),
		principal: ticket.Runtime(c.ID), machine: machine, self: self, log: c.Logger, tasks: map[*Task]struct{}{},
	}, nil
}

// Scope is the scope that the runner works for.
func (r *Runner) Scope() *scope.Scope { return r.scope }

// ErrShutdown answers Prepare once Shutdown was called.
var ErrShutdown = errors.New("the runner is shut down")

// Shutdown lets no new task begin and succeeds once every task is finished. Otherwise
// the error names those that are still alive (T-12); it may be called again.
func (r *Runner) Shutdown() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if len(r.tasks) == 0 {
		return nil
	}
	var alive []string
	for t := range r.tasks {
		alive = append(alive, t.dispatch.Assignment)
	}
	slices.Sort(alive)
	return fmt.Errorf("not finished: %s", strings.Join(alive, ", "))
}

func (r *Runner) add(t *Task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrShutdown
	}
	r.tasks[t] = struct{}{}
	return nil
}

func (r *Runner) remove(t *Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tasks, t)
}

// do gives a command as the runtime, under the operation id that its request prescribes.
func (r *Runner) do(ctx context.Context, operation string, request ticket.Request) (ticket.Receipt, error) {
	return r.scope.Do(ctx, ticket.Command{OperationID: operation, Principal: r.principal, Request: request})
}

func refuse(op, key string, kind ticket.Kind, err error, format string, args ...any) error {
	return &ticket.Error{Op: op, Key: key, Kind: kind, Detail: fmt.Sprintf(format, args...), Err: err}
}
