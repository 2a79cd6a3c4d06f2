package settings

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
)

// Run is what a run does.
type Run struct {
	Session   string // "": a new one
	MustExist bool
	Store     string // URL; "": the default store

	Provider        *PluginRef // nil: nobody said
	Model           string
	System          string
	ProviderOptions Options
	Hooks, Tools    []PluginRef
	HookOptions     map[string]Options // by plugin name, hooks and tools
	Workspace       string             // "": none granted

	Iterations, Rounds int64
	RoundsDefault      bool // nobody said; Rounds is the default
	MaxTokensTotal     uint64
	Timeout            time.Duration
	DrainTimeout, Wait time.Duration
	Until              string
	NewLoop            bool
	Once               string
	Durability         store.Durability // zero: what the store promises

	Output  cli.Format
	Quiet   bool
	NoColor bool
}

// Source is what Resolve decides from.
type Source struct {
	Flags   *Flags
	Changed func(flag string) bool // whether a flag was given on the command line
	Getenv  func(string) string
	File    *File // never nil; empty: no project file
}

// Resolve puts the four places together. Errors: *exit.UsageError, *loop.BoundsError
// for K and R, and *exit.NotApprovedError for what the file requests and the
// command line does not name.
func Resolve(s Source) (Run, error) {
	r := Run{NewLoop: s.Flags.NewLoop, Once: s.Flags.Once}
	for _, step := range []func(*Run) error{s.output, s.session, s.bounds, s.limits, s.plugins, s.options, s.texts, s.approval} {
		if err := step(&r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// pick is the flag if it was given, else the file's value if it has one, else the flag's default.
func pick[T any](s Source, flag string, given T, file *T) T {
	if !s.Changed(flag) && file != nil {
		return *file
	}
	return given
}

func (s Source) output(r *Run) error {
	r.Output = s.Flags.Output.Value
	if s.File.Output != nil && !s.Changed("output") {
		f := cli.NewFormat(s.Flags.Output.Allowed...)
		if err := f.Set(*s.File.Output); err != nil {
			return exit.Usagef("config file %s: output %q: %w", s.File.path, *s.File.Output, err)
		}
		r.Output = f.Value
	}
	r.Quiet = pick(s, "quiet", s.Flags.Quiet, s.File.Quiet)
	r.NoColor = s.File.NoColor != nil && *s.File.NoColor
	return nil
}

func (s Source) session(r *Run) error {
	switch {
	case s.Changed("session") && s.Changed("resume"):
		return exit.Usagef("--session and --resume name the same thing; give one of them")
	case s.Changed("resume"):
		r.Session, r.MustExist = s.Flags.Resume, true
	case s.Changed("session"):
		r.Session = s.Flags.Session
	}
	if s.Changed("session") || s.Changed("resume") {
		if err := store.SessionKey(r.Session).Validate(); err != nil {
			return err
		}
	}
	if s.Changed("once") {
		switch {
		case r.Session == "":
			return exit.Usagef("--once needs --session ID: the key is remembered in the session")
		case r.Once == "":
			return exit.Usagef("--once: the key is empty")
		}
	}
	if s.Changed("new-loop") && r.Session == "" {
		return exit.Usagef("--new-loop needs --session ID or --resume ID: a new session starts a new loop anyway")
	}
	r.Store = s.Flags.Store
	if !s.Changed("store") {
		if url := s.Getenv("LOOPHOST_STORE"); url != "" {
			r.Store = url
		} else if s.File.Store != nil {
			r.Store = *s.File.Store
		}
	}
	return nil
}

func (s Source) bounds(r *Run) error {
	r.Iterations = pick(s, "iterations", s.Flags.Iterations, s.File.Iterations)
	r.Rounds = pick(s, "rounds", s.Flags.Rounds, s.File.Rounds)
	if !s.Changed("rounds") && s.File.Rounds == nil {
		r.RoundsDefault = true
		r.Rounds = max(20, 5*min(r.Iterations, loop.MaxIterations))
	}
	const anyObjective = "x" // the objective is checked with the rest, before anything is touched
	return loop.CheckBounds(anyObjective, r.Iterations, r.Rounds)
}

func (s Source) limits(r *Run) error {
	r.MaxTokensTotal = pick(s, "max-tokens-total", s.Flags.MaxTokensTotal, s.File.MaxTokensTotal)
	for _, d := range []struct {
		flag  string
		given time.Duration
		file  *string
		out   *time.Duration
	}{
		{"timeout", s.Flags.Timeout, s.File.Timeout, &r.Timeout},
		{"drain-timeout", s.Flags.DrainTimeout, s.File.DrainTimeout, &r.DrainTimeout},
		{"wait", s.Flags.Wait, s.File.Wait, &r.Wait},
	} {
		*d.out = d.given
		if !s.Changed(d.flag) && d.file != nil {
			parsed, err := time.ParseDuration(*d.file)
			if err != nil {
				return exit.Usagef("config file %s: %s %q is no duration; write 90s, 10m or 1h30m", s.File.path, d.flag, *d.file)
			}
			*d.out = parsed
		}
		if *d.out < 0 {
			return exit.Usagef("%s is %s; it can't be negative", d.flag, *d.out)
		}
	}
	// Zero asks for no patience at all; to the host zero means its default.
	r.DrainTimeout, r.Wait = max(r.DrainTimeout, 1), max(r.Wait, 1)
	text := pick(s, "durability", s.Flags.Durability, s.File.Durability)
	if text != "" {
		d, err := ParseDurability(text)
		if err != nil {
			return err
		}
		r.Durability = d
	}
	return nil
}

func (s Source) plugins(r *Run) error {
	model := pick(s, "model", s.Flags.Model, s.File.Model)
	provider := pick(s, "provider", s.Flags.Provider, s.File.Provider)
	resolve := absolute
	if !s.Changed("provider") && s.File.Provider != nil {
		resolve = s.File.resolve
	}
	if before, after, ok := strings.Cut(model, "/"); ok && provider == "" {
		provider, model = before, after
	}
	if s.Changed("provider") && provider == "" {
		return exit.Usagef("--provider is empty; name a bundled plugin or the path of a .wasm")
	}
	if provider != "" {
		p := ref(provider, resolve)
		r.Provider = &p
	}
	r.Model = model
	// A project's hooks guard the run: more of them on the command line add to
	// them, and don't take their place.
	r.Hooks = merge(refs(s.File.Hooks, s.File.resolve), refs(s.Flags.Hooks, absolute))
	r.Tools = merge(refs(s.File.Tools, s.File.resolve), refs(s.Flags.Tools, absolute))
	r.Workspace = s.Flags.Workspace
	if s.Changed("workspace") && r.Workspace == "" {
		return exit.Usagef("--workspace is empty; name a folder")
	}
	return nil
}

func merge(a, b []PluginRef) []PluginRef {
	for _, p := range b {
		if !contains(a, p) {
			a = append(a, p)
		}
	}
	return a
}

func (s Source) options(r *Run) error {
	r.ProviderOptions = Options{}
	for _, arg := range s.Flags.ProviderOpts {
		if err := r.ProviderOptions.set("provider-opt", arg); err != nil {
			return err
		}
	}
	// The file's options are for the file's provider.
	if !s.Changed("provider") || s.File.Provider == nil || *s.File.Provider == s.Flags.Provider {
		if err := r.ProviderOptions.fill(s.File, "provider-opt", s.File.ProviderOpts); err != nil {
			return err
		}
	}
	var err error
	if r.HookOptions, err = hookOptions(s.Flags.HookOpts); err != nil {
		return err
	}
	for name, values := range s.File.HookOpts {
		if r.HookOptions[name] == nil {
			r.HookOptions[name] = Options{}
		}
		if err := r.HookOptions[name].fill(s.File, "hook-opt."+name, values); err != nil {
			return err
		}
	}
	return nil
}

func (s Source) texts(r *Run) error {
	var err error
	switch {
	case s.Changed("system"):
		r.System = s.Flags.System
		if path, ok := strings.CutPrefix(r.System, "@"); ok {
			data, rerr := readBounded(path, MaxValueBytes)
			if rerr != nil {
				return exit.Usagef("--system: %w", rerr)
			}
			r.System = string(data)
		}
	case s.File.System != nil:
		if r.System, err = s.File.value(*s.File.System); err != nil {
			return exit.Usagef("config file %s: system: %w", s.File.path, err)
		}
	}
	for _, t := range []struct{ flag, text string }{{"system", r.System}, {"model", r.Model}} {
		if !utf8.ValidString(t.text) { // it goes to the provider in JSON
			return exit.Usagef("%s: %w", t.flag, errNotUTF8)
		}
	}
	r.Until = pick(s, "until", s.Flags.Until, s.File.Until)
	if s.Changed("until") && strings.TrimSpace(r.Until) == "" {
		return exit.Usagef("--until is empty; give a command")
	}
	return nil
}

// approval refuses what the file requests and the command line does not name.
func (s Source) approval(*Run) error {
	var wants []string
	want := func(flag, arg string) { wants = append(wants, "--"+flag+" "+exit.Quote(arg)) }
	if p := s.File.Provider; p != nil && IsPath(*p) && !s.Changed("provider") {
		want("provider", s.File.resolve(*p))
	}
	named := merge(refs(s.Flags.Hooks, absolute), refs(s.Flags.Tools, absolute))
	for _, l := range []struct {
		flag string
		args []string
	}{{"hook", s.File.Hooks}, {"tool", s.File.Tools}} {
		for _, p := range refs(l.args, s.File.resolve) {
			if !p.Bundled() && !contains(named, p) {
				want(l.flag, p.Path)
			}
		}
	}
	if s.File.Until != nil && !s.Changed("until") {
		want("until", *s.File.Until)
	}
	if s.File.Workspace != nil && !s.Changed("workspace") {
		want("workspace", s.File.resolve(*s.File.Workspace))
	}
	if len(wants) > 0 {
		return &exit.NotApprovedError{File: s.File.path, Wants: wants}
	}
	return nil
}
