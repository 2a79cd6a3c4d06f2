package redis

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
)

// run is a loop of one round that an owner makes in a goroutine; it halts where its
// provider is called and between boundary and final mirror.
type run struct {
	t     *testing.T
	lines *bufio.Reader
	in    *io.PipeWriter
	ended chan error
}

// ownerEnd is what a run says at its end.
type ownerEnd struct {
	Error    string `json:"error"`
	Complete int    `json:"complete"`
}

func startRun(t *testing.T, s *Store, session string) *run {
	t.Helper()
	orders, in := io.Pipe()
	said, out := io.Pipe()
	r := &run{t: t, lines: bufio.NewReader(said), in: in, ended: make(chan error, 1)}
	go func() {
		err := conformance.ServeOwner(t.Context(), s, orders, out)
		_ = out.CloseWithError(io.EOF)
		r.ended <- err
	}()
	r.say(fmt.Sprintf(`{"session":%q}`, session))
	return r
}

func (r *run) say(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) hear() string {
	r.t.Helper()
	line, err := r.lines.ReadString('\n')
	if err != nil {
		r.t.Fatalf("the run says %q, %v; it ended with %v", line, err, <-r.ended)
	}
	return strings.TrimSpace(line)
}

func (r *run) want(line string) {
	r.t.Helper()
	if got := r.hear(); got != line {
		r.t.Fatalf("the run says %q, want %q", got, line)
	}
}

// end is what the run says last.
func (r *run) end() (e ownerEnd) {
	r.t.Helper()
	line := r.hear()
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		r.t.Fatalf("the run says %q: %v", line, err)
	}
	<-r.ended // a release that failed is no matter here
	return e
}

func TestARunGoesOnOverAFailoverThatLosesNothing(t *testing.T) {
	t.Parallel()
	f := startFailover(t, always...)
	s := openStore(t, f.url("timeout=1s"))
	r := startRun(t, s, "run")
	r.want("calls")
	r.say("go")
	r.want("boundary")
	f.master.feeds(f.replica)
	f.fail(t, s)
	r.say("go")
	if e := r.end(); e.Complete != 1 || e.Error != "" {
		t.Errorf("got %+v, want one Complete and no error", e)
	}
}

func TestARunDoesNotCompleteOverAFailoverThatLosesItsCommits(t *testing.T) {
	t.Parallel()
	f := startFailover(t, always...)
	s := openStore(t, f.url("timeout=1s"))
	r := startRun(t, s, "run")
	r.want("calls")
	thaw := f.replica.freeze()
	f.master.do("client", "kill", "type", "replica")
	r.say("go")
	r.want("boundary") // acknowledged by the master, and on it alone
	f.master.kill()
	thaw()
	f.promoted(t)
	f.answers(t, s)
	r.say("go")
	first := r.end()
	if first.Complete != 0 || !strings.Contains(first.Error, store.ErrRegressed.Error()) {
		t.Errorf("got %+v, want no Complete and a regression", first)
	}
	// Whoever comes next finds the loop that was lost, and does not complete it either.
	// A Sentinel that is behind names the old master: whoever comes then tries again.
	var again *Store
	eventually(t, "a Sentinel that names the new master", 30*time.Second, func() (err error) {
		again, err = Open(t.Context(), Config{URL: f.url("timeout=1s")})
		return err
	})
	t.Cleanup(func() { wantKind(t, "close", again.Close(), nil) })
	eventually(t, "the next owner", 60*time.Second, func() error {
		rec, err := again.Load(t.Context(), store.SessionKey("run"))
		if err == nil && rec.Holder != nil {
			err = errors.New("the first one's lease goes on")
		}
		return err
	})
	next := startRun(t, again, "run")
	second := next.end()
	if second.Complete != 0 || second.Error == "" {
		t.Errorf("the next run: got %+v, want no Complete and an error", second)
	}
}

// fail kills the master and waits until the replica serves the store.
func (f *failover) fail(t *testing.T, s *Store) {
	t.Helper()
	f.master.kill()
	f.promoted(t)
	f.answers(t, s)
}

func (f *failover) answers(t *testing.T, s *Store) {
	t.Helper()
	eventually(t, "an answer of the new master", 30*time.Second, func() error {
		_, err := s.Load(t.Context(), store.SessionKey("run"))
		return err
	})
}
