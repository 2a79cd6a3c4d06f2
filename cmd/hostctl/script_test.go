//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hostctl": main})
}

// TestScripts runs testdata/script/*.txtar. Beside testscript's own commands
// they use:
//
//	exit CODE PROGRAM ARG…   run to the end; the exit code must be CODE
//	field PATH VALUE         in the last line of stdout, a JSON object, PATH is VALUE
//	start [-tty] NAME ARG…   start hostctl in the background, on a terminal with -tty
//	await NAME PATTERN       wait until NAME prints a line that matches, after the last match
//	signal NAME SIGNAL       INT, TERM, HUP, KILL, STOP, CONT
//	finish NAME CODE         wait for its end; its output becomes stdout and stderr
//	runtime WHAT ASSIGNMENT  report as a worker: admit, complete, fail, submit TEXT, lose
func TestScripts(t *testing.T) { runScripts(t, "testdata/script", nil) }

// runScripts runs the scripts of a folder, with more environment variables.
func runScripts(t *testing.T, dir string, more map[string]string) {
	t.Helper()
	cache := t.TempDir() // compiled plugins, shared by all scripts
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	hostctl, err := exec.LookPath("hostctl") // put there by testscript.Main
	if err != nil {
		t.Fatal(err)
	}
	// A process inherits that SIGHUP is ignored, as under nohup; the scripts send it.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("XDG_STATE_HOME", "")
			e.Setenv("XDG_CACHE_HOME", cache)
			e.Setenv("LOOPHOST_STORE", "")
			e.Setenv("LOOPHOST_SCOPE", "")
			e.Setenv("REPO", repo)
			e.Setenv("HOSTCTL", hostctl)
			for name, value := range more {
				e.Setenv(name, value)
			}
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOTOOLCHAIN"} {
				value, err := exec.Command("go", "env", name).Output()
				if err != nil {
					return err
				}
				e.Setenv(name, strings.TrimSpace(string(value)))
			}
			e.Values[jobsKey{}] = map[string]*job{}
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exit": cmdExit, "field": cmdField, "start": cmdStart, "await": cmdAwait, "signal": cmdSignal, "finish": cmdFinish, "runtime": cmdRuntime,
		},
	})
}

func cmdExit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exited *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exited) {
		got = exited.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code is %d, want %d", got, want)
	}
}

func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: field PATH VALUE")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	last := lines[len(lines)-1]
	dec := json.NewDecoder(strings.NewReader(last))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		ts.Fatalf("the last line of stdout is no JSON: %v: %s", err, last)
	}
	for _, name := range strings.Split(args[0], ".") {
		if list, ok := value.([]any); ok {
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(list) {
				ts.Fatalf("%s: no element %s of %d", args[0], name, len(list))
			}
			value = list[i]
			continue
		}
		object, ok := value.(map[string]any)
		if !ok {
			ts.Fatalf("%s: %s is of no object in %s", args[0], name, last)
		}
		if value, ok = object[name]; !ok {
			ts.Fatalf("%s: no member %s in %s", args[0], name, last)
		}
	}
	got, isText := value.(string)
	if !isText {
		data, err := json.Marshal(value)
		ts.Check(err)
		got = string(data)
	}
	if (got == args[1]) == neg {
		ts.Fatalf("%s is %s, want %s (negated: %v)", args[0], got, args[1], neg)
	}
}
