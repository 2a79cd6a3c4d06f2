package root

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/loader"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
)

// world is an environment without a process around it.
func world(t *testing.T) (env *verb.Env, out, errs *bytes.Buffer) {
	t.Helper()
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	app := &cli.App{
		In: strings.NewReader(""), Out: out, Err: errs, Getenv: func(string) string { return "" }, Now: time.Now,
		NewID: func() string { return "id" }, Signals: make(chan os.Signal),
		Exit: func(c exit.Code) { t.Errorf("left with %d", c) },
	}
	none := loader.Library{Names: func() []string { return nil }, Module: func(string) ([]byte, error) { return nil, os.ErrNotExist }}
	return &verb.Env{App: app, Library: none}, out, errs
}

func TestWhoAskedForAnObjectGetsOne(t *testing.T) {
	cases := []struct {
		name   string
		args   []string
		object bool
	}{
		{"json before the mistake", []string{"run", "--output", "json", "--nope"}, true},
		{"json behind the mistake", []string{"run", "--nope", "--output", "json"}, true},
		{"json with an equals sign", []string{"run", "--nope", "--output=json"}, true},
		{"json by its short name", []string{"run", "--nope", "-o", "json"}, true},
		{"stream-json by its other name", []string{"run", "--nope", "--output-format", "stream-json"}, true},
		{"text", []string{"run", "--nope", "--output", "text"}, false},
		{"the last one counts", []string{"run", "--nope", "--output", "json", "--output", "text"}, false},
		{"behind -- it is an argument", []string{"run", "--nope", "--", "--output", "json"}, false},
		{"a format that there isn't", []string{"run", "--output", "yaml"}, false},
		{"a verb without that format", []string{"session", "show", "--output", "jsonl"}, false},
		{"a session verb", []string{"session", "show", "--output", "json"}, true},
		{"a verb where -o is a file", []string{"plugin", "build", "-o", "json"}, false},
		{"too many arguments", []string{"run", "--output", "json", "a", "b"}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env, out, errs := world(t)
			if code := Execute(t.Context(), env, c.args); code != exit.Usage {
				t.Errorf("got code %d, want %d", code, exit.Usage)
			}
			var object struct {
				Outcome  string `json:"outcome"`
				ExitCode int    `json:"exit_code"`
			}
			err := json.Unmarshal(out.Bytes(), &object)
			if (err == nil) != c.object || c.object && (object.Outcome != "usage_error" || object.ExitCode != 2) {
				t.Errorf("stdout is %q; want an object: %v", out, c.object)
			}
			if !strings.HasPrefix(errs.String(), "hostctl: ") {
				t.Errorf("stderr is %q; want a message", errs)
			}
		})
	}
}

// TestEveryVerbHasHelp keeps the house rule: a short line, and an example.
func TestEveryVerbHasHelp(t *testing.T) {
	env, _, _ := world(t)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "completion" || c.Name() == "help" {
			return
		}
		if c.Short == "" {
			t.Errorf("%s has no short help", c.CommandPath())
		}
		if !c.HasSubCommands() && c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(NewCommand(env))
}

// TestRunHasTheFlagsOfTheContract names every flag of run; a new one belongs here and in the guide.
func TestRunHasTheFlagsOfTheContract(t *testing.T) {
	env, _, _ := world(t)
	run, _, err := NewCommand(env).Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`session store provider model hook tool iterations rounds max-tokens-total timeout drain-timeout
		wait until config system output quiet no-color prompt max-turns max-iterations output-format resume new-loop once workspace
		hook-opt provider-opt durability`) {
		if run.Flags().Lookup(name) == nil && run.InheritedFlags().Lookup(name) == nil {
			t.Errorf("--%s is missing", name)
		}
	}
	for _, short := range []string{"p", "m", "r"} {
		if run.Flags().ShorthandLookup(short) == nil {
			t.Errorf("-%s is missing", short)
		}
	}
}
