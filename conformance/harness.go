package conformance

import (
	"context"
	"time"

	"github.com/loophost/loophost/host/store"
)

// Harness is what a backend gives to the suite. All handles that Open returns
// work on the same data; two writers are the point of most cases.
type Harness interface {
	// Open opens a new handle, independent of all others. The suite closes it.
	Open(ctx context.Context) (store.Store, error)
	// Environment says where the backend runs: versions, filesystem type, server
	// settings. Name is required; no value may hold a secret.
	Environment(ctx context.Context) (Environment, error)
}

// Environment describes where a report was made.
type Environment struct {
	Name   string            `json:"name"`             // "fs on ext4", "redis 7.0.15", …
	Values map[string]string `json:"values,omitempty"` // anything that helps to explain a difference
}

// The abilities below are optional; a harness that has one implements it.

// LeaseClock lets the suite move the clock by which the store's leases run (S-8).
type LeaseClock interface {
	// AdvanceLeases moves the clock of all handles forward by d.
	AdvanceLeases(d time.Duration)
}

// Crasher lets the suite crash what stands between the handles and the data (S-5).
type Crasher interface {
	// Crash ends the processes that hold the open handles, as SIGKILL does, and
	// makes the data ready to be opened again. Handles opened before are dead.
	Crash(ctx context.Context) error
}

// Forwarder lets the suite see revisions that no run could reach by commits.
type Forwarder interface {
	// Forward puts the record of key at exactly revision by writing to the
	// backend's data directly; head, log and chain stay as they are.
	Forward(ctx context.Context, key store.Key, revision uint64) error
}

// Damager lets the suite damage stored data (S-7).
type Damager interface {
	// Damage changes one byte in the stored form of the commit that made revision.
	Damage(ctx context.Context, key store.Key, revision uint64) error
}

// Floorer says what the least work of a durable step is on this backend, so that
// Bench can publish a ratio: an append with a flush on the same disk, one round
// trip to the same server. Without it Bench appends and flushes in the system's
// temporary directory.
type Floorer interface {
	Floor(ctx context.Context) (Floor, error)
}
