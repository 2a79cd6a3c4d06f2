// Package worker is hostctl worker: it does the tickets of a scope.
package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/loader"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/cmd/hostctl/internal/verifier"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/child"
	"github.com/loophost/loophost/host/dispatch"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket/scope"
)

// flags are the worker's own, beside those of the agent.
type flags struct {
	agent       settings.Flags
	scope       string
	concurrency int
	once        bool
	accept      bool
	start       bool
	coordinate  bool
	exec        string
	lease       time.Duration
	sweep       time.Duration
}

// NewCommand makes the verb. It handles signals itself.
func NewCommand(env *verb.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Do the tickets of a scope, beside any number of other workers",
		Long: `Worker takes dispatches from the scope's work queue, runs each as a child session,
proves that it stopped and submits its result. Any number of workers, on one machine
over fs: and on many over redis://, share a scope; one of them at a time coordinates
it: it starts tickets that are ready and whose dependencies are accepted, and gives up
attempts whose worker is gone.

The agent is a provider with hooks and tools, as of hostctl run, or a program of
yours (--exec), which gets the assignment on its standard input and answers on its
standard output with exit 0. A program runs with your full rights, in a process group
of its own; all of the group is ended before its stop is recorded (Linux only).

The first Ctrl-C or SIGTERM takes no more dispatches and lets running children finish
(--drain-timeout), the second cancels them, the third leaves at once.`,
		Example: `  hostctl worker --provider demo --accept
  hostctl worker --store redis://queue:6379 --scope nightly --concurrency 4 --provider ./my-model.wasm
  hostctl worker --exec './agent.sh' --once`,
		Args: verb.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := &runner{env: env, flags: &f}
			if err := w.prepare(cmd.Flags().Changed); err != nil {
				return err
			}
			return w.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	verb.ScopeFlag(fs, &f.scope)
	fs.IntVar(&f.concurrency, "concurrency", 1, "how many children run at once, 1 to 1000")
	fs.BoolVar(&f.once, "once", false, "end when nothing is left that this worker can do")
	fs.BoolVar(&f.accept, "accept", false, "accept results whose contract asks for no user's acceptance")
	fs.BoolVar(&f.start, "start", true, "start tickets that are ready as soon as their dependencies are accepted")
	fs.BoolVar(&f.coordinate, "coordinate", true, "coordinate the scope when nobody else does")
	fs.StringVar(&f.exec, "exec", "", "agent `COMMAND`, run by sh -c for each assignment, instead of a provider")
	fs.DurationVar(&f.lease, "lease", store.DefaultTTL, "how long this worker may be silent before others take it for gone, 1s to 1h")
	fs.DurationVar(&f.sweep, "sweep", dispatch.DefaultSweep, "how often to look for what dead workers left behind, 100ms to 1h")
	f.agent.RegisterAgent(fs)
	fs.SortFlags = false
	return cmd
}

// runner is one call of worker.
type runner struct {
	env     *verb.Env
	flags   *flags
	want    settings.Run
	plugins *loader.Plan
	screen  *screen
}

// prepare checks all that can be checked before anything is touched.
func (r *runner) prepare(changed func(string) bool) error {
	f := r.flags
	file := &settings.File{}
	var err error
	if f.agent.Config != "" {
		if file, err = settings.ReadFile(f.agent.Config, changed("config")); err != nil {
			return err
		}
	}
	agents := func(flag string) bool { return flag != "once" && changed(flag) } // the worker's own --once is no key
	r.want, err = settings.Resolve(settings.Source{Flags: &f.agent, Changed: agents, Getenv: r.env.Getenv, File: file})
	r.env.Format = r.want.Output
	r.env.NoColor = r.env.NoColor || r.want.NoColor
	if err != nil {
		return err
	}
	f.scope = r.env.ScopeID(f.scope)
	switch {
	case f.concurrency < 1 || f.concurrency > 1000:
		return exit.Usagef("--concurrency is %d; it must be 1 to 1000", f.concurrency)
	case f.lease < time.Second || f.lease > time.Hour:
		return exit.Usagef("--lease is %s; it must be 1s to 1h", f.lease)
	case f.sweep < 100*time.Millisecond || f.sweep > time.Hour:
		return exit.Usagef("--sweep is %s; it must be 100ms to 1h", f.sweep)
	case changed("exec") && strings.TrimSpace(f.exec) == "":
		return exit.Usagef("--exec is empty; give a command")
	case f.exec != "" && changed("provider"):
		return exit.Usagef("--exec and --provider are two agents; give one of them")
	case f.exec == "" && r.want.Provider == nil:
		return exit.Usagef("worker: no agent; name a provider with --provider, or a program with --exec; --provider %s needs no key and no network", loader.Demo)
	}
	if f.exec != "" {
		return nil
	}
	r.plugins, err = r.env.Library.Plan(loader.Request{
		Provider: *r.want.Provider, Hooks: r.want.Hooks, Tools: r.want.Tools,
		ProviderOptions: r.want.ProviderOptions, HookOptions: r.want.HookOptions,
		Workspace: r.want.Workspace, CacheDir: r.env.CacheDir(), Logger: r.env.Logger(),
	})
	return err
}

// run opens everything, works, and closes everything again.
func (r *runner) run(parent context.Context) error {
	control := newControl(parent, r.env.App, r.want.DrainTimeout)
	defer control.close()
	r.screen = newScreen(r.env, r.want)
	st, d, err := r.env.OpenStore(control.take, r.want.Store)
	if err != nil {
		return err
	}
	err = r.withStore(control, st, d)
	if cerr := st.Close(); cerr != nil {
		r.env.Logger().Warn("closing the store failed", "error", cerr)
	}
	return errors.Join(err, r.screen.end(err))
}

func (r *runner) withStore(control *control, st store.Store, d store.Description) error {
	queue, ok := st.(store.Queue)
	if !ok {
		return &store.Error{Op: "open", Kind: store.ErrUnsupported, Detail: fmt.Sprintf("the store %s offers no work queue; use fs: or redis://", d.Location)}
	}
	if !d.Durability.Reaches(r.want.Durability) {
		return &store.Error{
			Op: "open", Kind: store.ErrNotDurable,
			Detail: fmt.Sprintf("the store %s promises %s and --durability asks for %s; nothing was written", d.Location, d.Durability, r.want.Durability),
		}
	}
	sc, err := r.openScope(control.take, st)
	if err != nil {
		return err
	}
	defer sc.Close()
	work, closeWork, err := r.work(control.take)
	if err != nil {
		return err
	}
	defer closeWork()
	return r.serve(control, st, queue, sc, work)
}

// openScope opens the scope as it is bound. One that is not there yet is waited for,
// unless the worker is to end when there is nothing to do.
func (r *runner) openScope(ctx context.Context, st store.Store) (*scope.Scope, error) {
	cfg := scope.Config{Logger: r.env.Logger(), Require: r.want.Durability}
	said := false
	for {
		b, err := verb.BindingOf(ctx, st, r.flags.scope)
		if err == nil {
			return scope.Open(ctx, st, b, cfg)
		}
		if !errors.Is(err, store.ErrNotFound) || r.flags.once {
			return nil, err
		}
		if !said {
			said = true
			r.screen.say("waiting for the scope %q: nobody has made a ticket in it yet", r.flags.scope)
		}
		if !wait(ctx, r.flags.sweep) {
			return nil, context.Cause(ctx)
		}
	}
}

// work is what each child does, and how to end it.
func (r *runner) work(ctx context.Context) (child.Work, func(), error) {
	if r.flags.exec != "" {
		return child.Command{Argv: []string{"sh", "-c", r.flags.exec}, Timeout: r.want.Timeout}, func() {}, nil
	}
	set, err := r.plugins.Load(ctx)
	if err != nil {
		return nil, nil, err
	}
	spec := host.RunSpec{
		Iterations: r.want.Iterations, Rounds: r.want.Rounds,
		Provider: set.Provider, Model: r.want.Model, System: r.want.System, Hooks: set.Hooks, Tools: set.Tools,
		Demo:           r.want.Provider.Bundled() && r.want.Provider.Arg == loader.Demo,
		MaxTokensTotal: r.want.MaxTokensTotal, Timeout: r.want.Timeout, DrainTimeout: r.want.DrainTimeout, MaxWait: r.want.Wait,
		Durability: r.want.Durability,
	}
	if r.want.Until != "" {
		spec.Verifier = verifier.Command{Line: r.want.Until}
	}
	return child.Local{Spec: spec}, func() {
		if err := set.Close(context.WithoutCancel(ctx)); err != nil {
			r.env.Logger().Warn("closing the plugins failed", "error", err)
		}
	}, nil
}

// name is this worker for people: where it runs, and as what.
func name() string {
	machine, err := os.Hostname()
	if err != nil {
		machine = "?"
	}
	return fmt.Sprintf("%s:%d", machine, os.Getpid())
}

func (r *runner) serve(control *control, st store.Store, queue store.Queue, sc *scope.Scope, work child.Work) error {
	me := name()
	h, err := host.New(host.Config{Store: st, Owner: me, Logger: r.env.Logger(), LeaseTTL: r.flags.lease, RenewEvery: r.flags.lease / 3})
	if err != nil {
		return err
	}
	// Every start is another id (T-2), for the worker another than for the coordinator:
	// that the role changes hands says nothing of its children.
	id := me + ":" + uuid.NewString()
	children, err := child.New(child.Config{Host: h, Scope: sc, ID: id + "/worker", Logger: r.env.Logger(), Require: r.want.Durability})
	if err != nil {
		return err
	}
	c := dispatch.NewCoordinator(dispatch.CoordinatorConfig{
		Scope: sc, Store: st, Queue: queue, Runner: children, ID: id + "/coordinator", Logger: r.env.Logger(),
		Policy: dispatch.Policy{Start: r.flags.start, Accept: r.flags.accept}, TTL: r.flags.lease, Sweep: r.flags.sweep,
	})
	w := dispatch.NewWorker(dispatch.WorkerConfig{
		Scope: sc, Store: st, Queue: queue, Runner: children, Work: work, Name: me, Logger: r.env.Logger(),
		Slots: r.flags.concurrency, TTL: r.flags.lease, Sweep: r.flags.sweep, Report: r.screen.done,
	})
	r.screen.ready(sc.Binding(), me, r.flags.concurrency)
	return r.together(control, sc, c, w)
}

// wait waits for d; false: ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
