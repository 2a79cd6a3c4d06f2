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
// who lacks a permission in the middle of a commit would leave half of it. One who lacks
// those of the queues alone gets a store without them.
func (s *Store) rehearse(ctx context.Context) error {
	r, _, err := s.follow(ctx, rehearseScript, 0, []string{s.addr.Prefix + ":rehearsal"}, nil)
	if err != nil {
		return err
	}
	if refused := r.text(1); forbids(refused) {
		s.noQueue = refused
		s.log.Info("the user may not use streams, so the store offers no queues; allow them with ACL SETUSER <user> +@stream", "server", s.addr.String())
	}
	return s.srv.commands().ZScore(ctx, format.Index(s.addr.Prefix, store.KindSession), "").Err()
}
