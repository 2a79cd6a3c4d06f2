//go:build linux

package procgroup

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
)

// holder is the environment variable that makes this test binary a process that
// starts a command, tells its identity and waits for its own end.
const holder = "PROCGROUP_TEST_HOLDER"

func TestMain(m *testing.M) {
	if script := os.Getenv(holder); script != "" {
		hold(script)
		return
	}
	goleak.VerifyTestMain(m)
}

func hold(script string) {
	mark := uuid.NewString()
	g, err := Start(&exec.Cmd{Stdout: os.Stdout}, mark, "sh", "-c", script)
	if err != nil {
		panic(err)
	}
	id := g.Identity()
	if os.Getenv("PROCGROUP_TEST_RELEASE") != "" {
		if err := g.Release(); err != nil {
			panic(err)
		}
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(id.PID) + " " + strconv.FormatUint(id.Start, 10) + " " + mark + "\n")
	_, _ = io.ReadAll(os.Stdin) // until it is killed
}

// start starts a script in a group; its output comes line by line.
func start(t *testing.T, script string) (*Group, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	g, err := Start(&exec.Cmd{Stdout: w}, uuid.NewString(), "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return g, bufio.NewReader(r)
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("got %q, %v; want a line", s, err)
	}
	return strings.TrimSpace(s)
}

func alive(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	// One that is on its way out has no memory any more, though it is listed still.
	_, err = os.ReadFile("/proc/" + pid + "/environ")
	p, ierr := inspect(n)
	return err == nil && ierr == nil && !p.dead
}

func TestAHeldCommandDoesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	g, out := start(t, "touch "+file)
	if err := g.Abandon(); err != nil {
		t.Errorf("abandon: got %v, want none", err)
	}
	if _, err := out.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("its output: got %v, want its end", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran: %v", err)
	}
}

func TestAReleasedCommandRunsAndIsReaped(t *testing.T) {
	g, out := start(t, "echo one; exit 3")
	if err := g.Release(); err != nil {
		t.Fatal(err)
	}
	if got := line(t, out); got != "one" {
		t.Errorf("got %q, want one", got)
	}
	st, err := g.Reap(t.Context())
	if err != nil || st.ExitCode() != 3 {
		t.Errorf("got %v, %v; want exit 3", st, err)
	}
	if yes, err := Alive(g.Identity()); yes || err != nil {
		t.Errorf("alive: got %v, %v; want not", yes, err)
	}
}

// T-14: the receipt waits for the whole group, and for what left it.
func TestReapEndsTheWholeGroup(t *testing.T) {
	g, out := start(t, `sleep 600 & echo $!; setsid sh -c 'echo $$; exec sleep 600' & wait $!; trap "" TERM; exit 0`)
	if err := g.Release(); err != nil {
		t.Fatal(err)
	}
	one, two := line(t, out), line(t, out)
	if !alive(t, one) || !alive(t, two) {
		t.Fatal("the group's processes do not run")
	}
	if err := g.Signal(syscall.SIGKILL); err != nil { // the daemon left the group and goes on
		t.Fatal(err)
	}
	<-g.Ended()
	if !alive(t, two) {
		t.Fatal("the daemon was in the group after all: the test shows nothing")
	}
	st, err := g.Reap(t.Context())
	if err != nil || st.Success() {
		t.Errorf("got %v, %v; want a killed leader", st, err)
	}
	if alive(t, one) || alive(t, two) {
		t.Errorf("left over: %v, the daemon %v", alive(t, one), alive(t, two))
	}
}

func TestReapThatMayNotWaitProvesNothing(t *testing.T) {
	g, out := start(t, "echo up; sleep 600")
	if err := g.Release(); err != nil {
		t.Fatal(err)
	}
	line(t, out)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Reap(ctx); !errors.Is(err, ErrUnproved) {
		t.Errorf("got %v, want %v", err, ErrUnproved)
	}
	if err := g.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if _, err := g.Reap(t.Context()); err != nil {
		t.Errorf("once it ended: got %v, want none", err)
	}
}

// orphan starts a holder, kills it, and gives the identity of what it left.
func orphan(t *testing.T, script string, release bool, more int) (Identity, []string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), holder+"="+script)
	if release {
		cmd.Env = append(cmd.Env, "PROCGROUP_TEST_RELEASE=1")
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	out := bufio.NewReader(r)
	var id Identity
	var rest []string
	for range 1 + more {
		if f := strings.Fields(line(t, out)); len(f) == 3 {
			id.PID, _ = strconv.Atoi(f[0])
			id.Start, _ = strconv.ParseUint(f[1], 10, 64)
			id.Mark = f[2]
		} else {
			rest = append(rest, f[0])
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if id.Boot, err = Boot(); err != nil {
		t.Fatal(err)
	}
	return id, rest
}

func TestACommandWhoseStarterDiesHeldNeverRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	id, _ := orphan(t, "touch "+file, false, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := End(ctx, id); err != nil {
		t.Errorf("got %v, want none", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran: %v", err)
	}
}

// T-14: whoever comes after a killed worker ends what it left and proves it.
func TestEndEndsWhatAKilledStarterLeft(t *testing.T) {
	for name, script := range map[string]string{
		"with its leader": `sleep 600 & echo $!; wait`,
		"without":         `sh -c 'echo $$; exec sleep 600' & exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			id, pids := orphan(t, script, true, 1)
			if !alive(t, pids[0]) {
				t.Fatal("nothing was left: the test shows nothing")
			}
			elsewhere := id
			elsewhere.Boot = "another boot"
			if err := End(t.Context(), elsewhere); !errors.Is(err, ErrElsewhere) {
				t.Errorf("from another boot: got %v, want %v", err, ErrElsewhere)
			}
			later := id
			later.Start++ // the number belongs to a later process
			later.Mark = uuid.NewString()
			if err := End(t.Context(), later); err != nil || !alive(t, pids[0]) {
				t.Errorf("of another process with that number: got %v, alive %v; want it let alone", err, alive(t, pids[0]))
			}
			if err := End(t.Context(), id); err != nil || alive(t, pids[0]) {
				t.Errorf("got %v, alive %v; want all gone", err, alive(t, pids[0]))
			}
		})
	}
}

func TestSelfIsAlive(t *testing.T) {
	id, err := Self()
	if err != nil || id.Validate() != nil {
		t.Fatalf("got %+v, %v", id, err)
	}
	if yes, err := Alive(id); !yes || err != nil {
		t.Errorf("got %v, %v; want alive", yes, err)
	}
	id.Start++
	if yes, err := Alive(id); yes || err != nil {
		t.Errorf("another process with the number: got %v, %v; want not", yes, err)
	}
	id.Boot += "x"
	if _, err := Alive(id); !errors.Is(err, ErrElsewhere) {
		t.Errorf("another boot: got %v, want %v", err, ErrElsewhere)
	}
}

func TestAnIdentityThatIsNotWholeProvesNothing(t *testing.T) {
	for _, id := range []Identity{{}, {PID: 1, Start: 1, Boot: "b"}, {PID: 2, Boot: "b"}, {PID: 2, Start: 1}, {PID: -5, Start: 1, Boot: "b"}} {
		if err := End(t.Context(), id); err == nil {
			t.Errorf("%+v: got no error", id)
		}
	}
}
