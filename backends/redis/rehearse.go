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
func (s *Store) rehearse(ctx context.Context) error {
	if _, _, err := s.follow(ctx, rehearseScript, 0, []string{s.addr.Prefix + ":rehearsal"}, nil); err != nil {
		return err
	}
	return s.srv.commands().ZScore(ctx, format.Index(s.addr.Prefix, store.KindSession), "").Err()
}
