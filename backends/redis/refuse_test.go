package redis

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

const secret = "correct-horse-battery-staple"

// wantSaid checks an error's kind and words, and that it holds no password.
func wantSaid(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	wantKind(t, what, err, kind)
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: got %q, want it to say %q", what, err, w)
		}
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("%s: the password is in the error %q", what, err)
	}
}

func open(t *testing.T, url string) error {
	t.Helper()
	s, err := Open(t.Context(), Config{URL: url})
	if err == nil {
		wantKind(t, "close", s.Close(), nil)
	}
	return err
}

func TestAServerThatDoesNotFitIsRefused(t *testing.T) {
	cluster := []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"}
	for _, c := range []struct {
		name  string
		args  []string
		url   func(*server) string
		kind  error
		words []string
	}{
		{
			"it may evict records",
			[]string{"--maxmemory-policy", "allkeys-lru"},
			func(s *server) string { return s.url() },
			store.ErrUnsupported,
			[]string{"allkeys-lru", "CONFIG SET maxmemory-policy noeviction"},
		},
		{
			"it wants a password and gets none",
			[]string{"--requirepass", secret},
			func(s *server) string { return s.url() },
			store.ErrUnavailable,
			[]string{"password_file"},
		},
		{
			"it wants another password",
			[]string{"--requirepass", "another"},
			func(s *server) string { return "redis://default:" + secret + "@" + s.addr() },
			store.ErrUnavailable,
			[]string{"refuses the user or the password"},
		},
		{
			"it knows no such user",
			nil,
			func(s *server) string { return "redis://nobody:" + secret + "@" + s.addr() },
			store.ErrUnavailable,
			[]string{"refuses the user or the password"},
		},
		{
			"it has no such database",
			nil,
			func(s *server) string { return "redis://" + s.addr() + "/99" },
			store.ErrUnavailable,
			[]string{"no such database", "/99"},
		},
		{
			"it is part of a Cluster",
			cluster,
			func(s *server) string { return s.url() },
			store.ErrUnsupported,
			[]string{"redis+cluster://"},
		},
		{
			"it is no Cluster",
			nil,
			func(s *server) string { return "redis+cluster://" + s.addr() },
			store.ErrUnsupported,
			[]string{"use redis://"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantSaid(t, "open", open(t, c.url(startServer(t, c.args...))), c.kind, c.words...)
		})
	}
}

func TestAServerThatIsNotThereIsUnavailable(t *testing.T) {
	binaryOf(t, "redis-server") // so that this test is not the only one that runs without it
	wantSaid(t, "open", open(t, "redis://127.0.0.1:"+strconv.Itoa(freePort(t))), store.ErrUnavailable, "can't be reached")
	wantSaid(t, "open a socket", open(t, "unix://"+filepath.Join(t.TempDir(), "none")), store.ErrUnavailable, "can't be reached")
}

func TestAReplicaIsRefused(t *testing.T) {
	master := startServer(t)
	replica := startServer(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(master.port))
	wantSaid(t, "open", open(t, replica.url()), store.ErrUnavailable, "read-only replica", strconv.Itoa(master.port), "redis+sentinel://")
}

func TestAMasterThatBecomesAReplicaTakesNothing(t *testing.T) {
	other := startServer(t)
	s := startServer(t)
	st := openStore(t, s.url())
	f, mark := owner(t, st, key)
	s.do("replicaof", "127.0.0.1", other.port)
	_, err := st.Commit(t.Context(), key, f, commit(mark, "next"))
	wantSaid(t, "a commit", err, store.ErrUnavailable, "replica")
}

func TestPermissionsAreTriedAtOpen(t *testing.T) {
	s := startServer(t, always...)
	s.do("acl", "setuser", "most", "on", ">"+secret, "~loophost:*", "+@all", "-hdel")
	s.do("acl", "setuser", "keys", "on", ">"+secret, "~other:*", "+@all")
	s.do("acl", "setuser", "least", "on", ">"+secret, "~loophost:*",
		"+@hash", "+@sortedset", "+@stream", "+@scripting", "+@connection", "+info", "+time", "+unlink", "+scan", "+wait")
	url := func(user string) string { return "redis://" + user + ":" + secret + "@" + s.addr() }
	wantSaid(t, "a user without HDEL", open(t, url("most")), store.ErrUnavailable, "ACL SETUSER", "NOPERM")
	wantSaid(t, "a user of other keys", open(t, url("keys")), store.ErrUnavailable, "ACL SETUSER", "NOPERM")

	st := openStore(t, url("least"))
	d := must[store.Description](t)(st.Describe(t.Context()))
	if d.Durability.Level != store.LevelMemory || !strings.Contains(d.Probe, "+config|get") {
		t.Errorf("a user without CONFIG GET: got %s, %q; want memory and how to allow it", d.Durability, d.Probe)
	}
	if strings.Contains(d.Location, secret) {
		t.Errorf("the password is in the location %q", d.Location)
	}
	f, mark := owner(t, st, key)
	mark = must[store.Ack](t)(st.Commit(t.Context(), key, f, commit(mark, "head", "one", "two"))).Mark
	wantKind(t, "renew", st.Renew(t.Context(), key, f, time.Minute), nil)
	must[store.ListPage](t)(st.List(t.Context(), store.Query{Kind: store.KindSession}))
	must[store.CheckReport](t)(st.Check(t.Context(), key))
	must[int](t)(st.Reindex(t.Context(), store.KindSession))
	wantKind(t, "delete", st.Delete(t.Context(), key, f), nil)
	waited := make(chan error, 1)
	go func() {
		l, err := st.Lease(t.Context(), dispatches, "w", time.Millisecond, 1)
		if err == nil {
			l, err = st.Lease(t.Context(), dispatches, "w", time.Hour, 1)
		}
		if err == nil {
			err = errors.Join(st.Extend(t.Context(), dispatches, l[0].Token, time.Hour), st.Return(t.Context(), dispatches, l[0].Token))
		}
		waited <- err
	}()
	add(t, st, "a")
	wantKind(t, "leases, an extension and a return", <-waited, nil)
	wantKind(t, "done", st.Done(t.Context(), dispatches, take(t, st, time.Hour, "a", 3).Token), nil)
	wantBacklog(t, st, 0, 0)

	s.do("acl", "setuser", "least", "-evalsha")
	_, err := st.Commit(t.Context(), key, f, commit(mark, "next"))
	wantSaid(t, "a user that lost EVALSHA", err, store.ErrUnavailable, "ACL SETUSER")
}

func TestAnotherProgramsKeyIsCorruptAndStays(t *testing.T) {
	s := startServer(t)
	st := openStore(t, s.url())
	s.do("set", format.Record("loophost", key), "not ours")
	_, err := st.Create(t.Context(), key, commit(store.Mark{}, "head"))
	wantSaid(t, "create", err, store.ErrCorrupt, "another type", "prefix=")
	_, err = st.Load(t.Context(), key)
	wantSaid(t, "load", err, store.ErrCorrupt, "another type")
	if got := s.do("get", format.Record("loophost", key)); got != "not ours" {
		t.Errorf("got %v there, want it untouched", got)
	}
	s.do("del", format.Index("loophost", store.KindSession))
	s.do("set", format.Index("loophost", store.KindSession), "not ours")
	wantSaid(t, "open", open(t, s.url()), store.ErrCorrupt, "another type")
}

func TestAFullServerTakesNothingAndCanBeRead(t *testing.T) {
	s := startServer(t, always...)
	st := openStore(t, s.url())
	f, mark := owner(t, st, key)
	s.do("config", "set", "maxmemory", "1mb")
	_, err := st.Commit(t.Context(), key, f, commit(mark, "next", "an entry"))
	wantSaid(t, "a commit", err, store.ErrUnavailable, "CONFIG SET maxmemory", "nothing was written")
	again := openStore(t, s.url())
	if rec := must[store.Record](t)(again.Load(t.Context(), key)); rec.Mark != mark {
		t.Errorf("got mark %+v, want %+v", rec.Mark, mark)
	}
	s.do("config", "set", "maxmemory", "0")
	_, err = st.Commit(t.Context(), key, f, commit(mark, "next", "an entry"))
	wantKind(t, "a commit with room again", err, nil)
}

func TestAServerWithoutEnoughReplicasTakesNothing(t *testing.T) {
	s := startServer(t, "--min-replicas-to-write", "1")
	err := func() error {
		st, err := Open(t.Context(), Config{URL: s.url()})
		if err != nil {
			return err
		}
		defer st.Close()
		_, err = st.Create(t.Context(), key, commit(store.Mark{}, "head"))
		return err
	}()
	wantSaid(t, "create", err, store.ErrUnavailable, "min-replicas-to-write")
}

func TestSettingsDecideWhatIsPromised(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		want  store.Level
		words string
	}{
		{"flushed before each answer", always, store.LevelPower, "flushes each commit"},
		{"flushed each second", everysec, store.LevelMemory, "two seconds"},
		{"flushed when the system likes", []string{"--appendonly", "yes", "--appendfsync", "no"}, store.LevelMemory, "thirty seconds"},
		{"no file", []string{"--appendonly", "no"}, store.LevelMemory, "CONFIG SET appendonly yes"},
		{"not flushed during a rewrite", append([]string{"--no-appendfsync-on-rewrite", "yes"}, always...), store.LevelMemory, "CONFIG SET no-appendfsync-on-rewrite no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := openStore(t, startServer(t, c.args...).url())
			d := must[store.Description](t)(st.Describe(t.Context()))
			if d.Durability.Level != c.want || !strings.Contains(d.Probe, c.words) {
				t.Errorf("got %s, %q; want %s and the words %q", d.Durability, d.Probe, c.want, c.words)
			}
			create := commit(store.Mark{}, "head")
			create.Require.Level = store.LevelPower
			_, err := st.Create(t.Context(), key, create)
			if c.want == store.LevelPower {
				wantKind(t, "a create that requires power", err, nil)
			} else {
				wantSaid(t, "a create that requires power", err, store.ErrNotDurable, "required power, reached memory")
			}
		})
	}
}

func TestAPromiseIsProbedAgainOnReconnect(t *testing.T) {
	s := startServer(t, always...)
	st := openStore(t, s.url())
	f, mark := owner(t, st, key)
	ack := must[store.Ack](t)(st.Commit(t.Context(), key, f, commit(mark, "head")))
	if ack.Durability.Level != store.LevelPower {
		t.Errorf("got %s, want power", ack.Durability)
	}
	s.kill()
	s.args = everysec
	s.start()
	rec := must[store.Record](t)(st.Load(t.Context(), key))
	next := commit(rec.Mark, "next")
	next.Require.Level = store.LevelPower
	_, err := st.Commit(t.Context(), key, f, next)
	wantKind(t, "a commit that requires power", err, store.ErrNotDurable)
	ack = must[store.Ack](t)(st.Commit(t.Context(), key, f, commit(rec.Mark, "next")))
	if ack.Durability.Level != store.LevelMemory {
		t.Errorf("after the restart: got %s, want memory", ack.Durability)
	}
}

func TestReplicasAreWaitedForWhenRequired(t *testing.T) {
	t.Parallel()
	master := startServer(t, always...)
	replica := startServer(t, append([]string{"--replicaof", "127.0.0.1 " + strconv.Itoa(master.port)}, always...)...)
	master.feeds(replica)
	st := openPatient(t, master.url())
	if d := must[store.Description](t)(st.Describe(t.Context())); d.Durability.Replicas != 1 {
		t.Errorf("got %s, want one replica", d.Durability)
	}
	f, mark := owner(t, st, key)
	c := commit(mark, "head", "entry")
	c.Require = store.Durability{Level: store.LevelPower, Replicas: 1}
	ack := must[store.Ack](t)(st.Commit(t.Context(), key, f, c))
	if ack.Durability.Replicas != 1 {
		t.Errorf("got %s, want one replica", ack.Durability)
	}
	again := must[store.Ack](t)(st.Commit(t.Context(), key, f, c))
	if again.Mark != ack.Mark || again.Durability.Replicas != 1 {
		t.Errorf("the same commit again: got %+v %s, want %+v and one replica", again.Mark, again.Durability, ack.Mark)
	}
	thaw := replica.freeze()
	defer thaw()
	st = openWith(t, Config{URL: master.url(), ReplicaWait: 300 * time.Millisecond})
	next := commit(ack.Mark, "head", "entry")
	next.Require = c.Require
	_, err := st.Commit(t.Context(), key, f, next)
	wantKind(t, "a commit while the replica is frozen", err, store.ErrNotDurable)
	_, err = st.Commit(t.Context(), key, f, next)
	wantKind(t, "the same commit again, which is applied and still not copied", err, store.ErrNotDurable)
	if ack, err = st.Commit(t.Context(), key, f, commit(must[store.Record](t)(st.Load(t.Context(), key)).Mark, "head")); err != nil || ack.Durability.Replicas != 0 {
		t.Errorf("a commit that requires none: got %s, %v; want no replica and no error", ack.Durability, err)
	}
}

// A server of before 7.0 is played: none is installed.
func TestAnOldServerIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			info := "# Server\r\nredis_version:6.2.14\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n"
			answer := "$" + strconv.Itoa(len(info)) + "\r\n" + info + "\r\n"
			buf := make([]byte, 4096)
			for {
				n, err := c.Read(buf)
				if err != nil {
					break
				}
				reply := "-ERR unknown command\r\n"
				if strings.Contains(strings.ToLower(string(buf[:n])), "info") {
					reply = answer
				}
				if _, err := c.Write([]byte(reply)); err != nil {
					break
				}
			}
			_ = c.Close()
		}
	}()
	wantSaid(t, "open", open(t, "redis://"+l.Addr().String()+"?timeout=2s"), store.ErrUnsupported, "6.2.14", "7.0")
	wantKind(t, "close", l.Close(), nil)
	<-done
}

func TestAPasswordComesFromAFileOrTheCaller(t *testing.T) {
	s := startServer(t, "--requirepass", secret)
	file := filepath.Join(t.TempDir(), "password")
	wantKind(t, "write", os.WriteFile(file, []byte(secret+"\n"), 0o600), nil)
	openStore(t, s.url("password_file="+file))
	openWith(t, Config{URL: s.url(), Password: secret})
	openStore(t, "redis://:"+secret+"@"+s.addr())
	wantSaid(t, "a file that is not there", open(t, s.url("password_file="+file+".none")), store.ErrUnsupported, "password")
}

func TestOpenUnderAnEndedContextConnectsToNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, Config{URL: "redis://127.0.0.1:1"})
	wantKind(t, "open", err, context.Canceled)
}

func TestPrefixesAndDatabasesKeepStoresApart(t *testing.T) {
	s := startServer(t)
	stores := []*Store{openStore(t, s.url()), openStore(t, s.url("prefix=other")), openStore(t, "redis://"+s.addr()+"/1")}
	for i, st := range stores {
		head := strconv.Itoa(i)
		must[store.Ack](t)(st.Create(t.Context(), key, commit(store.Mark{}, head)))
	}
	for i, st := range stores {
		if rec := must[store.Record](t)(st.Load(t.Context(), key)); string(rec.Head) != strconv.Itoa(i) {
			t.Errorf("store %d: got the head %q, want %d", i, rec.Head, i)
		}
	}
}
