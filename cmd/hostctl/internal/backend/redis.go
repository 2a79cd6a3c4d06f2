package backend

import (
	"context"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/redis"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/store"
)

func openRedis(ctx context.Context, u string, env Env) (store.Store, error) {
	if err := redis.CheckURL(u); err != nil {
		return nil, exit.Usagef("--store %s: %w", Shown(u), err)
	}
	s, err := redis.Open(ctx, redis.Config{URL: u, Logger: env.Logger})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// scratchRedis is the same server with a prefix that no key has yet. What the suite
// makes it deletes; the tombstones stay below the prefix, which the report names.
func scratchRedis(u string) (Scratch, error) {
	if err := redis.CheckURL(u); err != nil {
		return Scratch{}, exit.Usagef("conformance %s: %w", Shown(u), err)
	}
	base, query, _ := strings.Cut(u, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		return Scratch{}, exit.Usagef("conformance %s: the options behind ? are not escaped well", Shown(u))
	}
	prefix := "conformance-" + uuid.NewString()
	options.Set("prefix", prefix)
	return Scratch{URL: base + "?" + options.Encode(), Name: "redis", Info: map[string]string{"keys": prefix + ":*"}, Done: func() {}}, nil
}
