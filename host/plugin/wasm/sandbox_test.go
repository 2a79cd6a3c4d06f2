package wasm

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func TestWithoutGrantsTimeAndChanceAreTheSameForEveryInstance(t *testing.T) {
	for name, c := range map[string]struct {
		grants Grants
		man    func(*pluginapi.Manifest)
	}{
		"not granted":   {Grants{}, nil},
		"not requested": {Grants{Clock: true, Random: true}, func(m *pluginapi.Manifest) { m.Capabilities = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			p := load(t, Config{}, c.grants, func(m *pluginapi.Manifest) {
				m.Lease = pluginapi.LeaseFresh
				if c.man != nil {
					c.man(m)
				}
			})
			if a, b := ask(t, p, "random", ""), ask(t, p, "random", ""); a != b {
				t.Errorf("two instances drew %s and %s", a, b)
			}
			if a, b := ask(t, p, "time", ""), ask(t, p, "time", ""); a != b || a != strconv.Itoa(stillStart) {
				t.Errorf("two instances read the times %s and %s, want %d", a, b, stillStart)
			}
			start := time.Now()
			if got := ask(t, p, "sleep", "3600000"); !strings.HasPrefix(got, "1h0m0") {
				t.Errorf("the guest slept %s by its own clock, want an hour", got)
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("an hour of sleep took %v", d)
			}
			if got := ask(t, p, "env", ""); got != "0 0" {
				t.Errorf("got %s environment variables and arguments, want none", got)
			}
			if got := ask(t, p, "read", "/etc/hostname"); !strings.HasPrefix(got, "error:") {
				t.Errorf("read a file of the host: %q", got)
			}
		})
	}
}

func TestGrantedTimeAndChanceAreReal(t *testing.T) {
	p := load(t, Config{}, Grants{Clock: true, Random: true}, func(m *pluginapi.Manifest) { m.Lease = pluginapi.LeaseFresh })
	if a, b := ask(t, p, "random", ""), ask(t, p, "random", ""); a == b {
		t.Errorf("drew %s twice", a)
	}
	before := time.Now().Unix()
	got, err := strconv.ParseInt(ask(t, p, "time", ""), 10, 64)
	if err != nil || got < before || got > time.Now().Unix() {
		t.Errorf("got the time %d, %v; want the real one, %d", got, err, before)
	}
	start := time.Now()
	ask(t, p, "sleep", "50")
	if d := time.Since(start); d < 50*time.Millisecond {
		t.Errorf("50 ms of sleep took %v", d)
	}
	_, stats, err := p.Hook().Run(t.Context(), session, &pluginapi.HookInput{Point: pluginapi.BeforeTool})
	if got := strings.Join(stats.Grants, " "); err != nil || got != "clock random" {
		t.Errorf("got the grants %q in force, %v", got, err)
	}
}

// workspace is a folder with a secret beside it, which links lead to.
func workspace(t *testing.T) (dir string, root *os.Root) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "ws")
	for path, text := range map[string]string{"secret": "secret", "ws/in.txt": "inside", "ws/sub/deep.txt": "deep"} {
		path = filepath.Join(base, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"abs": filepath.Join(base, "secret"), "rel": "../secret", "up": "..", "nested": "sub/../../secret", "good": "sub/deep.txt", "loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir, root
}

func TestWorkspace(t *testing.T) {
	dir, root := workspace(t)
	p := load(t, Config{}, Grants{Workspace: root}, nil)
	for _, c := range []struct{ name, do, arg, want string }{
		{"a file is read", "read", "/workspace/in.txt", "inside"},
		{"a link within is followed", "read", "/workspace/good", "deep"},
		{"a file is written", "write", "/workspace/new.txt some text", "written"},
		{"a file is written over", "write", "/workspace/new.txt less", "written"},
		{"a file is appended to", "append", "/workspace/new.txt +more", "appended"},
		{"folders and files are made, moved, listed and removed", "tree", "/workspace", "b2 false b"},
		{"an absolute link leads nowhere", "read", "/workspace/abs", "error:"},
		{"a relative link leads nowhere", "read", "/workspace/rel", "error:"},
		{"a link to the parent leads nowhere", "read", "/workspace/up/secret", "error:"},
		{"a link with dots leads nowhere", "read", "/workspace/nested", "error:"},
		{"dots lead nowhere", "read", "/workspace/../secret", "error:"},
		{"dots in the middle lead nowhere", "read", "/workspace/sub/../../secret", "error:"},
		{"a link to itself is an error", "read", "/workspace/loop", "error:"},
		{"a pipe is not opened", "read", "/workspace/pipe", "error:"},
		{"nothing is written through a link", "write", "/workspace/rel changed", "error:"},
		{"nothing is written through a link to the parent", "write", "/workspace/up/made x", "error:"},
		{"no link is made", "symlink", "../secret /workspace/mine", "error:"},
		{"the host's files are not there", "read", "/etc/hostname", "error:"},
		{"a missing file is missing", "read", "/workspace/none", "error: open /workspace/none: No such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, p, c.do, c.arg)
			if got != c.want && (c.want != "error:" || !strings.HasPrefix(got, c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for path, want := range map[string]string{"new.txt": "less+more", "../secret": "secret"} {
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v; want %q", path, got, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "../made")); err == nil {
		t.Error("a file was made outside")
	}
}

func TestWorkspaceNeedsRequestAndGrant(t *testing.T) {
	_, root := workspace(t)
	for name, p := range map[string]*Plugin{
		"not granted":   load(t, Config{}, Grants{}, nil),
		"not requested": load(t, Config{}, Grants{Workspace: root}, func(m *pluginapi.Manifest) { m.Capabilities = nil }),
	} {
		if got := ask(t, p, "read", "/workspace/in.txt"); !strings.HasPrefix(got, "error:") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestASleepThatIsOverLeavesNoFault(t *testing.T) {
	p := load(t, Config{Limits: Limits{ToolTimeout: 100 * time.Millisecond}}, Grants{Clock: true}, nil)
	start := time.Now()
	_, _, err := p.Tool().Call(t.Context(), session, pluginapi.ToolCall{ID: "1", Name: "do", Arguments: command("sleep", "3600000")})
	wantFault(t, err, plugin.FaultTimeout)
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.abandoned != 0 {
		t.Errorf("%d instances were given up; a sleep ends with its call", p.abandoned)
	}
}

func TestOpenFilesAreBounded(t *testing.T) {
	_, root := workspace(t)
	p := load(t, Config{}, Grants{Workspace: root}, lease(pluginapi.LeaseFresh))
	for range 2 { // the first instance's files are closed with it
		n, err := strconv.Atoi(ask(t, p, "hoard", "/workspace/in.txt"))
		if err != nil || n < 10 || n > maxOpenFiles {
			t.Errorf("a guest opened %d files, %v; want at most %d", n, err, maxOpenFiles)
		}
	}
}
