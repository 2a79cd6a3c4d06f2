//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/loophost/loophost/internal/redisserver"
)

// TestScriptsOnRedis runs testdata/redis/*.txtar on a redis-server with a password,
// which is $SECRET there. They run side by side: each script has a database of its own,
// so that what it counts is what it wrote.
func TestScriptsOnRedis(t *testing.T) {
	const secret = "hunter2-of-the-test"
	socket := startRedis(t, secret)
	runScripts(t, "testdata/redis", map[string]string{
		"SECRET": secret,
		"SOCKET": socket,
		"REDIS":  "unix://:" + secret + "@" + socket,
	})
}

// startRedis starts a server that flushes every write. A machine without one can't run
// the test, which is said; where CI is set, that is a failure.
func startRedis(t *testing.T, password string) (socket string) {
	t.Helper()
	s, err := redisserver.Start(t.Context(), "--requirepass", password)
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "" {
		t.Skip("redis-server is not installed; install the package redis-server to run this test")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s.Socket
}
