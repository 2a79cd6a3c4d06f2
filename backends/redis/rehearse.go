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

// rehearse does with keys of its own whatever the store does with a record's: a user
// who lacks a permission in the middle of a commit would leave half of it.
func (s *Store) rehearse(ctx context.Context, n *node) error {
	record := s.addr.Prefix + ":{rehearsal}"
	keys := []string{record, record + ":log", record + ":history"}
	if _, err := n.run(ctx, rehearseScript, keys); err != nil {
		return err
	}
	return n.ZScore(ctx, format.Index(s.addr.Prefix, store.KindSession), "").Err()
}
