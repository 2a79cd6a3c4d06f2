//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/loader"
	"github.com/loophost/loophost/cmd/hostctl/internal/root"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/plugins/bundled"
)

// answer is what a call of the command came to.
type answer struct {
	code     exit.Code
	out, err string
}

// commander calls the command inside this process: thousands of calls take
// seconds, and an argument may hold what no process can be given.
type commander struct {
	dir   string // of the store; HOME too
	cache string
	in    string // stdin of the next call
	// unpacked are the bundled plugins that were unpacked, in order.
	unpacked []string
}

func newCommander(t *testing.T) *commander {
	t.Helper()
	dir := t.TempDir()
	if _, err := os.Stat("/dev/shm"); err == nil { // many calls flush nothing there
		if dir, err = os.MkdirTemp("/dev/shm", "hostctl-test-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
	return &commander{dir: dir, cache: t.TempDir()}
}

func (c *commander) store() string { return filepath.Join(c.dir, "store") }

// call runs hostctl with args. Whatever happens, an error is one message for
// people without a trace of the program's inside.
func (c *commander) call(t *testing.T, args ...string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	values := map[string]string{"HOME": c.dir, "XDG_CACHE_HOME": c.cache, "LOOPHOST_STORE": "fs:" + c.store()}
	app := &cli.App{
		In: strings.NewReader(c.in), Out: &out, Err: &errs, Getenv: func(name string) string { return values[name] }, Now: time.Now,
		NewID: newID, User: "ada", Signals: make(chan os.Signal), Exit: func(code exit.Code) { t.Errorf("%q left with %d", args, code) },
	}
	var mu sync.Mutex
	library := loader.Library{
		Names: bundled.Names, Digest: bundled.Digest, Manifest: bundled.Manifest,
		Module: func(name string) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			c.unpacked = append(c.unpacked, name)
			return bundled.Module(name)
		},
	}
	code := root.Execute(t.Context(), &verb.Env{App: app, Library: library}, args)
	a := answer{code, out.String(), errs.String()}
	stands := code == exit.Submitted || code == exit.NeedsPerson || code == exit.UnderWay // how tickets stand is no error
	if code != exit.OK && !stands && (strings.Count(a.err, "hostctl: ") != 1 || strings.Contains(a.err, "goroutine ")) {
		t.Errorf("%.200q: stderr is %.400q; want one message", args, a.err)
	}
	return a
}

// want calls hostctl and checks the exit code.
func (c *commander) want(t *testing.T, code exit.Code, args ...string) answer {
	t.Helper()
	a := c.call(t, args...)
	if a.code != code {
		t.Errorf("%.200q: got exit code %d, want %d; stderr: %.400q", args, a.code, code, a.err)
	}
	return a
}

// kind is the error's kind in the object that ends a JSON output.
func (a answer) kind(t *testing.T) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(a.out), "\n")
	var object struct {
		ExitCode exit.Code     `json:"exit_code"`
		Error    *exit.Problem `json:"error"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &object); err != nil {
		t.Errorf("stdout ends with %.200q, want an object: %v", lines[len(lines)-1], err)
		return ""
	}
	if object.ExitCode != a.code || object.Error == nil {
		t.Errorf("the object says exit code %d and error %v, the process %d", object.ExitCode, object.Error, a.code)
		return ""
	}
	return object.Error.Kind
}

// session makes a session with a finished loop: two rounds, a tool call.
func (c *commander) session(t *testing.T, id string) {
	t.Helper()
	c.want(t, exit.OK, "run", "--provider", "demo", "--session", id, "--quiet", "--config", "", "Try it")
}
