package settings

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
)

// resolve runs Resolve on a command line, an environment and a file's content.
func resolve(t *testing.T, args []string, env map[string]string, file string) (Run, error) {
	t.Helper()
	var f Flags
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, DefaultConfig)
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prompt.txt", "script.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"from":"`+name+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := ReadFile(path, true)
	if err != nil {
		return Run{}, err
	}
	return Resolve(Source{Flags: &f, Changed: fs.Changed, Getenv: func(name string) string { return env[name] }, File: parsed})
}

func TestPrecedence(t *testing.T) {
	env := map[string]string{"LOOPHOST_STORE": "fs:/env"}
	cases := []struct {
		name string
		args []string
		env  map[string]string
		file string
		got  func(Run) any
		want any
	}{
		{"a flag wins over environment and file", []string{"--store", "fs:/flag"}, env, "store: fs:/file", func(r Run) any { return r.Store }, "fs:/flag"},
		{"the environment wins over the file", nil, env, "store: fs:/file", func(r Run) any { return r.Store }, "fs:/env"},
		{"the file wins over the default", nil, nil, "store: fs:/file", func(r Run) any { return r.Store }, "fs:/file"},
		{"the default store is unnamed", nil, nil, "", func(r Run) any { return r.Store }, ""},
		{"iterations of a flag", []string{"--iterations", "2"}, nil, "iterations: 3", func(r Run) any { return r.Iterations }, int64(2)},
		{"iterations of the file", nil, nil, "iterations: 3", func(r Run) any { return r.Iterations }, int64(3)},
		{"one iteration by default", nil, nil, "", func(r Run) any { return r.Iterations }, int64(1)},
		{"a flag with its default's value wins too", []string{"--iterations", "1"}, nil, "iterations: 3", func(r Run) any { return r.Iterations }, int64(1)},
		{"20 rounds by default", nil, nil, "", func(r Run) any { return [2]any{r.Rounds, r.RoundsDefault} }, [2]any{int64(20), true}},
		{"five rounds an iteration from the fifth on", nil, nil, "iterations: 7", func(r Run) any { return r.Rounds }, int64(35)},
		{"rounds of the file are no default", nil, nil, "rounds: 20", func(r Run) any { return [2]any{r.Rounds, r.RoundsDefault} }, [2]any{int64(20), false}},
		{"max-turns is rounds", []string{"--max-turns", "4"}, nil, "rounds: 9", func(r Run) any { return r.Rounds }, int64(4)},
		{"max-iterations is iterations", []string{"--max-iterations", "4"}, nil, "", func(r Run) any { return r.Iterations }, int64(4)},
		{"output-format stream-json is jsonl", []string{"--output-format", "stream-json"}, nil, "output: json", func(r Run) any { return string(r.Output) }, "jsonl"},
		{"output of the file", nil, nil, "output: json", func(r Run) any { return string(r.Output) }, "json"},
		{"a duration of the file", nil, nil, "timeout: 1h30m", func(r Run) any { return r.Timeout }, 90 * time.Minute},
		{"a duration of a flag", []string{"--timeout", "5s"}, nil, "timeout: 1h", func(r Run) any { return r.Timeout }, 5 * time.Second},
		{"25 s to drain and 10 m to wait by default", nil, nil, "", func(r Run) any { return [2]any{r.DrainTimeout, r.Wait} }, [2]any{25 * time.Second, 10 * time.Minute}},
		{"no patience is not the default", []string{"--drain-timeout", "0", "--wait", "0s"}, nil, "", func(r Run) any { return [2]any{r.DrainTimeout, r.Wait} }, [2]any{time.Duration(1), time.Duration(1)}},
		{"durability", []string{"--durability", "process+2"}, nil, "durability: power", func(r Run) any { return r.Durability }, store.Durability{Level: store.LevelProcess, Replicas: 2}},
		{"quiet of the file", nil, nil, "quiet: true", func(r Run) any { return r.Quiet }, true},
		{"not quiet by flag", []string{"--quiet=false"}, nil, "quiet: true", func(r Run) any { return r.Quiet }, false},
		{"a provider within the model", []string{"-m", "scripted/x"}, nil, "", func(r Run) any { return [2]string{r.Provider.Arg, r.Model} }, [2]string{"scripted", "x"}},
		{"a model with a slash of a named provider", []string{"-m", "org/x", "--provider", "scripted"}, nil, "", func(r Run) any { return [2]string{r.Provider.Arg, r.Model} }, [2]string{"scripted", "org/x"}},
		{"nobody named a provider", []string{"-m", "x"}, nil, "", func(r Run) any { return r.Provider == nil }, true},
		{"hooks add up, the project's first, each once", []string{"--hook", "b", "--hook", "c"}, nil, "hook: [a, b]", func(r Run) any { return args(r.Hooks) }, "a b c"},
		{"provider options merge by key, the flag winning", []string{"--provider-opt", "a=1"}, nil, "provider: scripted\nprovider-opt: {a: 2, b: two}", func(r Run) any { return string(r.ProviderOptions.JSON()) }, `{"a":1,"b":"two"}`},
		{"the file's options stay with the file's provider", []string{"--provider", "other"}, nil, "provider: scripted\nprovider-opt: {a: 2}", func(r Run) any { return r.ProviderOptions.JSON() == nil }, true},
		{"hook options merge by key", []string{"--hook-opt", "g.a=x=y"}, nil, "hook-opt: {g: {a: 2, b: [1]}}", func(r Run) any { return string(r.HookOptions["g"].JSON()) }, `{"a":"x=y","b":[1]}`},
		{"a file named in the project's file lies in its folder", nil, nil, "provider: scripted\nprovider-opt: {script: '@script.json'}\nsystem: '@prompt.txt'", func(r Run) any { return string(r.ProviderOptions["script"]) + r.System }, `{"from":"script.json"}{"from":"prompt.txt"}`},
		{"until of a flag replaces the project's", []string{"--until", "mine"}, nil, "until: theirs", func(r Run) any { return r.Until }, "mine"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := resolve(t, c.args, c.env, c.file)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.got(r); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func args(refs []PluginRef) string {
	var out []string
	for _, p := range refs {
		out = append(out, p.Arg)
	}
	return strings.Join(out, " ")
}

func TestWhatAProjectRequestsIsRefused(t *testing.T) {
	cases := []struct {
		name, file string
		args       []string
		wants      []string // flags that are missing; none: approved
	}{
		{"bundled plugins by name are fine", "provider: demo\nhook: [tool-guard]\ntool: [workspace]", nil, nil},
		{"a hook's path", "hook: [./guard.wasm]", nil, []string{"--hook"}},
		{"a tool's path without a slash", "tool: [tool.wasm]", nil, []string{"--tool"}},
		{"a provider's path", "provider: p/model.wasm", nil, []string{"--provider"}},
		{"a provider's path is moot where the flag names another", "provider: p/model.wasm", []string{"--provider", "demo"}, nil},
		{"a verifier", "until: make test", nil, []string{"--until"}},
		{"a verifier is moot where the flag names one", "until: make test", []string{"--until", "true"}, nil},
		{"a folder", "workspace: .", nil, []string{"--workspace"}},
		{"all of them at once", "hook: [a.wasm, tool-guard, b.wasm]\nuntil: x\nworkspace: .", nil, []string{"--hook", "--hook", "--until", "--workspace"}},
		{"another path on the command line approves nothing", "hook: [./guard.wasm]", []string{"--hook", "/other/guard.wasm"}, []string{"--hook"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := resolve(t, c.args, nil, c.file)
			var refused *exit.NotApprovedError
			if len(c.wants) == 0 {
				if err != nil {
					t.Fatalf("got %v, want approval", err)
				}
				return
			}
			if !errors.As(err, &refused) || len(refused.Wants) != len(c.wants) {
				t.Fatalf("got %v, want a refusal of %v", err, c.wants)
			}
			for i, w := range c.wants {
				if !strings.HasPrefix(refused.Wants[i], w+" ") {
					t.Errorf("want %d: got %q, want %s", i, refused.Wants[i], w)
				}
			}
		})
	}
}

func TestAPathOnTheCommandLineApprovesTheSamePathOfTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "loophost.yaml")
	if err := os.WriteFile(path, []byte("hook: [x/../guard.wasm]"), 0o600); err != nil {
		t.Fatal(err)
	}
	var f Flags
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(fs)
	if err := fs.Parse([]string{"--hook", filepath.Join(dir, "guard.wasm")}); err != nil {
		t.Fatal(err)
	}
	file, err := ReadFile(path, true)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Resolve(Source{Flags: &f, Changed: fs.Changed, Getenv: func(string) string { return "" }, File: file})
	if err != nil || len(r.Hooks) != 1 {
		t.Errorf("got %v, %v; want the one hook", r.Hooks, err)
	}
}

func TestMistakes(t *testing.T) {
	cases := []struct {
		name string
		args []string
		file string
		text string // part of the message
	}{
		{"an unknown key", nil, "provider: demo\nproviders: x", `loophost.yaml:2: unknown key "providers"`},
		{"a key that belongs on the command line", nil, "session: a", `unknown key "session"`},
		{"a key twice", nil, "rounds: 1\nrounds: 2", "loophost.yaml:2"},
		{"a list where a value belongs", nil, "rounds: [1]", "loophost.yaml:1"},
		{"a negative duration", nil, "timeout: -1s", "can't be negative"},
		{"an unknown durability", nil, "durability: forever", `durability "forever"`},
		{"replicas that are no number", []string{"--durability", "power+x"}, "", `durability "power+x"`},
		{"no durability at all", []string{"--durability", "none"}, "", `durability "none"`},
		{"both names of a session", []string{"--session", "a", "--resume", "b"}, "", "--session and --resume"},
		{"a once key without a session", []string{"--once", "k"}, "", "--once needs --session"},
		{"an empty once key", []string{"--session", "a", "--once", ""}, "", "the key is empty"},
		{"an option without a value", []string{"--provider-opt", "a"}, "", "want KEY=VALUE"},
		{"a hook option without a name", []string{"--hook-opt", "a=b.c"}, "", "want NAME.KEY=VALUE"},
		{"an option's file that is not there", []string{"--provider-opt", "a=@nowhere"}, "", "--provider-opt a"},
		{"an empty verifier", []string{"--until", " "}, "", "--until is empty"},
		{"a file outside the project", nil, "system: '@/etc/passwd'", "in its own folder"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := resolve(t, c.args, nil, c.file)
			var usage *exit.UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want a usage error with %q", err, c.text)
			}
		})
	}
}

func TestBoundsAreCheckedBeforeAnythingElse(t *testing.T) {
	for _, a := range [][]string{{"--iterations", "0"}, {"--iterations", "101"}, {"--iterations", "9223372036854775807"}, {"--rounds", "0"}, {"--rounds", "1001"}, {"--rounds", "-1"}} {
		_, err := resolve(t, a, nil, "")
		var bounds *loop.BoundsError
		if !errors.As(err, &bounds) || "--"+bounds.Field != a[0] {
			t.Errorf("%v: got %v, want a bounds error of that field", a, err)
		}
	}
}

func TestObjective(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p")
	if err := os.WriteFile(file, []byte("from a file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{"text": "text", "-": "from stdin\n", "@" + file: "from a file", "text\n": "text\n"} {
		got, err := Objective(arg, strings.NewReader("from stdin\n\n"))
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", arg, got, err, want)
		}
	}
	for _, arg := range []string{"", "\xff", strings.Repeat("x", loop.MaxObjectiveBytes+1)} {
		var bounds *loop.BoundsError
		if _, err := Objective(arg, nil); !errors.As(err, &bounds) {
			t.Errorf("%d bytes: got %v, want a bounds error", len(arg), err)
		}
	}
	if _, err := Objective("-", strings.NewReader(strings.Repeat("x", loop.MaxObjectiveBytes)+"\n")); err != nil {
		t.Errorf("the bound and a line end: %v", err)
	}
}

func TestIsPath(t *testing.T) {
	for arg, want := range map[string]bool{"scripted": false, "demo": false, "./scripted": true, "a/b": true, "x.wasm": true, `a\b`: true} {
		if got := IsPath(arg); got != want {
			t.Errorf("%s: got %v, want %v", arg, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "rounds: 3", "hook: [a, b]\nhook-opt: {a: {b: 1}}", "a: &a [*a]", "x:\n  - y: !!binary eA==", "timeout: 1m\nsystem: '@x'"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("loophost.yaml", data)
		var usage *exit.UsageError
		if (file == nil) == (err == nil) || err != nil && !errors.As(err, &usage) {
			t.Errorf("got %v, %v; want a file or a usage error", file, err)
		}
	})
}
