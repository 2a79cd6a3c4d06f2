package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
)

// nobody is a user who owns nothing here.
const nobody = 65534

func TestAPlaceThatCantBeAStoreIsExit17(t *testing.T) {
	c := newCommander(t)
	file, dangling, link := filepath.Join(c.dir, "file"), filepath.Join(c.dir, "dangling"), filepath.Join(c.dir, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink("nowhere", dangling), os.Symlink("store", link), os.Mkdir(c.store(), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct{ name, place, kind, says string }{
		{"a file", file, "unavailable", file},
		{"below a file", file + "/x", "unavailable", file},
		{"a link that leads nowhere", dangling, "unavailable", "symbolic link that leads to no folder"},
		{"a device", "/dev/null", "unavailable", "/dev/null"},
		{"a refused filesystem", "/proc/self", "unsupported", "the folder is on proc, whose locks or flushes can't be trusted; choose a local disk, or insist: --store 'fs:/proc/self?insist'"},
		{"the same, where nobody can insist", "/proc/self?insist", "unavailable", "/proc"},
	} {
		t.Run(p.name, func(t *testing.T) {
			for _, args := range [][]string{
				{"run", "--provider=demo", "--config=", "--quiet", "--session=s", "--output=json", "--store=fs:" + p.place, "go"},
				{"session", "show", "s", "--output=json", "--store=fs:" + p.place},
			} {
				got := c.want(t, exit.StoreError, args...)
				if got.kind(t) != p.kind || !strings.Contains(got.err, p.says) {
					t.Errorf("%q: got %q, want %s that says %q", args, got.err, p.kind, p.says)
				}
				if strings.Contains(got.err, "session show") {
					t.Errorf("%q: the next step is to look at what can't be opened: %q", args, got.err)
				}
			}
			c.want(t, exit.StoreError, "store", "check", "--store=fs:"+p.place)
			c.want(t, exit.StoreError, "session", "list", "--store=fs:"+p.place)
		})
	}
	// A link to a folder is a store like any other.
	c.want(t, exit.OK, "run", "--provider=demo", "--config=", "--quiet", "--session=s", "--store=fs:"+link, "go")
	c.want(t, exit.OK, "session", "show", "s")
}

// outsider is a copy of this program that any user may run.
func outsider(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "hostctl") // by this name it is the command
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAStoreOfAnotherUserIsExit17 runs the command as a user who may read the
// folder and not write it, or not even read it: as root by becoming another user,
// otherwise by taking the own permissions away.
func TestAStoreOfAnotherUserIsExit17(t *testing.T) {
	dir, err := os.MkdirTemp("", "hostctl-place-") // t.TempDir is below a folder that others can't enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Chmod(filepath.Join(dir, "store"), 0o700), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	c := &commander{dir: dir, cache: t.TempDir()}
	c.session(t, "s")
	program := outsider(t, dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for mode, name := range map[os.FileMode]string{0o555: "readable", 0o000: "closed"} {
		if err := os.Chmod(c.store(), mode); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"run", "--provider", "demo", "--session", "s", "--quiet", "--output", "json", "Go"},
			{"session", "show", "s"},
			{"session", "list"},
			{"session", "delete", "s"},
			{"store", "check"},
		} {
			var out, errs bytes.Buffer
			cmd := exec.Command(program, args...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = "/", &out, &errs
			cmd.Env = []string{"HOME=/nonexistent", "LOOPHOST_STORE=fs:" + c.store()}
			if os.Geteuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			err := cmd.Run()
			if cmd.ProcessState == nil {
				t.Fatalf("it did not run at all: %v", err)
			}
			if got := cmd.ProcessState.ExitCode(); got != int(exit.StoreError) {
				t.Errorf("%s store, %q: got exit code %d, want %d: %s", name, args, got, exit.StoreError, errs.String())
			}
			if !strings.Contains(errs.String(), "permission denied") || strings.Count(errs.String(), "hostctl: ") != 1 {
				t.Errorf("%s store, %q: the message is %q; want one that says permission denied", name, args, errs.String())
			}
		}
	}
	if err := os.Chmod(c.store(), 0o700); err != nil {
		t.Fatal(err)
	}
	c.want(t, exit.OK, "store", "check")
}

// TestAFullDiskIsExit17AndStaysReadable fills a small filesystem, or, where none
// can be mounted, runs into a limit on the size of files.
func TestAFullDiskIsExit17AndStaysReadable(t *testing.T) {
	dir := t.TempDir()
	c := &commander{dir: dir, cache: t.TempDir()}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte(`{"steps": [{"text": "`+strings.Repeat("y", 60_000)+`"}], "repeat": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run := []string{"run", "--provider=scripted", "--provider-opt=script=@" + script, "--config=", "--quiet", "--session=s", "--output=json", "--iterations=100", "go"}
	if err := os.Mkdir(c.store(), 0o700); err != nil {
		t.Fatal(err)
	}
	code, errText := exit.OK, ""
	if err := syscall.Mount("tmpfs", c.store(), "tmpfs", 0, "size=1m"); err == nil {
		t.Cleanup(func() {
			if err := syscall.Unmount(c.store(), 0); err != nil {
				t.Error(err)
			}
		})
		got := c.call(t, run...)
		if kind := got.kind(t); kind != "checkpoint" {
			t.Errorf("got kind %s, want checkpoint", kind)
		}
		code, errText = got.code, got.err
	} else {
		t.Logf("nothing can be mounted (%v): a limit on the size of files stands in for it", err)
		var errs bytes.Buffer
		cmd := exec.Command("sh", append([]string{"-c", `ulimit -f 1024; exec "$0" "$@"`, outsider(t, dir)}, run...)...)
		cmd.Stderr, cmd.Env = &errs, []string{"HOME=" + dir, "LOOPHOST_STORE=fs:" + c.store(), "PATH=" + os.Getenv("PATH")}
		_ = cmd.Run() // the exit code is what is looked at
		code, errText = exit.Code(cmd.ProcessState.ExitCode()), errs.String()
	}
	if code != exit.StoreError || !strings.Contains(errText, "journal-1.jsonl") {
		t.Errorf("got exit code %d, %q; want %d and the file's name", code, errText, exit.StoreError)
	}
	for _, args := range [][]string{{"session", "show", "s"}, {"session", "log", "s"}, {"session", "events", "s"}, {"session", "export", "s"}, {"session", "list"}, {"store", "check"}} {
		c.want(t, exit.OK, args...)
	}
}

// TestAReaderThatNeverReadsHoldsUpTheOutputAndNotTheRun: the session is ended and
// free while the command still waits for its reader.
func TestAReaderThatNeverReadsHoldsUpTheOutputAndNotTheRun(t *testing.T) {
	c := newCommander(t)
	script := filepath.Join(c.dir, "script")
	if err := os.WriteFile(script, []byte(`{"steps": [{"text": "`+strings.Repeat("y", 60_000)+`"}], "repeat": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command(outsider(t, t.TempDir()), "run", "--provider=scripted", "--provider-opt=script=@"+script, "--config=", "--session=s", "--output=jsonl", "--quiet", "--iterations=9", "go")
	cmd.Stdout, cmd.Env = write, []string{"HOME=" + c.dir, "XDG_CACHE_HOME=" + c.cache, "LOOPHOST_STORE=fs:" + c.store()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for ended := false; !ended; {
		a := c.call(t, "session", "show", "s", "--output=json")
		ended = strings.Contains(a.out, `"status":"completed"`) && strings.Contains(a.out, `"holder":null`)
		if !ended && time.Now().After(deadline) {
			t.Fatalf("it has not ended: %.500q %s", a.out, a.err)
		}
	}
	if cmd.ProcessState != nil {
		t.Error("the command is over although nobody read")
	}
	if err := read.Close(); err != nil { // the reader leaves: the command ends and says that it lost output
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != int(exit.Error) {
		t.Errorf("got %v, want exit code %d", err, exit.Error)
	}
}
