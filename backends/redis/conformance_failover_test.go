package redis

import (
	"context"
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
// knows both. Sentinels may fail over by themselves when a busy machine keeps a master
// from answering, so which is which is asked.
func (h *sentinelHarness) settled() {
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
			main, err := s.ask("sentinel", "get-master-addr-by-name", "main")
			if err != nil {
				return err
			}
			if !strings.Contains(fmt.Sprint(main), strconv.Itoa(h.master.port)) {
				return fmt.Errorf("a Sentinel names %v", main)
			}
			next, err := s.ask("sentinel", "replicas", "main")
			if err != nil {
				return err
			}
			if said := fmt.Sprint(next); !strings.Contains(said, "port "+strconv.Itoa(h.replica.port)) || !strings.Contains(said, "flags slave ") {
				return fmt.Errorf("a Sentinel says of the heir %s", said)
			}
		}
		return nil
	})
}

// Isolate stops the heir, when it has everything, and cuts its link.
func (h *sentinelHarness) Isolate(context.Context) error {
	h.settled()
	h.master.feeds(h.replica)
	h.thaw = h.replica.freeze()
	_, err := h.master.ask("client", "kill", "type", "replica")
	return err
}

// FailOver brings the killed node back as a replica of its heir.
func (h *sentinelHarness) FailOver(context.Context) error {
	if h.thaw == nil {
		h.settled()
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
	h.settled()
	return nil
}

func TestConformanceFailoverSentinel(t *testing.T) {
	t.Parallel()
	conformance.Run(t, &sentinelHarness{failover: startFailover(t, always...), t: t}, conformance.ProfileCluster)
}
