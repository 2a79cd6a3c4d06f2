// Package settings decides what a run does, from four places: the command line,
// the environment, a project's file, and defaults, the earlier one winning. A
// project's file only requests: what it wants executed or granted has to be
// named on the command line as well.
package settings

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
)

// Flags are run's flags as they were parsed.
type Flags struct {
	Prompt         string
	Session        string
	Resume         string
	Store          string
	Provider       string
	Model          string
	Hooks          []string
	Tools          []string
	Iterations     int64
	Rounds         int64
	MaxTokensTotal uint64
	Timeout        time.Duration
	DrainTimeout   time.Duration
	Wait           time.Duration
	Until          string
	Config         string
	System         string
	Output         *cli.FormatFlag
	Quiet          bool
	NewLoop        bool
	Once           string
	Workspace      string
	HookOpts       []string
	ProviderOpts   []string
	Durability     string
}

// DefaultConfig is the project's file that is read if it is there.
const DefaultConfig = "loophost.yaml"

// aliases are names of flags that people know from other agents.
var aliases = map[string]string{
	"max-turns":      "rounds",
	"max-iterations": "iterations",
	"output-format":  "output",
}

// Alias maps a flag's other names to its own.
func Alias(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if own, ok := aliases[name]; ok {
		name = own
	}
	return pflag.NormalizedName(name)
}

// Register adds run's flags to fs.
func (f *Flags) Register(fs *pflag.FlagSet) {
	fs.SetNormalizeFunc(Alias)
	fs.StringVarP(&f.Prompt, "prompt", "p", "", "the objective, instead of the argument; - reads stdin, @FILE a file")
	fs.StringVar(&f.Session, "session", "", "session `ID`, created if it is not there (default: a new UUIDv7)")
	fs.StringVarP(&f.Resume, "resume", "r", "", "session `ID` that must exist")
	f.RegisterAgent(fs)
	fs.BoolVar(&f.NewLoop, "new-loop", false, "start a new loop where an earlier run died in the middle")
	fs.StringVar(&f.Once, "once", "", "report a loop that ended under this `KEY` again instead of running it again; needs --session")
}

// RegisterAgent adds the flags that say what an agent is, whatever its objective and
// session are.
func (f *Flags) RegisterAgent(fs *pflag.FlagSet) {
	f.Output = cli.NewFormat(cli.Text, cli.JSON, cli.JSONL)
	fs.SetNormalizeFunc(Alias)
	fs.StringVar(&f.Store, "store", "", "store `URL`: fs:, fs:/path, memory: or redis://host (default: fs:, in your state folder; LOOPHOST_STORE)")
	fs.StringVar(&f.Provider, "provider", "", "provider plugin: a bundled `NAME` or the path of a .wasm; demo needs no key and no network")
	fs.StringVarP(&f.Model, "model", "m", "", "`MODEL` name, or PROVIDER/MODEL")
	fs.StringArrayVar(&f.Hooks, "hook", nil, "hook plugin: a bundled NAME or the `PATH` of a .wasm (repeatable)")
	fs.StringArrayVar(&f.Tools, "tool", nil, "tool plugin: a bundled NAME or the `PATH` of a .wasm (repeatable)")
	fs.Int64Var(&f.Iterations, "iterations", 1, "how often the objective is given, 1 to 100")
	fs.Int64Var(&f.Rounds, "rounds", 0, "most provider calls in all, 1 to 1000 (default: 5 an iteration, at least 20)")
	fs.Uint64Var(&f.MaxTokensTotal, "max-tokens-total", 0, "most tokens in all, input and output together (default: no limit)")
	fs.DurationVar(&f.Timeout, "timeout", 0, "most wall time of the run (default: no limit)")
	fs.DurationVar(&f.DrainTimeout, "drain-timeout", 25*time.Second, "most time for what is admitted to finish after a stop; then it is cancelled")
	fs.DurationVar(&f.Wait, "wait", 10*time.Minute, "longest wait for a provider's rate limit")
	fs.StringVar(&f.Until, "until", "", "verifier `COMMAND`, run by sh -c after each iteration; exit 0 means that the goal is met")
	fs.StringVar(&f.Config, "config", DefaultConfig, "project `FILE` with values for these flags; the default is read if present, \"\" reads none")
	fs.StringVar(&f.System, "system", "", "system prompt, `TEXT` or @FILE")
	fs.VarP(f.Output, "output", "o", "what stdout gets")
	fs.BoolVarP(&f.Quiet, "quiet", "q", false, "print no progress, only errors and the answer")
	fs.StringVar(&f.Workspace, "workspace", "", "`DIR` that tools may touch")
	fs.StringArrayVar(&f.HookOpts, "hook-opt", nil, "`NAME.KEY=VALUE` for a hook or tool; VALUE may be JSON or @FILE (repeatable)")
	fs.StringArrayVar(&f.ProviderOpts, "provider-opt", nil, "`KEY=VALUE` for the provider; VALUE may be JSON or @FILE (repeatable)")
	fs.StringVar(&f.Durability, "durability", "", "least durability of every commit: memory, process or power, +N for replicas (default: what the store promises)")
}
