package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

const dispatches = "dispatch"

func add(t testing.TB, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		wantKind(t, "enqueue "+id, s.Enqueue(t.Context(), dispatches, store.Item{ID: id, Data: []byte("data of " + id)}), nil)
	}
}

// take leases one item, which must come and be id at that delivery.
func take(t testing.TB, s *Store, ttl time.Duration, id string, delivery uint64) store.Leased {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := must[[]store.Leased](t)(s.Lease(ctx, dispatches, "w", ttl, 1))
	if len(got) != 1 || got[0].ID != id || got[0].Delivery != delivery || string(got[0].Data) != "data of "+id {
		t.Fatalf("lease of one: got %+v, want %q at delivery %d", got, id, delivery)
	}
	return got[0]
}

func wantBacklog(t testing.TB, s *Store, waiting, leased uint64) {
	t.Helper()
	if got, want := must[store.Backlog](t)(s.Queued(t.Context(), dispatches)), (store.Backlog{Waiting: waiting, Leased: leased}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Each call is one round trip, whatever waits, and who waits takes no connection from
// those who send.
func TestAQueueCallIsOneRoundTripAndWaitingTakesNoConnection(t *testing.T) {
	server := startServer(t, everysec...)
	p := startProxy(t, server.addr())
	s := openStore(t, "redis://"+p.addr()+"?connections=1")
	for _, waiting := range []int{1, 2_000} {
		for n := range waiting {
			add(t, s, fmt.Sprint(waiting, " ", n))
		}
		// The server learns the scripts.
		got := must[[]store.Leased](t)(s.Lease(t.Context(), dispatches, "w", time.Hour, 1))
		wantKind(t, "extend", s.Extend(t.Context(), dispatches, got[0].Token, time.Hour), nil)
		must[store.Backlog](t)(s.Queued(t.Context(), dispatches))
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"enqueue", func() { add(t, s, fmt.Sprint("new ", waiting)) }},
			{"lease", func() { got = must[[]store.Leased](t)(s.Lease(t.Context(), dispatches, "w", time.Hour, 1)) }},
			{"extend", func() {
				wantKind(t, "extend", s.Extend(t.Context(), dispatches, got[0].Token, time.Hour), nil)
			}},
			{"done", func() { wantKind(t, "done", s.Done(t.Context(), dispatches, got[0].Token), nil) }},
			{"count", func() { must[store.Backlog](t)(s.Queued(t.Context(), dispatches)) }},
		} {
			before := p.turns.Load()
			step.do()
			if n := p.turns.Load() - before; n != 1 {
				t.Errorf("%s with %d waiting: got %d round trips, want 1", step.name, waiting, n)
			}
		}
	}
	const workers = 8
	var group sync.WaitGroup
	got := make([]string, workers)
	for i := range workers {
		group.Go(func() {
			leased, err := s.Lease(t.Context(), "other", "w", time.Hour, 1)
			if err != nil {
				t.Errorf("lease: got %v, want none", err)
				return
			}
			got[i] = leased[0].ID
		})
	}
	eventually(t, "workers that wait", 30*time.Second, func() error {
		if n := strings.Count(fmt.Sprint(server.do("client", "list")), "cmd=xreadgroup"); n != workers {
			return fmt.Errorf("%d of %d wait", n, workers)
		}
		return nil
	})
	for i := range workers { // each hears of its own item
		wantKind(t, "enqueue", s.Enqueue(t.Context(), "other", store.Item{ID: fmt.Sprint(i)}), nil)
	}
	group.Wait()
	slices.Sort(got)
	if want := []string{"0", "1", "2", "3", "4", "5", "6", "7"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A worker that dies between the server's answer and its lease keeps nobody from the item.
func TestWhatWasPickedUpAndNeverHeldIsHandedOut(t *testing.T) {
	t.Parallel()
	server := startServer(t, everysec...)
	s := openStore(t, server.url())
	add(t, s, "before")
	wantKind(t, "done", s.Done(t.Context(), dispatches, take(t, s, time.Hour, "before", 1).Token), nil)
	add(t, s, "a", "b")
	items, _, _, _ := format.QueueKeys("loophost", dispatches)
	got := must[[]goredis.XStream](t)(server.client().XReadGroup(t.Context(), &goredis.XReadGroupArgs{
		Group: "workers", Consumer: "pickup", Streams: []string{items, ">"}, Count: 1,
	}).Result())
	if id := got[0].Messages[0].Values["id"]; id != "a" {
		t.Fatalf("picked up: got %v, want a", id)
	}
	b := take(t, s, time.Hour, "b", 1) // it does not wait for the other one
	wantBacklog(t, s, 1, 1)
	a := take(t, s, time.Hour, "a", 1)
	// The worker comes back late and holds nothing.
	l := leaser{s: s, queue: dispatches, nonce: "late", worker: "w", ttl: 1}
	l.items, l.leases, l.held, _ = format.QueueKeys("loophost", dispatches)
	r := must[reply](t)(s.eval(t.Context(), "lease", store.QueueKey(dispatches), holdScript, []string{l.items, l.leases, l.held}, "late", "w", 1, got[0].Messages[0].ID))
	if late := must[[]store.Leased](t)(l.leased(r)); len(late) != 0 {
		t.Errorf("a late hold: got %+v, want nothing", late)
	}
	for _, one := range []store.Leased{a, b} {
		wantKind(t, "done "+one.ID, s.Done(t.Context(), dispatches, one.Token), nil)
	}
	wantBacklog(t, s, 0, 0)
	if keys := server.do("keys", "*"); len(keys.([]any)) != 1 || fmt.Sprint(keys) != "["+items+"]" {
		t.Errorf("got the keys %v after all is done, want the empty stream alone", keys)
	}
}

func TestAQueueCallThatIsCutSaysSoAndLosesNothing(t *testing.T) {
	t.Parallel()
	server := startServer(t, everysec...)
	p := startProxy(t, server.addr())
	s := openStore(t, "redis://"+p.addr())
	enqueue := func() error {
		return s.Enqueue(t.Context(), dispatches, store.Item{ID: "a", Data: []byte("data of a")})
	}
	for _, cut := range []int32{cutBefore, cutAfter} {
		wantBacklog(t, s, 0, 0)
		p.cut.Store(cut)
		wantKind(t, "an enqueue that is cut", enqueue(), store.ErrUnknownOutcome)
		wantKind(t, "again", enqueue(), nil)
		wantBacklog(t, s, 1, 0)
		delivery := uint64(1)
		wantBacklog(t, s, 1, 0)
		p.cut.Store(cut)
		_, err := s.Lease(t.Context(), dispatches, "w", time.Millisecond, 1)
		wantKind(t, "a lease that is cut", err, store.ErrUnknownOutcome)
		if cut == cutAfter {
			delivery++
		}
		l := take(t, s, time.Hour, "a", delivery)
		wantBacklog(t, s, 0, 1)
		p.cut.Store(cut)
		wantKind(t, "an extend that is cut", s.Extend(t.Context(), dispatches, l.Token, time.Hour), store.ErrUnknownOutcome)
		wantBacklog(t, s, 0, 1)
		p.cut.Store(cut)
		wantKind(t, "a return that is cut", s.Return(t.Context(), dispatches, l.Token), store.ErrUnknownOutcome)
		if cut == cutBefore {
			wantKind(t, "again", s.Return(t.Context(), dispatches, l.Token), nil)
		} else {
			wantKind(t, "again", s.Return(t.Context(), dispatches, l.Token), store.ErrFenced)
		}
		l = take(t, s, time.Hour, "a", delivery+1)
		wantBacklog(t, s, 0, 1)
		p.cut.Store(cut)
		wantKind(t, "a done that is cut", s.Done(t.Context(), dispatches, l.Token), store.ErrUnknownOutcome)
		if cut == cutBefore {
			wantBacklog(t, s, 0, 1)
			wantKind(t, "again", s.Done(t.Context(), dispatches, l.Token), nil)
		}
		wantBacklog(t, s, 0, 0)
	}
}

// Also what was on its way to a worker that waits is there after the server restarts.
func TestAQueueSurvivesAKilledServer(t *testing.T) {
	t.Parallel()
	server := startServer(t, always...)
	s := openStore(t, server.url())
	waited := make(chan error, 1)
	go func() {
		_, err := s.Lease(t.Context(), dispatches, "one that waits", time.Hour, 1)
		waited <- err
	}()
	eventually(t, "a worker that waits", 30*time.Second, func() error {
		if !strings.Contains(fmt.Sprint(server.do("client", "list")), "cmd=xreadgroup") {
			return errors.New("nobody waits")
		}
		return nil
	})
	server.kill()
	if err := <-waited; !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("a wait whose server is killed: got %v, want unavailable", err)
	}
	server.start()
	other := openStore(t, server.url())
	add(t, other, "a", "b")
	l := take(t, other, time.Hour, "a", 1)
	server.kill()
	server.start()
	wantBacklog(t, other, 1, 1)
	wantKind(t, "done after the restart", other.Done(t.Context(), dispatches, l.Token), nil)
	take(t, s, time.Hour, "b", 1) // the handle from before
}

func TestAUserWithoutStreamsHasAStoreWithoutQueues(t *testing.T) {
	s := startServer(t, everysec...)
	s.do("acl", "setuser", "old", "on", ">"+secret, "~loophost:*",
		"+@hash", "+@sortedset", "+@scripting", "+@connection", "+info", "+time", "+unlink", "+scan", "+wait")
	st := openStore(t, "redis://old:"+secret+"@"+s.addr())
	owner(t, st, key)
	if d := must[store.Description](t)(st.Describe(t.Context())); d.Has("queue") {
		t.Errorf("got the capabilities %q, want no queue among them", d.Capabilities)
	}
	wantSaid(t, "enqueue", st.Enqueue(t.Context(), dispatches, store.Item{ID: "a"}), store.ErrUnsupported, "+@stream")
	_, err := st.Lease(t.Context(), dispatches, "w", time.Hour, 1)
	wantSaid(t, "lease", err, store.ErrUnsupported, "+@stream")
}

// What is in the queue of a full server can be done, and that makes room.
func TestAFullServerHandsOutWhatItHas(t *testing.T) {
	t.Parallel()
	server := startServer(t, everysec...)
	s := openStore(t, server.url())
	add(t, s, "a", "b")
	take(t, s, time.Millisecond, "a", 1)
	server.do("config", "set", "maxmemory", "1mb")
	wantSaid(t, "enqueue", s.Enqueue(t.Context(), dispatches, store.Item{ID: "c"}), store.ErrUnavailable, "CONFIG SET maxmemory")
	eventually(t, "the end of a lease", 30*time.Second, func() error {
		if b := must[store.Backlog](t)(s.Queued(t.Context(), dispatches)); b.Leased > 0 {
			return errors.New("it is leased")
		}
		return nil
	})
	a := take(t, s, time.Hour, "a", 2)
	b := take(t, s, time.Hour, "b", 1)
	wantSaid(t, "return", s.Return(t.Context(), dispatches, b.Token), store.ErrUnavailable, "CONFIG SET maxmemory")
	for _, l := range []store.Leased{a, b} {
		wantKind(t, "done "+l.ID, s.Done(t.Context(), dispatches, l.Token), nil)
	}
	wantBacklog(t, s, 0, 0)
}

func TestWhatAnotherProgramWroteIntoAQueueIsCorrupt(t *testing.T) {
	server := startServer(t, everysec...)
	s := openStore(t, server.url())
	items, leases, _, ids := format.QueueKeys("loophost", dispatches)
	foreign := fmt.Sprint(server.do("xadd", items, "*", "not", "ours"))
	add(t, s, "a")
	_, err := s.Lease(t.Context(), dispatches, "w", time.Hour, 1)
	wantSaid(t, "lease", err, store.ErrCorrupt, "XDEL "+items+" "+foreign)
	a := take(t, s, time.Hour, "a", 1)
	server.do("xdel", items, foreign, strings.Split(a.Token, ".")[0])
	add(t, s, "a") // its id points at an entry that was removed
	wantKind(t, "done of what was removed", s.Done(t.Context(), dispatches, a.Token), nil)
	again := take(t, s, time.Hour, "a", 1)
	wantKind(t, "done", s.Done(t.Context(), dispatches, again.Token), nil)
	server.do("del", items)
	server.do("set", items, "not ours")
	wantSaid(t, "enqueue", s.Enqueue(t.Context(), dispatches, store.Item{ID: "b"}), store.ErrCorrupt, "another type")
	_, err = s.Lease(t.Context(), dispatches, "w", time.Hour, 1)
	wantSaid(t, "lease", err, store.ErrCorrupt, "another type")
	server.do("del", items, leases, ids)
	add(t, s, "b")
	take(t, s, time.Hour, "b", 1)
}

// A queue that is removed under workers that wait is made again by the next item.
func TestAQueueThatIsRemovedUnderAWaitGoesOn(t *testing.T) {
	server := startServer(t, everysec...)
	s := openStore(t, server.url())
	got := make(chan error, 1)
	go func() {
		l, err := s.Lease(t.Context(), dispatches, "w", time.Hour, 1)
		if err == nil && l[0].ID != "a" {
			err = fmt.Errorf("got %q, want a", l[0].ID)
		}
		got <- err
	}()
	eventually(t, "a worker that waits", 30*time.Second, func() error {
		if !strings.Contains(fmt.Sprint(server.do("client", "list")), "cmd=xreadgroup") {
			return errors.New("nobody waits")
		}
		return nil
	})
	items, _, _, _ := format.QueueKeys("loophost", dispatches)
	server.do("del", items)
	add(t, s, "a")
	wantKind(t, "the lease", <-got, nil)
}
