package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
)

// sentinelHarness opens handles by way of Sentinels, which promote the replica whenever
// the master is killed. The node that was killed comes back as the replica of its heir.
type sentinelHarness struct {
	*failover
	t    testing.TB
	thaw func() // not nil: the replica is isolated
}

var _ conformance.LossyFailover = (*sentinelHarness)(nil)

func (h *sentinelHarness) Open(ctx context.Context) (store.Store, error) {
	return Open(ctx, Config{URL: h.url("timeout=1s"), ReplicaWait: time.Minute})
}

func (h *sentinelHarness) Environment(ctx context.Context) (conformance.Environment, error) {
	return singleHarness(h.master, "redis, Sentinels, appendfsync always", h.url()).Environment(ctx)
}

func (h *sentinelHarness) Copies() int { return 1 }

// settled waits until one server is the master, feeds the other, and every Sentinel
// knows both; then also holds. Sentinels may fail over by themselves when a busy machine
// keeps a master from answering, so which is which is asked each time.
func (h *sentinelHarness) settled(also func(info map[string]string) error) {
	eventually(h.t, "a master that feeds its heir", time.Minute, func() error {
		info, err := h.master.info("replication")
		if err != nil {
			return err
		}
		if info["role"] != "master" {
			h.master, h.replica = h.replica, h.master
			return fmt.Errorf("port %d is a %s", h.replica.port, info["role"])
		}
		if err := counts(info, h.replica, ""); err != nil {
			return err
		}
		for _, s := range h.sentinels {
			if err := h.knows(s); err != nil {
				return err
			}
		}
		return also(info)
	})
}

// knows is nil if a Sentinel names the master, and counts on the replica.
func (h *sentinelHarness) knows(sentinel *server) error {
	main, err := sentinel.ask("sentinel", "get-master-addr-by-name", "main")
	if err != nil {
		return err
	}
	if !strings.Contains(fmt.Sprint(main), strconv.Itoa(h.master.port)) {
		return fmt.Errorf("a Sentinel names %v", main)
	}
	next, err := sentinel.ask("sentinel", "replicas", "main")
	if err != nil {
		return err
	}
	if said := fmt.Sprint(next); !strings.Contains(said, "port "+strconv.Itoa(h.replica.port)) || !strings.Contains(said, "flags slave ") {
		return fmt.Errorf("a Sentinel says of the heir %s", said)
	}
	return nil
}

func fine(map[string]string) error { return nil }

// Isolate stops the heir, when it has everything, and cuts its link. Who is stopped can't
// be promoted, so after that the master stays the master.
func (h *sentinelHarness) Isolate(context.Context) error {
	h.settled(func(info map[string]string) error {
		if err := counts(info, h.replica, ",offset="+info["master_repl_offset"]); err != nil {
			return err
		}
		thaw := h.replica.freeze()
		now, err := h.master.info("replication")
		if err == nil && now["role"] != "master" {
			err = errors.New("the roles have changed")
		}
		if err != nil {
			thaw()
			return err
		}
		h.thaw = thaw
		return nil
	})
	_, err := h.master.ask("client", "kill", "type", "replica")
	return err
}

// FailOver brings the killed node back as a replica of its heir.
func (h *sentinelHarness) FailOver(context.Context) error {
	if h.thaw == nil {
		h.settled(fine)
	}
	h.master.kill()
	if h.thaw != nil {
		h.thaw()
		h.thaw = nil
	}
	h.promoted(h.t)
	h.master, h.replica = h.replica, h.master
	h.replica.args = append(h.replica.args, "--replicaof", "127.0.0.1 "+strconv.Itoa(h.master.port), "--repl-diskless-sync-delay", "0")
	h.replica.start()
	h.settled(fine)
	return nil
}

func TestConformanceFailoverSentinel(t *testing.T) {
	t.Parallel()
	conformance.Run(t, &sentinelHarness{failover: startFailover(t, always...), t: t}, conformance.ProfileCluster)
}
