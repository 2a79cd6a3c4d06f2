package redis

import (
	"context"
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
	name   string
	url    string
	direct goredis.UniversalClient
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
	names := format.NamesOf("loophost", key)
	now, err := h.direct.HGet(ctx, names.Record, "rev").Result()
	if err != nil {
		return err
	}
	r, u, err := h.unit(ctx, names, now)
	if err != nil {
		return err
	}
	parsed, err := format.ParseUnit(r, u[1], u[3])
	if err != nil {
		return err
	}
	head, err := h.direct.HGet(ctx, names.Record, "head").Result()
	if err != nil {
		return err
	}
	parsed.HeadSum = format.HeadSum(parsed.Birth, revision, []byte(head))
	text, sum, err := parsed.Encode(revision)
	if err != nil {
		return err
	}
	n := format.Number(revision)
	// A stream takes no id below its last one, so the history is written again.
	all, err := h.direct.XRange(ctx, names.History, "-", "+").Result()
	if err != nil {
		return err
	}
	if err := h.direct.Del(ctx, names.History).Err(); err != nil {
		return err
	}
	for _, m := range all {
		at, _, err := format.ParseID(m.ID)
		if err != nil || at >= revision {
			continue
		}
		if err := h.direct.XAdd(ctx, &goredis.XAddArgs{Stream: names.History, ID: m.ID, Values: m.Values}).Err(); err != nil {
			return err
		}
	}
	if err := h.direct.XAdd(ctx, &goredis.XAddArgs{Stream: names.History, ID: n + "-0", Values: []string{"unit", text, "sum", sum, "log", u[5]}}).Err(); err != nil {
		return err
	}
	return h.direct.HSet(ctx, names.Record, "rev", n, "headrev", n, "headsum", parsed.HeadSum).Err()
}

// unit is the element of the history that made revision.
func (h harness) unit(ctx context.Context, names format.Names, revision string) (uint64, []string, error) {
	found, err := h.direct.XRange(ctx, names.History, revision+"-0", revision+"-0").Result()
	if err != nil || len(found) != 1 {
		return 0, nil, fmt.Errorf("revision %s in the history: got %d elements, %w", revision, len(found), err)
	}
	var fields []string
	for _, name := range []string{"unit", "sum", "log"} {
		fields = append(fields, name, fmt.Sprint(found[0].Values[name]))
	}
	n, err := format.ParseNumber(revision)
	return n, fields, err
}

// Damage changes one byte of the first entry that the commit of revision appended. A
// stream's elements can't be changed, so its log is written again.
func (h harness) Damage(ctx context.Context, key store.Key, revision uint64) error {
	names := format.NamesOf("loophost", key)
	all, err := h.direct.XRange(ctx, names.Log, "-", "+").Result()
	if err != nil {
		return err
	}
	if err := h.direct.Del(ctx, names.Log).Err(); err != nil {
		return err
	}
	done := false
	for _, m := range all {
		data := []byte(fmt.Sprint(m.Values["data"]))
		if !done && strings.HasSuffix(m.ID, "-"+format.Number(revision)) {
			data[len(data)/2] ^= 1
			done = true
		}
		if err := h.direct.XAdd(ctx, &goredis.XAddArgs{Stream: names.Log, ID: m.ID, Values: []any{"sum", m.Values["sum"], "data", data}}).Err(); err != nil {
			return err
		}
	}
	if !done {
		return fmt.Errorf("no entry of revision %d", revision)
	}
	return nil
}

var (
	_ conformance.Forwarder = harness{}
	_ conformance.Damager   = harness{}
)

func singleHarness(s *server, name, url string) harness {
	return harness{name: name, url: url, direct: s.client()}
}

func TestConformanceAlways(t *testing.T) {
	s := startServer(t, always...)
	conformance.Run(t, singleHarness(s, "redis, appendfsync always", s.url()))
}
