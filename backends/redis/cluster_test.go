package redis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
)

const slots = 16384

// startCluster starts n masters that share all slots.
func startCluster(t testing.TB, n int, args ...string) []*server {
	t.Helper()
	nodes := make([]*server, n)
	for i := range nodes {
		nodes[i] = startServer(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000",
		}, args...)...)
		nodes[i].do("cluster", "set-config-epoch", i+1)
		nodes[i].do("cluster", "addslotsrange", i*slots/n, (i+1)*slots/n-1)
	}
	for _, other := range nodes[1:] {
		nodes[0].do("cluster", "meet", "127.0.0.1", other.port)
	}
	for _, node := range nodes {
		eventually(t, "a whole Cluster", 30*time.Second, func() error {
			info, err := node.info("cluster")
			if err != nil {
				return err
			}
			if info["cluster_state"] != "ok" || info["cluster_known_nodes"] != strconv.Itoa(n) {
				return fmt.Errorf("state %s, %s nodes", info["cluster_state"], info["cluster_known_nodes"])
			}
			return nil
		})
	}
	return nodes
}

func clusterURL(nodes []*server, options ...string) string {
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.addr())
	}
	return withOptions("redis+cluster://"+strings.Join(addrs, ","), options)
}

func TestConformanceCluster(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, 3, everysec...)
	direct := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{nodes[0].addr()}, DisableIdentity: true, Protocol: 2})
	defer direct.Close()
	conformance.Run(t, harness{name: "Redis Cluster of 3, appendfsync everysec", url: clusterURL(nodes, patient), servers: nodes, direct: direct})
}

func TestAClusterSpreadsRecordsAndListsThemAll(t *testing.T) {
	nodes := startCluster(t, 3, always...)
	s := openStore(t, clusterURL(nodes[:1])) // one address leads to all
	d := must[store.Description](t)(s.Describe(t.Context()))
	if d.Durability.Level != store.LevelPower {
		t.Errorf("got %s, want power: all nodes flush", d.Durability)
	}
	const records = 40
	for i := range records {
		k := store.SessionKey(fmt.Sprint("session ", i))
		f, mark := owner(t, s, k)
		mark = must[store.Ack](t)(s.Commit(t.Context(), k, f, commit(mark, "head", "entry"))).Mark
		if rec := must[store.Record](t)(s.Load(t.Context(), k)); rec.Mark != mark {
			t.Errorf("%s: got %+v, want %+v", k.ID, rec.Mark, mark)
		}
	}
	for i, n := range nodes {
		if keys := n.do("dbsize").(int64); keys == 0 || keys >= records {
			t.Errorf("node %d holds %d keys, want some of %d", i, keys, records)
		}
	}
	wantListed(t, s, records)
	// The index is lost, and made again from the records on all nodes.
	for _, n := range nodes {
		_ = n.client().Del(t.Context(), format.Index("loophost", store.KindSession)).Err() // two of them have it not
	}
	wantListed(t, s, 0)
	if added := must[int](t)(s.Reindex(t.Context(), store.KindSession)); added != records {
		t.Errorf("reindexed %d records, want %d", added, records)
	}
	wantListed(t, s, records)
}

func wantListed(t *testing.T, s *Store, want int) {
	t.Helper()
	page := must[store.ListPage](t)(s.List(t.Context(), store.Query{Kind: store.KindSession, Limit: 1000}))
	for _, it := range page.Items {
		wantKind(t, "listed "+it.Record.Key.ID, it.Err, nil)
	}
	if len(page.Items) != want {
		t.Errorf("listed %d records, want %d", len(page.Items), want)
	}
}

func TestAClusterPromisesTheLeastOfItsNodes(t *testing.T) {
	nodes := startCluster(t, 3, always...)
	nodes[2].do("config", "set", "appendfsync", "everysec")
	d := must[store.Description](t)(openStore(t, clusterURL(nodes)).Describe(t.Context()))
	if d.Durability.Level != store.LevelMemory {
		t.Errorf("got %s, want memory", d.Durability)
	}
}

// A slot that moves to another node takes its records along; the client follows.
func TestARecordThatMovesIsFollowed(t *testing.T) {
	nodes := startCluster(t, 3, everysec...)
	s := openStore(t, clusterURL(nodes))
	f, mark := owner(t, s, key)
	name := format.Record("loophost", key)
	slot := nodes[0].do("cluster", "keyslot", name).(int64)
	from := int(slot) * 3 / slots
	to := (from + 1) % 3
	id := func(i int) string { return nodes[i].do("cluster", "myid").(string) }

	nodes[to].do("cluster", "setslot", slot, "importing", id(from))
	nodes[from].do("cluster", "setslot", slot, "migrating", id(to))
	mark = must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(mark, "while the slot moves", "entry"))).Mark
	nodes[from].do("migrate", "127.0.0.1", nodes[to].port, name, 0, 5000)
	// The record is on the new node, and the old one still owns the slot.
	mark = must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(mark, "while the slot moves on", "entry"))).Mark
	for _, n := range nodes {
		n.do("cluster", "setslot", slot, "node", id(to))
	}
	eventually(t, "a commit on the new node", 20*time.Second, func() error {
		rec, err := s.Load(t.Context(), key)
		if err != nil {
			return err
		}
		if rec.Mark != mark {
			t.Fatalf("got %+v, want %+v", rec.Mark, mark)
		}
		ack, err := s.Commit(t.Context(), key, f, commit(mark, "after the move", "entry"))
		if err == nil {
			mark = ack.Mark
		}
		return err
	})
	rep := must[store.CheckReport](t)(s.Check(t.Context(), key))
	if len(rep.Findings) > 0 || rep.Entries != 4 {
		t.Errorf("got %+v, want four whole entries", rep)
	}
}

// A worker that waits hears of an item also when its queue has moved to another node.
func TestAQueueThatMovesIsFollowed(t *testing.T) {
	nodes := startCluster(t, 3, everysec...)
	s := openStore(t, clusterURL(nodes))
	items, leases, held, ids := format.QueueKeys("loophost", dispatches)
	slot := nodes[0].do("cluster", "keyslot", items).(int64)
	for _, k := range []string{leases, held, ids} {
		if got := nodes[0].do("cluster", "keyslot", k); got != slot {
			t.Errorf("%s: got the slot %v, want %d as of %s", k, got, slot, items)
		}
	}
	from := int(slot) * 3 / slots
	to := (from + 1) % 3
	id := func(i int) string { return nodes[i].do("cluster", "myid").(string) }
	add(t, s, "leased")
	l := take(t, s, time.Hour, "leased", 1)
	got := make(chan string, 1)
	go func() {
		for t.Context().Err() == nil {
			l, err := s.Lease(t.Context(), dispatches, "w", time.Hour, 1)
			if err == nil {
				got <- l[0].ID
				return
			}
			if !errors.Is(err, store.ErrUnavailable) {
				got <- err.Error()
				return
			}
		}
	}()
	eventually(t, "a worker that waits", 30*time.Second, func() error {
		if !strings.Contains(fmt.Sprint(nodes[from].do("client", "list")), "cmd=xreadgroup") {
			return errors.New("nobody waits")
		}
		return nil
	})
	nodes[to].do("cluster", "setslot", slot, "importing", id(from))
	nodes[from].do("cluster", "setslot", slot, "migrating", id(to))
	nodes[from].do("migrate", "127.0.0.1", nodes[to].port, "", 0, 5000, "keys", items, leases, held, ids)
	for _, n := range nodes {
		n.do("cluster", "setslot", slot, "node", id(to))
	}
	eventually(t, "an item on the new node", 20*time.Second, func() error {
		return s.Enqueue(t.Context(), dispatches, store.Item{ID: "moved"})
	})
	if id := <-got; id != "moved" {
		t.Errorf("the worker: got %q, want the item", id)
	}
	wantKind(t, "done of what was leased before the move", s.Done(t.Context(), dispatches, l.Token), nil)
}

func TestAClusterWithoutANodeIsUnavailable(t *testing.T) {
	nodes := startCluster(t, 3, everysec...)
	s := openStore(t, clusterURL(nodes, "timeout=500ms"))
	f, mark := owner(t, s, key)
	slot := nodes[0].do("cluster", "keyslot", format.Record("loophost", key)).(int64)
	nodes[int(slot)*3/slots].kill()
	_, err := s.Commit(t.Context(), key, f, commit(mark, "next"))
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("got %v, want unavailable or an unknown outcome", err)
	}
	_, err = s.Load(t.Context(), key)
	wantKind(t, "a load", err, store.ErrUnavailable)
}

func TestTheHeirOfAClusterNodeIsFound(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, 3, always...)
	s := openPatient(t, clusterURL(nodes, "timeout=500ms"))
	slot := nodes[0].do("cluster", "keyslot", format.Record("loophost", key)).(int64)
	old := nodes[int(slot)*3/slots]
	heir := startServer(t, append([]string{
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0",
	}, always...)...)
	heir.do("cluster", "meet", "127.0.0.1", old.port)
	id := old.do("cluster", "myid")
	eventually(t, "an heir that knows the Cluster", 30*time.Second, func() error {
		_, err := heir.ask("cluster", "replicate", id)
		return err
	})
	old.feeds(heir)
	f, mark := owner(t, s, key)
	c := commit(mark, "head", "entry")
	c.Require.Replicas = 1
	mark = must[store.Ack](t)(s.Commit(t.Context(), key, f, c)).Mark
	old.kill()
	var rec store.Record
	eventually(t, "an answer of the heir", 60*time.Second, func() (err error) {
		rec, err = s.Load(t.Context(), key)
		return err
	})
	if rec.Mark != mark || rec.Fence != f {
		t.Errorf("got %+v %+v, want what a replica confirmed, %+v %+v", rec.Mark, rec.Fence, mark, f)
	}
	_, err := s.Commit(t.Context(), key, f, commit(mark, "next", "entry"))
	wantKind(t, "a commit to the heir", err, nil)
}
