package redis

import (
	"context"
	_ "embed"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

//go:embed scripts/rehearse.lua
var rehearseLua string

var rehearseScript = newScript("rehearse", rehearseLua, true)

// rehearse does with a key of its own whatever the store does with a record's: a user
// who lacks a permission in the middle of a commit would leave half of it.
func (s *Store) rehearse(ctx context.Context, n *node) error {
	if _, err := n.run(ctx, rehearseScript, []string{s.addr.Prefix + ":rehearsal"}); err != nil {
		return err
	}
	return n.ZScore(ctx, format.Index(s.addr.Prefix, store.KindSession), "").Err()
}
