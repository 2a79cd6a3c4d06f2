package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/backends/redis/internal/address"
	"github.com/loophost/loophost/host/store"
)

// promise is what one server said of itself when a connection was made (S-5).
type promise struct {
	durability store.Durability
	how        string // the probe, in one sentence
	version    string
	waitAOF    bool // the server has WAITAOF (7.2)
}

// oldest is the first server version with all that the scripts use.
const oldest = 7

// refusal is why a server can't be used as it is.
type refusal struct {
	kind   error
	detail string
	cause  error
}

func (r *refusal) Error() string { return r.detail }
func (r *refusal) Unwrap() error { return r.cause }

// probeConn looks at a server through a new connection, and refuses it if it can't
// hold records. A Sentinel, which connections go to as well, is left alone.
func probeConn(ctx context.Context, c *goredis.Conn, mode address.Mode) (*promise, error) {
	text, err := c.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	info := parseInfo(text)
	if info["redis_mode"] == "sentinel" {
		return nil, nil
	}
	if err := fit(info, mode); err != nil {
		return nil, err
	}
	p := &promise{version: version(info), waitAOF: atLeast(info["redis_version"], 7, 2)}
	p.durability.Replicas = onlineReplicas(info)
	config, err := c.ConfigGet(ctx, "append*").Result()
	if err == nil {
		var rewrite map[string]string
		if rewrite, err = c.ConfigGet(ctx, "no-appendfsync-on-rewrite").Result(); err == nil {
			config["no-appendfsync-on-rewrite"] = rewrite["no-appendfsync-on-rewrite"]
		}
	}
	if err != nil && !goredis.HasErrorPrefix(err, "NOPERM") && !goredis.HasErrorPrefix(err, "ERR") {
		return nil, err
	}
	p.durability.Level, p.how = level(config, info)
	return p, nil
}

// parseInfo reads the lines "name:value" of INFO; anything else is passed over.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r"), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func version(info map[string]string) string {
	if v := info["valkey_version"]; v != "" {
		return "valkey " + v
	}
	return info["redis_version"]
}

func atLeast(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(second)
	return errA == nil && errB == nil && (a > major || a == major && b >= minor)
}

func onlineReplicas(info map[string]string) int {
	n := 0
	for name, value := range info {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") {
			n++
		}
	}
	return n
}

// fit refuses a server that can't hold records, with what to do about it.
func fit(info map[string]string, mode address.Mode) error {
	policy := info["maxmemory_policy"]
	switch {
	case info["loading"] == "1":
		return &refusal{kind: store.ErrUnavailable, detail: "the server is still loading its data; try again soon"}
	case !atLeast(info["redis_version"], oldest, 0):
		return &refusal{kind: store.ErrUnsupported, detail: fmt.Sprintf("the server is version %q; Redis 7.0 or later, or Valkey, is needed", info["redis_version"])}
	case mode == address.Cluster && info["cluster_enabled"] != "1":
		return &refusal{kind: store.ErrUnsupported, detail: "the server is not part of a Cluster; use redis:// for it"}
	case mode != address.Cluster && info["cluster_enabled"] == "1":
		return &refusal{kind: store.ErrUnsupported, detail: "the server is part of a Cluster; use redis+cluster:// for it"}
	case mode != address.Cluster && info["role"] != "master":
		return &refusal{kind: store.ErrUnavailable, detail: fmt.Sprintf("the server is a read-only replica of %s:%s; use its master, or let Sentinels name it (redis+sentinel://)", info["master_host"], info["master_port"])}
	case policy != "" && policy != "noeviction":
		return &refusal{kind: store.ErrUnsupported, detail: fmt.Sprintf("the server may evict records (maxmemory-policy is %s); run: CONFIG SET maxmemory-policy noeviction, and put it in its configuration file", policy)}
	}
	return nil
}

// level is what the server's settings promise, and how that was found out.
func level(config, info map[string]string) (store.Level, string) {
	const memory = store.LevelMemory
	aof := config["appendonly"]
	if aof == "" && info["aof_enabled"] == "0" {
		aof = "no"
	}
	fsync, onRewrite := config["appendfsync"], config["no-appendfsync-on-rewrite"]
	switch {
	case aof == "no":
		return memory, "CONFIG GET says appendonly no: a crash of the server loses everything since its last snapshot; for power, run: CONFIG SET appendonly yes, and CONFIG SET appendfsync always"
	case aof == "" || fsync == "":
		return memory, "the server does not let this user read its settings (CONFIG GET), so nothing beyond its memory is counted on; for more, allow the command: ACL SETUSER <user> +config|get"
	case fsync == "everysec":
		return memory, "CONFIG GET says appendfsync everysec: a crash can lose about the last two seconds of what was acknowledged; for power, run: CONFIG SET appendfsync always"
	case fsync != "always":
		return memory, "CONFIG GET says appendfsync " + fsync + ": a crash can lose what the system did not flush yet, about the last thirty seconds; for power, run: CONFIG SET appendfsync always"
	case onRewrite != "no":
		return memory, "CONFIG GET says no-appendfsync-on-rewrite yes: a crash during a rewrite of the file can lose everything since it began; for power, run: CONFIG SET no-appendfsync-on-rewrite no"
	}
	return store.LevelPower, "CONFIG GET says appendonly yes, appendfsync always and no-appendfsync-on-rewrite no: the server flushes each commit before it answers"
}
