package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loophost/loophost/host/store"
)

func TestACutConnectionLeavesAnUnknownOutcomeThatResolves(t *testing.T) {
	server := startServer(t, always...)
	p := startProxy(t, server.addr())
	s := openStore(t, "redis://"+p.addr())
	for _, c := range []struct {
		name    string
		cut     int32
		applied bool
	}{
		{"before the server applied it", cutBefore, false},
		{"after the server applied it", cutAfter, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := store.SessionKey(c.name)
			f, mark := owner(t, s, k)
			lost := commit(mark, "lost?", "an entry")
			p.cut.Store(c.cut)
			_, err := s.Commit(t.Context(), k, f, lost)
			wantKind(t, "a commit whose connection is cut", err, store.ErrUnknownOutcome)
			out := must[store.Outcome](t)(s.Resolve(t.Context(), k, f, lost.ID))
			if out.Applied != c.applied {
				t.Errorf("resolved: got applied %v, want %v", out.Applied, c.applied)
			}
			rec := must[store.Record](t)(s.Load(t.Context(), k))
			if rec.Mark != out.Ack.Mark || (rec.LastCommitID == lost.ID) != c.applied {
				t.Errorf("the record has mark %+v and last commit %s, want %+v and the commit there: %v", rec.Mark, rec.LastCommitID, out.Ack.Mark, c.applied)
			}
			_, err = s.Commit(t.Context(), k, f, commit(out.Ack.Mark, "next", "another"))
			wantKind(t, "the next commit, over a new connection", err, nil)
			late := lost
			late.After = mark
			ack, err := s.Commit(t.Context(), k, f, late)
			if c.applied {
				wantKind(t, "the lost commit again", err, nil)
				if ack.Mark != out.Ack.Mark {
					t.Errorf("the lost commit again: got %+v, want its first acknowledgement %+v", ack.Mark, out.Ack.Mark)
				}
			} else {
				wantKind(t, "the lost commit, late", err, store.ErrConflict)
			}
		})
	}
}

func TestEveryWriteThatIsCutSaysSo(t *testing.T) {
	server := startServer(t, everysec...)
	p := startProxy(t, server.addr())
	s := openStore(t, "redis://"+p.addr())
	for _, cut := range []int32{cutBefore, cutAfter} {
		for _, c := range []struct {
			name string
			do   func(k store.Key, f store.Fence) error
		}{
			{"renew", func(k store.Key, f store.Fence) error { return s.Renew(t.Context(), k, f, time.Minute) }},
			{"signal", func(k store.Key, f store.Fence) error {
				return s.Signal(t.Context(), k, store.Signal{Kind: store.SignalStop, Run: f.Run})
			}},
			{"release", func(k store.Key, f store.Fence) error { return s.Release(t.Context(), k, f) }},
			{"delete", func(k store.Key, f store.Fence) error { return s.Delete(t.Context(), k, f) }},
		} {
			k := store.SessionKey(c.name + map[int32]string{cutBefore: " before", cutAfter: " after"}[cut])
			f, _ := owner(t, s, k)
			p.cut.Store(cut)
			wantKind(t, k.ID, c.do(k, f), store.ErrUnknownOutcome)
		}
	}
	f, _ := owner(t, s, key)
	p.cut.Store(cutBefore)
	_, err := s.Load(t.Context(), key)
	wantKind(t, "a load that is cut, which changes nothing", err, store.ErrUnavailable)
	_, err = s.Load(t.Context(), key)
	wantKind(t, "the next load", err, nil)
	wantKind(t, "release", s.Release(t.Context(), key, f), nil)
}

func TestACommitToAKilledServerIsThereAfterItRestarts(t *testing.T) {
	server := startServer(t, always...)
	s := openStore(t, server.url("timeout=2s"))
	f, mark := owner(t, s, key)
	for range 20 {
		mark = must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(mark, "head", "entry"))).Mark
	}
	server.kill()
	_, err := s.Commit(t.Context(), key, f, commit(mark, "to nobody"))
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("a commit to a dead server: got %v, want unavailable or an unknown outcome", err)
	}
	server.start()
	rec := must[store.Record](t)(s.Load(t.Context(), key))
	if rec.Mark != mark || rec.Fence != f || rec.LogLength != 21 {
		t.Errorf("after the restart: got %+v, fence %+v, log %d; want %+v, %+v, 21", rec.Mark, rec.Fence, rec.LogLength, mark, f)
	}
	// The server forgot the scripts; nobody notices.
	_, err = s.Commit(t.Context(), key, f, commit(mark, "head", "entry"))
	wantKind(t, "a commit after the restart", err, nil)
}

func TestAServerThatLostDataIsFoundOut(t *testing.T) {
	server := startServer(t, "--appendonly", "no")
	s := openStore(t, server.url())
	f, mark := owner(t, s, key)
	server.do("bgsave")
	eventually(t, "the snapshot", 10*time.Second, func() error {
		if info := must[map[string]string](t)(server.info("persistence")); info["rdb_bgsave_in_progress"] != "0" {
			return errors.New("it is being written")
		}
		return nil
	})
	seen := must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(mark, "lost", "lost"))).Mark
	server.kill()
	server.start()
	_, err := s.Commit(t.Context(), key, f, commit(seen, "next"))
	wantKind(t, "a commit on what was lost", err, store.ErrRegressed)
	c := claim("another")
	c.Seen, c.Force = seen, true
	_, _, err = s.Acquire(t.Context(), key, c)
	wantKind(t, "an acquire that saw what was lost", err, store.ErrRegressed)
	if rec := must[store.Record](t)(s.Load(t.Context(), key)); rec.Mark != mark || rec.Fence != f {
		t.Errorf("after the refusals: got %+v, %+v; want what the server kept, %+v, %+v", rec.Mark, rec.Fence, mark, f)
	}
}

func TestAFrozenServerHoldsNobodyForLong(t *testing.T) {
	server := startServer(t, always...)
	s := openStore(t, server.url("timeout=300ms"))
	f, mark := owner(t, s, key)
	thaw := server.freeze()
	lost := commit(mark, "lost?", "an entry")
	start := time.Now()
	_, err := s.Commit(t.Context(), key, f, lost)
	wantKind(t, "a commit to a frozen server", err, store.ErrUnknownOutcome)
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(10*time.Millisecond, cancel)
	defer timer.Stop()
	_, err = s.Commit(ctx, key, f, lost)
	if !errors.Is(err, store.ErrUnknownOutcome) && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.Canceled) {
		t.Errorf("a commit that is cancelled meanwhile: got %v, want an unknown outcome or none at all", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("two commits to a frozen server took %s, want about their timeouts", took)
	}
	thaw()
	eventually(t, "an answer from the thawed server", 10*time.Second, func() error {
		_, err := s.Load(t.Context(), key)
		return err
	})
	// What was sent before may be applied: the socket kept it.
	out := must[store.Outcome](t)(s.Resolve(t.Context(), key, f, lost.ID))
	rec := must[store.Record](t)(s.Load(t.Context(), key))
	if rec.Mark != out.Ack.Mark {
		t.Errorf("got mark %+v, want that of the resolution, %+v", rec.Mark, out.Ack.Mark)
	}
	_, err = s.Commit(t.Context(), key, f, commit(out.Ack.Mark, "next"))
	wantKind(t, "the next commit", err, nil)
}
