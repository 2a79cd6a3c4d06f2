package redis

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// server is a redis-server that a test started.
type server struct {
	t      testing.TB
	binary string
	dir    string
	port   int
	args   []string
	cmd    *exec.Cmd
	said   *transcript
}

// always and everysec are the two settings that most tests use.
var (
	always   = []string{"--appendonly", "yes", "--appendfsync", "always"}
	everysec = []string{"--appendonly", "yes", "--appendfsync", "everysec"}
)

// binaryOf finds a program of the Redis package. A machine without it can't run the
// test, which is said; where CI is set, that is a failure.
func binaryOf(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed, and CI must run this test: %v", name, err)
		}
		t.Skipf("%s is not installed; install the package redis-server to run this test", name)
	}
	return path
}

// startServer starts a server with its data in a temporary folder.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	return startServerIn(t, t.TempDir(), freePort(t), args...)
}

func startServerIn(t testing.TB, dir string, port int, args ...string) *server {
	t.Helper()
	s := &server{t: t, binary: binaryOf(t, "redis-server"), dir: dir, port: port, args: args}
	s.start()
	t.Cleanup(s.end)
	return s
}

// freePort is a port that nobody listens on at this moment. Ports of a Cluster's bus
// are 10,000 above, so those below 50,000 are of use.
func freePort(t testing.TB) int {
	t.Helper()
	for range 200 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if port < 50_000 {
			return port
		}
	}
	t.Fatal("no free port below 50,000 was found")
	return 0
}

// start starts the server, again on the same port with the same data, and returns when
// it is ready.
func (s *server) start() {
	s.t.Helper()
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--unixsocket", s.socket(),
		"--save", "", "--daemonize", "no", "--logfile", "", "--maxmemory-policy", "noeviction",
	}, s.args...)
	s.run(exec.Command(s.binary, args...), "Ready to accept connections")
}

func (s *server) run(cmd *exec.Cmd, ready string) {
	s.t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.cmd, s.said = cmd, newTranscript(out)
	if !s.said.wait(ready, 20*time.Second) {
		s.kill()
		s.t.Fatalf("%s did not become ready; it said:\n%s", s.binary, s.said)
	}
}

func (s *server) addr() string   { return "127.0.0.1:" + strconv.Itoa(s.port) }
func (s *server) socket() string { return filepath.Join(s.dir, "s") }

// url is the server's URL; options are name=value pairs.
func (s *server) url(options ...string) string {
	return withOptions("redis://"+s.addr(), options)
}

func withOptions(url string, options []string) string {
	if len(options) > 0 {
		url += "?" + strings.Join(options, "&")
	}
	return url
}

// kill ends the server as a crash does.
func (s *server) kill() {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Errorf("kill %s: %v", s.binary, err)
	}
	s.said.drained()
	_ = s.cmd.Wait() // it was killed: an error says only that
	s.cmd = nil
}

// end kills a server that may be stopped.
func (s *server) end() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
	}
	s.kill()
}

// freeze stops the server as SIGSTOP does, until the function it gives is called.
func (s *server) freeze() (thaw func()) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			s.t.Error(err)
		}
	}
}

// feeds waits until the server counts the replica among those that confirm what they
// have, and the replica has everything.
func (s *server) feeds(replica *server) {
	s.t.Helper()
	eventually(s.t, "a replica that has everything", 60*time.Second, func() error {
		info, err := s.info("replication")
		if err != nil {
			return err
		}
		return counts(info, replica, ",offset="+info["master_repl_offset"])
	})
}

// counts is nil if a master that says info counts the replica among those that confirm
// what they have: the replica calls its link up before that.
func counts(info map[string]string, replica *server, offset string) error {
	for _, r := range info {
		if strings.Contains(r, "port="+strconv.Itoa(replica.port)+",state=online"+offset) {
			return nil
		}
	}
	return fmt.Errorf("the master says %v", info)
}

// client is a plain client of the server.
func (s *server) client() *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: s.addr(), DisableIdentity: true, Protocol: 2, MaxRetries: -1})
	s.t.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	return c
}

// do sends one command that must succeed.
func (s *server) do(args ...any) any {
	s.t.Helper()
	v, err := s.ask(args...)
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// ask sends one command. A server that becomes a master, or is told of another one,
// cuts its connections: whoever waits for that asks again.
func (s *server) ask(args ...any) (any, error) {
	c := s.client()
	defer func() { _ = c.Close() }()
	return c.Do(context.Background(), args...).Result()
}

// info asks for a section of what a server, or "cluster" for its Cluster, says of itself.
func (s *server) info(section string) (map[string]string, error) {
	args := []any{"info", section}
	if section == "cluster" {
		args = []any{"cluster", "info"}
	}
	text, err := s.ask(args...)
	if err != nil {
		return nil, err
	}
	return parseInfo(fmt.Sprint(text)), nil
}

// transcript keeps what a process says, line by line.
type transcript struct {
	mu    sync.Mutex
	lines []string
	grown chan struct{}
	ended chan struct{}
}

func newTranscript(r io.Reader) *transcript {
	t := &transcript{grown: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			t.mu.Lock()
			t.lines = append(t.lines, lines.Text())
			close(t.grown)
			t.grown = make(chan struct{})
			t.mu.Unlock()
		}
	}()
	return t
}

// wait reports whether a line with the words comes within d.
func (t *transcript) wait(words string, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for seen := 0; ; {
		t.mu.Lock()
		lines, grown := t.lines, t.grown
		t.mu.Unlock()
		for ; seen < len(lines); seen++ {
			if strings.Contains(lines[seen], words) {
				return true
			}
		}
		select {
		case <-grown:
		case <-t.ended:
			return false
		case <-timer.C:
			return false
		}
	}
}

func (t *transcript) drained() { <-t.ended }

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// eventually calls try until it gives nil, at most for d.
func eventually(t testing.TB, what string, d time.Duration, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("%s did not happen within %s: %w", what, d, err))
		}
	}
}
