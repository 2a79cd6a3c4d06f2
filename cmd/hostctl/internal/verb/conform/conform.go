// Package conform is hostctl conformance: does a store keep its promises?
package conform

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/conformance"
)

// reportMode is of report files.
const reportMode = 0o644

type flags struct {
	profiles []string
	match    string
	seed     uint64
	json     string
	junit    string
}

// NewCommand makes the verb.
func NewCommand(env *verb.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "conformance STORE",
		Short: "Prove that a store keeps its promises",
		Long: `Conformance runs the suite against a store and prints the report. Of fs:DIR it
works in a new folder below DIR and removes it again; of a Redis URL it works under
a prefix of its own, below which tombstones stay. The exit code is 0 when nothing
failed, else 1. A skipped core case makes the result partial, and so does a profile
of which nothing could run: cluster needs somebody who ends the node that serves the
store. The report says why.`,
		Example: "  hostctl conformance memory:\n  hostctl conformance fs:/srv --profile core --json report.json --junit report.xml",
		Args:    verb.Exactly("STORE"),
	}
	var names []string
	for _, p := range conformance.Profiles() {
		names = append(names, string(p))
	}
	cmd.Flags().StringSliceVar(&f.profiles, "profile", []string{string(conformance.ProfileCore)}, "profiles to run: "+strings.Join(names, ", "))
	cmd.Flags().StringVar(&f.match, "match", "", "only cases whose id matches this regular `EXPRESSION`")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "decides every random choice")
	cmd.Flags().StringVar(&f.json, "json", "", "write the report as JSON to `FILE`, - is stdout")
	cmd.Flags().StringVar(&f.junit, "junit", "", "write the report as JUnit XML to `FILE`, - is stdout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		options, err := f.options()
		if err != nil {
			return err
		}
		harness, done, err := newHarness(args[0])
		if err != nil {
			return err
		}
		defer done() // what is left of the folder is a temporary one
		options.Progress = progress(env)
		report, err := conformance.Check(cmd.Context(), harness, options)
		if err != nil {
			return err
		}
		return f.write(env, report)
	}
	return cmd
}

func (f flags) options() (conformance.Options, error) {
	o := conformance.Options{Seed: f.seed}
	for _, name := range f.profiles {
		known := false
		for _, p := range conformance.Profiles() {
			if string(p) == name {
				o.Profiles = append(o.Profiles, p)
				known = true
			}
		}
		if !known {
			return o, exit.Usagef("--profile %q is unknown", name)
		}
	}
	if f.json == "-" && f.junit == "-" {
		return o, exit.Usagef("--json and --junit can't both go to stdout")
	}
	if f.match != "" {
		re, err := regexp.Compile(f.match)
		if err != nil {
			return o, exit.Usagef("--match: %w", err)
		}
		o.Match = re
	}
	return o, nil
}

// progress names each case on a terminal, where somebody waits.
func progress(env *verb.Env) func(conformance.Result) {
	if !env.ErrTTY {
		return nil
	}
	return func(r conformance.Result) { env.Say("%-8s %s", r.Outcome, r.ID) }
}

func (f flags) write(env *verb.Env, report conformance.Report) error {
	if err := to(env, f.json, report.WriteJSON); err != nil {
		return err
	}
	if err := to(env, f.junit, report.WriteJUnit); err != nil {
		return err
	}
	if f.json != "-" && f.junit != "-" {
		if err := report.WriteTable(env.Out); err != nil {
			return err
		}
	}
	if report.Verdict == conformance.VerdictFailed {
		return &exit.CheckError{Text: fmt.Sprintf("the store %s does not conform: %s", report.Store.Name, report.Reason)}
	}
	return nil
}

// to writes to a file, whole or not at all, or to stdout; "" is nowhere.
func to(env *verb.Env, name string, write func(io.Writer) error) error {
	switch name {
	case "":
		return nil
	case "-":
		return write(env.Out)
	}
	file, err := renameio.NewPendingFile(name, renameio.WithPermissions(reportMode))
	if err != nil {
		return err
	}
	defer file.Cleanup() // after the replacement it has nothing to do
	if err := write(file); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}
