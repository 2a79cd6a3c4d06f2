package redis

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/host/store"
)

// failover is a master, a replica, and three Sentinels that watch them. A Sentinel is the
// server's own binary in another mode, so that one package is enough.
type failover struct {
	master, replica *server
	sentinels       []*server
}

func startFailover(t testing.TB, args ...string) *failover {
	t.Helper()
	f := &failover{master: startServer(t, args...)}
	f.replica = startServer(t, append([]string{"--replicaof", "127.0.0.1 " + strconv.Itoa(f.master.port), "--repl-diskless-sync-delay", "0"}, args...)...)
	f.master.feeds(f.replica)
	for range 3 {
		s := &server{t: t, binary: binaryOf(t, "redis-server"), dir: t.TempDir(), port: freePort(t)}
		conf := filepath.Join(s.dir, "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor main 127.0.0.1 %d 2\n"+
			"sentinel down-after-milliseconds main 30000\nsentinel failover-timeout main 1000\n", s.port, s.dir, f.master.port)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.run(exec.Command(s.binary, conf, "--sentinel"), "monitor master main")
		t.Cleanup(s.end)
		f.sentinels = append(f.sentinels, s)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range f.sentinels {
				t.Logf("the Sentinel on port %d said:\n%s", s.port, s.said)
			}
		}
	})
	for _, s := range f.sentinels {
		eventually(t, "Sentinels that know each other", 30*time.Second, func() error {
			said, err := s.ask("sentinel", "master", "main")
			if err != nil {
				return err
			}
			if all := fmt.Sprint(said); !strings.Contains(all, "num-other-sentinels 2") || !strings.Contains(all, "num-slaves 1") {
				return errors.New("not yet")
			}
			return nil
		})
	}
	return f
}

func (f *failover) url(options ...string) string {
	var addrs []string
	for _, s := range f.sentinels {
		addrs = append(addrs, s.addr())
	}
	return withOptions("redis+sentinel://"+strings.Join(addrs, ",")+"/main", options)
}

// promoted has a Sentinel promote the replica. Left to themselves, Sentinels that are
// quick to notice a dead master also fail over when the disk of a busy machine keeps a
// living one from answering, in the middle of what a test does; so they are slow, and told.
func (f *failover) promoted(t testing.TB) {
	t.Helper()
	eventually(t, "the failover", 60*time.Second, func() error {
		info, err := f.replica.info("replication")
		if err == nil && info["role"] != "master" {
			_, failed := f.sentinels[0].ask("sentinel", "failover", "main") // or it is at it
			err = fmt.Errorf("the replica is a %s; the Sentinel answers %v", info["role"], failed)
		}
		return err
	})
}

func TestAFailoverThatLosesNothingIsFollowed(t *testing.T) {
	t.Parallel()
	f := startFailover(t, always...)
	s := openPatient(t, f.url("timeout=1s"))
	fence, mark := owner(t, s, key)
	for range 10 {
		c := commit(mark, "head", "entry")
		c.Require = store.Durability{Level: store.LevelPower, Replicas: 1}
		mark = must[store.Ack](t)(s.Commit(t.Context(), key, fence, c)).Mark
	}
	got := make(chan string, 1)
	go func() { // a worker that asks again when it hears that the store is not available
		for t.Context().Err() == nil {
			l, err := s.Lease(t.Context(), dispatches, "w", time.Hour, 1)
			if err == nil {
				got <- l[0].ID
				return
			}
			if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
				got <- err.Error()
				return
			}
		}
	}()
	f.master.kill()
	f.promoted(t)
	var rec store.Record
	eventually(t, "an answer of the new master", 30*time.Second, func() (err error) {
		rec, err = s.Load(t.Context(), key)
		return err
	})
	if rec.Mark != mark || rec.Fence != fence {
		t.Errorf("got %+v %+v, want what a replica confirmed, %+v %+v", rec.Mark, rec.Fence, mark, fence)
	}
	ack, err := s.Commit(t.Context(), key, fence, commit(mark, "after", "entry"))
	wantKind(t, "a commit to the new master", err, nil)
	if ack.LogLength != 12 {
		t.Errorf("got a log of %d, want 12", ack.LogLength)
	}
	if rep := must[store.CheckReport](t)(s.Check(t.Context(), key)); len(rep.Findings) > 0 {
		t.Errorf("got findings %q, want none", rep.Findings)
	}
	add(t, s, "after the failover")
	if id := <-got; id != "after the failover" {
		t.Errorf("the worker: got %q, want the item", id)
	}
}

func TestWhatAFailoverLosesIsFoundOut(t *testing.T) {
	t.Parallel()
	f := startFailover(t, always...)
	s := openPatient(t, f.url("timeout=1s"))
	fence, mark := owner(t, s, key)
	first := commit(mark, "head", "entry")
	first.Require = store.Durability{Level: store.LevelPower, Replicas: 1}
	kept := must[store.Ack](t)(s.Commit(t.Context(), key, fence, first)).Mark

	// The replica stands still and its link is cut, so the next commit is on the master alone.
	thaw := f.replica.freeze()
	f.master.do("client", "kill", "type", "replica")
	seen := must[store.Ack](t)(s.Commit(t.Context(), key, fence, commit(kept, "lost", "lost"))).Mark
	f.master.kill()
	thaw()
	f.promoted(t)

	lost := commit(seen, "next", "entry")
	var err error
	eventually(t, "an answer of the new master", 30*time.Second, func() error {
		if _, err = s.Commit(t.Context(), key, fence, lost); errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome) {
			return err
		}
		return nil
	})
	wantKind(t, "a commit on what the failover lost", err, store.ErrRegressed)
	c := claim("another")
	c.Seen, c.Force = seen, true
	_, _, err = s.Acquire(t.Context(), key, c)
	wantKind(t, "an acquire that saw it", err, store.ErrRegressed)
	rec := must[store.Record](t)(s.Load(t.Context(), key))
	if rec.Mark != kept || string(rec.Head) != "head" {
		t.Errorf("got %+v %q, want what was copied and nothing on top of it, %+v", rec.Mark, rec.Head, kept)
	}
}
