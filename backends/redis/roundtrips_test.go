package redis

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loophost/loophost/host/store"
)

// calls are how many commands the server was sent, by name.
func (s *server) calls() map[string]int {
	s.t.Helper()
	n := map[string]int{}
	for name, value := range must[map[string]string](s.t)(s.info("commandstats")) {
		var calls int
		if _, err := fmt.Sscanf(value, "calls=%d,", &calls); err == nil {
			n[strings.TrimPrefix(name, "cmdstat_")] = calls
		}
	}
	return n
}

func TestACommitIsOneRoundTripHoweverLongTheLogIs(t *testing.T) {
	server := startServer(t, everysec...)
	p := startProxy(t, server.addr())
	s := openStore(t, "redis://"+p.addr()+"?connections=1")
	for _, messages := range []int{1, 1_000, 20_000} {
		k := store.SessionKey(fmt.Sprint("session of ", messages))
		ack := must[store.Ack](t)(s.Create(t.Context(), k, commit(store.Mark{}, "{}")))
		f, _, err := s.Acquire(t.Context(), k, claim("me"))
		wantKind(t, "acquire", err, nil)
		for left := messages; left > 0; left -= 1_000 {
			c := commit(ack.Mark, "{}")
			for range min(left, 1_000) {
				c.Entries = append(c.Entries, []byte(`{"a":"message"}`))
			}
			ack = must[store.Ack](t)(s.Commit(t.Context(), k, f, c))
		}
		before, sent := server.calls(), p.turns.Load()
		const commits = 50
		for range commits {
			ack = must[store.Ack](t)(s.Commit(t.Context(), k, f, commit(ack.Mark, "head", "one entry")))
		}
		after := server.calls()
		if got := p.turns.Load() - sent; got != commits {
			t.Errorf("%d commits to a log of %d: got %d round trips, want one each", commits, messages, got)
		}
		for name, want := range map[string]int{"evalsha": commits, "hmget": commits, "hset": commits, "hget": 0, "eval": 0} {
			if got := after[name] - before[name]; got != want {
				t.Errorf("%d commits to a log of %d: got %d calls of %s, want %d", commits, messages, got, name, want)
			}
		}
	}
}

// A page reads as many fields as it has entries, wherever it is.
func TestAPageReadsAPage(t *testing.T) {
	s := openStore(t, startServer(t, everysec...).url())
	f, mark := owner(t, s, key)
	for range 20 {
		c := commit(mark, "{}")
		for range 1_000 {
			c.Entries = append(c.Entries, []byte("entry"))
		}
		mark = must[store.Ack](t)(s.Commit(t.Context(), key, f, c)).Mark
	}
	for _, from := range []uint64{1, 10_000, 19_992} {
		page := must[store.LogPage](t)(s.ReadLog(t.Context(), key, from, 10))
		if len(page.Entries) != 10 || page.Entries[0].Seq != from || page.Length != 20_001 {
			t.Errorf("from %d: got %d entries from %d of %d, want 10 from %d of 20001", from, len(page.Entries), page.Entries[0].Seq, page.Length, from)
		}
	}
}

// proxy stands between a client and a server, and counts how often the client spoke
// after the server had: the round trips.
type proxy struct {
	t      testing.TB
	target string
	l      net.Listener
	turns  atomic.Int64
	cut    atomic.Int32 // what the next request meets; see the constants
	conns  atomic.Int64 // made
}

// Cuts of a connection. Each happens once.
const (
	cutNone   = iota
	cutBefore // the next request never reaches the server
	cutAfter  // it does, and its answer never reaches the client
)

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: target, l: l}
	served := make(chan struct{})
	go func() {
		defer close(served)
		p.serve()
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) serve() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return // closed
		}
		p.conns.Add(1)
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go p.pass(client, server)
	}
}

// pass carries one connection. A request is what the client sends until the server speaks.
func (p *proxy) pass(client, server net.Conn) {
	var asked, drop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || drop.Load() {
				break
			}
			asked.Store(false)
			if _, err := client.Write(buf[:n]); err != nil {
				break
			}
		}
		_ = client.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			break
		}
		if !asked.Swap(true) {
			p.turns.Add(1)
			if p.cut.CompareAndSwap(cutBefore, cutNone) {
				break
			}
			if p.cut.CompareAndSwap(cutAfter, cutNone) {
				drop.Store(true)
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			break
		}
	}
	if !drop.Load() {
		_ = server.Close()
	}
	<-done
	_ = server.Close()
	_, _ = io.Copy(io.Discard, client)
	_ = client.Close()
}
