// Package run is hostctl run: one counted loop, followed live.
package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/backend"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/loader"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/cmd/hostctl/internal/verifier"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
)

// NewCommand makes the verb.
func NewCommand(env *verb.Env) *cobra.Command {
	var flags settings.Flags
	cmd := &cobra.Command{
		Use:   "run PROMPT",
		Short: "Run a counted loop in a session and follow it",
		Long: `Run gives the objective PROMPT to a provider K times (--iterations), with at
most R provider calls in all (--rounds), and follows the loop live. Every step is
durable before the next one begins. The session's id is the first thing printed,
on stderr; in text mode stdout gets the final answer alone.

PROMPT - reads stdin, @FILE reads a file. The first Ctrl-C lets what is admitted
finish and stops, the second cancels, the third leaves at once.`,
		Example: `  hostctl run --provider demo "Try it"
  hostctl run --provider ./my-model.wasm --iterations 3 --until 'make test' @task.md
  hostctl run --session nightly --once 2026-11-30 --provider demo --output json "Report"
  hostctl run --resume nightly --new-loop --provider demo "Go on"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("run: unexpected argument %q; a prompt of several words needs quotes", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r := runner{env: env, hints: exit.Hints{Store: backend.Shown(flags.Store)}, started: env.Now()}
			return r.run(cmd.Context(), &flags, args, cmd.Flags().Changed)
		},
	}
	flags.Register(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

// runner is one call of run.
type runner struct {
	env     *verb.Env
	hints   exit.Hints
	started time.Time

	want      settings.Run
	objective string
	demo      bool
	session   string
	plugins   *loader.Plan
	screen    *screen
}

// run reports every ending itself, once it knows the format; before that the
// caller reports the error.
func (r *runner) run(ctx context.Context, flags *settings.Flags, args []string, changed func(string) bool) error {
	if err := r.prepare(flags, args, changed); err != nil {
		if r.session == "" {
			return err
		}
		return r.env.Report(host.Result{SessionID: r.session}, err, r.hints)
	}
	r.screen = newScreen(r.env, r.want, r.demo)
	defer r.screen.close()
	r.screen.session(r.session)
	res, err := r.execute(ctx)
	if res.SessionID == "" {
		res.SessionID = r.session
	}
	res.Demo = res.Demo || r.demo
	v := exit.Of(res, err, r.hints)
	if werr := r.screen.end(res, v, r.env.Now().Sub(r.started), r.hints); werr != nil {
		read := "; read it with: " + r.hints.Command("session log", r.session, "")
		if v.Code == exit.OK {
			return fmt.Errorf("the run ended well, but its answer could not be written to stdout: %w%s", werr, read)
		}
		r.env.Say("hostctl: what the run said could not be written to stdout: %v%s", werr, read) // its ending is the exit code
	}
	if v.Code == exit.OK {
		return nil
	}
	return &verb.Reported{Code: v.Code}
}

// prepare finds out what to do and checks all that can be checked before
// anything is written (L-1).
func (r *runner) prepare(flags *settings.Flags, args []string, changed func(string) bool) error {
	prompt, err := promptOf(flags, args, changed)
	if err != nil {
		return err
	}
	file := &settings.File{}
	if flags.Config != "" {
		if file, err = settings.ReadFile(flags.Config, changed("config")); err != nil {
			return err
		}
	}
	r.want, err = settings.Resolve(settings.Source{Flags: flags, Changed: changed, Getenv: r.env.Getenv, File: file})
	r.env.Format = r.want.Output
	r.env.NoColor = r.env.NoColor || r.want.NoColor
	if err != nil {
		return err
	}
	if err := r.chooseProvider(); err != nil {
		return err
	}
	if r.objective, err = settings.Objective(prompt, r.env.In); err != nil {
		return err
	}
	if r.session = r.want.Session; r.session == "" {
		r.session = r.env.NewID()
	}
	r.plugins, err = r.env.Library.Plan(loader.Request{
		Provider: *r.want.Provider, Hooks: r.want.Hooks, Tools: r.want.Tools,
		ProviderOptions: r.want.ProviderOptions, HookOptions: r.want.HookOptions,
		Workspace: r.want.Workspace, CacheDir: r.env.CacheDir(), Logger: r.env.Logger(),
	})
	return err
}

func promptOf(flags *settings.Flags, args []string, changed func(string) bool) (string, error) {
	switch {
	case changed("prompt") && len(args) > 0:
		return "", exit.Usagef("run: the prompt is given twice, as an argument (%q) and with --prompt", args[0])
	case changed("prompt"):
		return flags.Prompt, nil
	case len(args) == 0:
		return "", exit.Usagef("run: PROMPT is missing; give a text, - for stdin, or @FILE")
	}
	return args[0], nil
}

// chooseProvider takes the demonstration on a terminal when nobody said
// anything. Elsewhere it must be asked for: a silent demo would be a false success.
func (r *runner) chooseProvider() error {
	if r.want.Provider == nil {
		if !r.env.InTTY || !r.env.OutTTY {
			return exit.Usagef("run: no provider; name one with --provider, or try --provider %s, which needs no key and no network", loader.Demo)
		}
		r.want.Provider = &settings.PluginRef{Arg: loader.Demo}
	}
	r.demo = r.want.Provider.Bundled() && r.want.Provider.Arg == loader.Demo
	return nil
}

// execute opens everything, runs the loop, and closes everything again.
func (r *runner) execute(parent context.Context) (host.Result, error) {
	control := newControl(parent, r.env.App)
	defer control.close()
	ctx := control.setup

	s, described, err := r.env.OpenStore(ctx, r.want.Store)
	if err != nil {
		return host.Result{}, err
	}
	res, err := r.withStore(ctx, control, s, described)
	if cerr := s.Close(); cerr != nil {
		r.env.Logger().Warn("closing the store failed", "error", cerr)
	}
	return res, err
}

func (r *runner) withStore(ctx context.Context, control *control, s store.Store, d store.Description) (host.Result, error) {
	if !d.Durability.Reaches(r.want.Durability) {
		return host.Result{}, &store.Error{
			Op: "open", Kind: store.ErrNotDurable,
			Detail: fmt.Sprintf("the store %s promises %s and --durability asks for %s; nothing was written", d.Location, d.Durability, r.want.Durability),
		}
	}
	h, err := host.New(host.Config{Store: s, Logger: r.env.Logger()})
	if err != nil {
		return host.Result{}, err
	}
	if r.want.Once != "" {
		if res, ended, err := h.Once(ctx, r.session, r.want.Once); err != nil || ended {
			return res, err
		}
	}
	r.screen.plan(d, r.want, r.plugins) // before the plugins: compiling them the first time takes a while
	plugins, err := r.plugins.Load(ctx)
	if err != nil {
		return host.Result{}, err
	}
	res, err := r.loop(ctx, control, h, plugins)
	if cerr := plugins.Close(context.WithoutCancel(ctx)); cerr != nil {
		r.env.Logger().Warn("closing the plugins failed", "error", cerr)
	}
	return res, err
}

func (r *runner) spec(plugins *loader.Set) host.RunSpec {
	spec := host.RunSpec{
		Objective: r.objective, Iterations: r.want.Iterations, Rounds: r.want.Rounds,
		NewLoop: r.want.NewLoop, OnceKey: r.want.Once,
		Provider: plugins.Provider, Model: r.want.Model, System: r.want.System, Demo: r.demo,
		Hooks: plugins.Hooks, Tools: plugins.Tools,
		MaxTokensTotal: r.want.MaxTokensTotal, Timeout: r.want.Timeout, DrainTimeout: r.want.DrainTimeout, MaxWait: r.want.Wait,
		Durability: r.want.Durability, Observer: r.screen.observe,
	}
	if r.want.Until != "" {
		spec.Verifier = verifier.Command{Line: r.want.Until}
	}
	return spec
}

func (r *runner) loop(ctx context.Context, control *control, h *host.Host, plugins *loader.Set) (host.Result, error) {
	spec := r.spec(plugins)
	if err := spec.Validate(); err != nil {
		return host.Result{}, &exit.UsageError{Text: err.Error(), Err: err}
	}
	session, err := h.Open(ctx, host.OpenRequest{ID: r.session, MustExist: r.want.MustExist})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return host.Result{}, err
	}
	// From here on a signal is the session's: it drains, or is cancelled, durably.
	durable := context.WithoutCancel(ctx)
	defer func() {
		if cerr := session.Close(durable); cerr != nil {
			r.env.Logger().Warn("the session could not be released; it is free when this process has ended", "session_id", r.session, "error", cerr)
		}
	}()
	if !control.attach(session) {
		return host.Result{}, exit.ErrInterrupted
	}
	res, err := session.Run(durable, spec)
	return r.settle(durable, session, res, err)
}

// settleTimeout bounds the second try to write an ending.
const settleTimeout = 10 * time.Second

// settle tries once more to make the store equal to memory, where the run could
// not (L-20).
func (r *runner) settle(ctx context.Context, session *host.Session, res host.Result, err error) (host.Result, error) {
	var failed *host.CheckpointError
	if !errors.As(err, &failed) || !failed.Unknown {
		return res, err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	switch again := session.Checkpoint(ctx); {
	case host.IsFenced(again): // somebody else's session now, and their state stands
		return res, again
	case again != nil:
		return res, err
	}
	known := *failed
	known.Unknown = false
	res.Revision = session.Snapshot().Mark.Revision
	return res, &known
}

// planned says what the run is about to do, for people.
func planned(want settings.Run, plugins *loader.Plan) string {
	plural := func(n int64, word string) string {
		if n == 1 {
			return "1 " + word
		}
		return fmt.Sprintf("%d %ss", n, word)
	}
	s := plural(want.Iterations, "iteration") + ", at most " + plural(want.Rounds, "round")
	if want.RoundsDefault {
		s += " (default)"
	}
	s += ", " + plugins.Summary()
	if want.Model != "" {
		s += ", model " + want.Model
	}
	return s
}
