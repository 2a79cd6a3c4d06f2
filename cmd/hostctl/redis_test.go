//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/loophost/loophost/cmd/hostctl/internal/backend"
)

// TestScriptsOnRedis runs testdata/redis/*.txtar on a redis-server with a password,
// which is $SECRET there.
func TestScriptsOnRedis(t *testing.T) {
	const secret = "hunter2-of-the-test"
	socket := startRedis(t, secret)
	runScripts(t, "testdata/redis", map[string]string{
		"SECRET": secret,
		"SOCKET": socket,
		"REDIS":  "unix://:" + secret + "@" + socket,
	})
}

// startRedis starts a server that flushes every write, on a socket. A machine without
// it can't run the test, which is said; where CI is set, that is a failure.
func startRedis(t *testing.T, password string) (socket string) {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI must run this test: %v", err)
		}
		t.Skip("redis-server is not installed; install the package redis-server to run this test")
	}
	dir, err := os.MkdirTemp("", "redis-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	cmd := exec.Command(binary, "--port", "0", "--unixsocket", socket, "--dir", dir, "--requirepass", password,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--logfile", filepath.Join(dir, "log"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-tick.C {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
			return socket
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("redis-server does not answer: %v\n%s", err, log)
		}
	}
}

func TestAPasswordInAStoreURLIsMasked(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"redis://h", "redis://h"},
		{"redis://:secret@h:1/2?prefix=p", "redis://:PASSWORD@h:1/2?prefix=p"},
		{"rediss://me:se:cr@et@h", "rediss://me:PASSWORD@h"},
		{"redis+sentinel://me:secret@a,b/main/0", "redis+sentinel://me:PASSWORD@a,b/main/0"},
		{"unix://:secret@/run/r.sock", "unix://:PASSWORD@/run/r.sock"},
		{"redis://me@h", "redis://me@h"},
		{"redi://:secret@h", "redi://:PASSWORD@h"},
		{"fs:/srv/a@b:c", "fs:/srv/a@b:c"},
		{"", ""},
	} {
		if got := backend.Shown(c.url); got != c.want {
			t.Errorf("got %q for %q, want %q", got, c.url, c.want)
		}
	}
}
