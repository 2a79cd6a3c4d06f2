package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
)

// harness opens handles onto one server, or one Cluster, and writes to its data.
type harness struct {
	name    string
	url     string
	servers []*server // all of them
	direct  goredis.UniversalClient
}

// Crash kills the servers and starts them again on their data. The handles stay: their
// connections are gone.
func (h harness) Crash(context.Context) error {
	for _, s := range h.servers {
		s.kill()
	}
	for _, s := range h.servers {
		s.start()
	}
	return nil
}

func (h harness) Open(ctx context.Context) (store.Store, error) {
	return Open(ctx, Config{URL: h.url})
}

func (h harness) Environment(ctx context.Context) (conformance.Environment, error) {
	values := map[string]string{}
	info, err := h.direct.Info(ctx, "server").Result()
	if err != nil {
		return conformance.Environment{}, err
	}
	values["version"] = parseInfo(info)["redis_version"]
	for _, name := range []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory-policy"} {
		v, err := h.direct.ConfigGet(ctx, name).Result()
		if err != nil {
			return conformance.Environment{}, err
		}
		values[name] = v[name]
	}
	return conformance.Environment{Name: h.name, Values: values}, nil
}

// Forward puts the record at a revision, and the unit of its newest revision with it.
func (h harness) Forward(ctx context.Context, key store.Key, revision uint64) error {
	name := format.Record("loophost", key)
	old, err := h.direct.HMGet(ctx, name, "rev", "head", "last", "log").Result()
	if err != nil {
		return err
	}
	now, err := format.ParseNumber(fmt.Sprint(old[0]))
	if err != nil {
		return err
	}
	text, err := h.direct.HGet(ctx, name, format.UnitField(now)).Result()
	if err != nil {
		return err
	}
	u, err := format.ParseUnit(now, text)
	if err != nil {
		return err
	}
	u.HeadSum = format.HeadSum(u.Birth, revision, []byte(fmt.Sprint(old[1])))
	if text, err = u.Encode(revision); err != nil {
		return err
	}
	n := format.Number(revision)
	return errors.Join(
		h.direct.HSet(ctx, name, format.UnitField(revision), text, "c:"+fmt.Sprint(old[2]), "+"+n+" "+fmt.Sprint(old[3])).Err(),
		h.direct.HSet(ctx, name, "rev", n).Err(),
	)
}

// Damage changes one byte of the first entry that the commit of revision appended.
func (h harness) Damage(ctx context.Context, key store.Key, revision uint64) error {
	name := format.Record("loophost", key)
	for seq := uint64(1); ; seq++ {
		stored, err := h.direct.HGet(ctx, name, format.EntryField(seq)).Result()
		if err != nil {
			return fmt.Errorf("no entry of revision %d: %w", revision, err)
		}
		if strings.HasPrefix(stored, format.Number(revision)+" ") {
			b := []byte(stored)
			b[len(b)-1] ^= 1
			return h.direct.HSet(ctx, name, format.EntryField(seq), b).Err()
		}
	}
}

var (
	_ conformance.Forwarder = harness{}
	_ conformance.Damager   = harness{}
	_ conformance.Crasher   = harness{}
)

func singleHarness(s *server, name, url string) harness {
	return harness{name: name, url: url, servers: []*server{s}, direct: s.client()}
}

// patient is how long an answer may take here: a commit of the limit is 64 MiB, and the
// disk of a busy machine may need its time.
const patient = "timeout=1m"

func TestConformanceAlways(t *testing.T) {
	t.Parallel()
	s := startServer(t, always...)
	conformance.Run(t, singleHarness(s, "redis, appendfsync always", s.url(patient)))
}

// At everysec the server promises its memory alone, and the cases hold it to that.
func TestConformanceEverysec(t *testing.T) {
	t.Parallel()
	s := startServer(t, everysec...)
	conformance.Run(t, singleHarness(s, "redis, appendfsync everysec", s.url(patient)))
}

func TestConformanceOverASocket(t *testing.T) {
	t.Parallel()
	s := startServer(t, everysec...)
	conformance.Run(t, singleHarness(s, "redis, appendfsync everysec, over a socket", "unix://"+s.socket()+"?"+patient))
}
