package scope

import (
	"context"
	"log/slog"
	"time"

	"github.com/loophost/loophost/host/store"
)

// The kinds of records beside store.KindScope. They have owners (S-2).
const (
	KindSnapshot    store.Kind = "scope-snapshot" // written once, by Create
	KindCoordinator store.Kind = "coordinator"    // whose owner has the coordinator's role; named as its scope
	KindArtifact    store.Kind = "artifact"       // written once; named by its content's hash
)

// MaxRereads is how often a command that lost to another writer is decided anew (T-2).
const MaxRereads = 4

// Defaults of Config.
const (
	DefaultTimeout       = 60 * time.Second
	DefaultPoll          = 200 * time.Millisecond
	DefaultSnapshotAfter = 256 << 10
)

// Config says how a scope's handle works. Every zero value has the meaning given.
type Config struct {
	Logger *slog.Logger // nil: silent
	// Require is the least durability at which a command counts as carried out
	// (S-5); zero: whatever the store reaches.
	Require store.Durability
	// Timeout bounds one store call; 0: DefaultTimeout.
	Timeout time.Duration
	// Poll is how often Wait looks for what other handles wrote; 0: DefaultPoll.
	Poll time.Duration
	// SnapshotAfter is how many bytes of log are read again at least before a
	// snapshot is worth writing; 0: DefaultSnapshotAfter.
	SnapshotAfter int64
}

func (c Config) filled() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Poll <= 0 {
		c.Poll = DefaultPoll
	}
	if c.SnapshotAfter <= 0 {
		c.SnapshotAfter = DefaultSnapshotAfter
	}
	return c
}

// bounded is ctx for one store call.
func (c Config) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.Timeout)
}
