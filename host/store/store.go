package store

import (
	"context"
	"time"
)

// Limits that every store enforces (each an ErrTooLarge, never a truncation).
// A backend may state smaller ones in its Description.
const (
	MaxHeadBytes   = 1 << 20  // 1 MiB
	MaxEntryBytes  = 16 << 20 // 16 MiB
	MaxCommitBytes = 64 << 20 // 64 MiB: head and entries together
)

// MinRememberedCommits is how many of a record's latest commit ids a store
// remembers at least (S-3).
const MinRememberedCommits = 16

// Store is the port that a backend implements. All methods may be called by
// many goroutines and, where the backend is shared, by many processes at once.
//
// Context rule (S-9): cancelled before anything was sent or written, a method
// returns the context's error and has changed nothing; cancelled after, a
// commit returns ErrUnknownOutcome wrapping the context's error.
type Store interface {
	// Describe says what the store is and what it can promise.
	Describe(ctx context.Context) (Description, error)
	// Create makes the record with its first commit (revision 1) and mints its
	// birth. c.After must be zero. The record is unowned. Errors: ErrExists.
	// The same commit id with the same content again gives the original Ack.
	Create(ctx context.Context, key Key, c Commit) (Ack, error)
	// Acquire makes the caller the owner: it mints a generation (a UUID), puts
	// the new fence on the record and returns the record as it is under that
	// fence. It does not move the revision. Errors: ErrNotFound, ErrBusy (a live
	// owner, and no Force), ErrConflict (Claim.Generation given and not
	// current), ErrRegressed (Claim.Seen given and not in the record's history).
	Acquire(ctx context.Context, key Key, claim Claim) (Fence, Record, error)
	// Renew extends the lease of f to ttl from now. Errors: ErrFenced, ErrNotFound.
	Renew(ctx context.Context, key Key, f Fence, ttl time.Duration) error
	// Release ends the ownership of f; the record becomes unowned, and every
	// later commit under f is ErrFenced. Releasing twice is ErrFenced.
	Release(ctx context.Context, key Key, f Fence) error
	// Commit applies c whole, or not at all (S-1), if f equals the record's
	// fence and c.After the record's mark (S-2, S-6). A commit id seen before is
	// answered with its original Ack before any other check (S-3).
	Commit(ctx context.Context, key Key, f Fence, c Commit) (Ack, error)
	// Resolve settles a commit whose outcome is not known (S-4), in one atomic
	// step: Applied with the original Ack; or never, and then the revision has
	// advanced by one so that the commit can't apply any more, and Outcome.Ack
	// is the record's new state. An applied commit is reported whatever the
	// fence is now; otherwise f must equal the record's fence (ErrFenced).
	Resolve(ctx context.Context, key Key, f Fence, commitID string) (Outcome, error)
	// Signal posts s to the mailbox of the record, addressed to exactly s.Run
	// (S-13). It needs no fence, is durable and idempotent (one stop and one
	// cancel per run are kept), and moves no revision. Errors: ErrNotFound, also
	// when s.Run is not the run of the record's current fence.
	Signal(ctx context.Context, key Key, s Signal) error
	// Load reads the record without its log. Errors: ErrNotFound, ErrCorrupt
	// (then the Record holds what is whole up to the damage).
	Load(ctx context.Context, key Key) (Record, error)
	// ReadLog reads entries with from ≤ Seq, at most limit (0: 256) of them and
	// about 8 MiB (at least one entry), in order. A page past the end is empty.
	// Reading the tail does not read the whole log (S-11).
	ReadLog(ctx context.Context, key Key, from uint64, limit int) (LogPage, error)
	// List reads the records of a kind in an order that stays the same while the set does.
	List(ctx context.Context, q Query) (ListPage, error)
	// Delete removes head and log and leaves a tombstone (S-12). f must equal the record's fence.
	Delete(ctx context.Context, key Key, f Fence) error
	// Close frees what the handle holds. Records still owned through this handle
	// are left to their leases, as after a crash. Methods after it answer ErrUnavailable.
	Close() error
}

// SignalWatcher is the optional ability to wake an owner for a signal within a
// second. Without it the host polls Load.
type SignalWatcher interface {
	// WatchSignals sends pending and new signals addressed to f.Run until ctx
	// ends; then it closes the channel. The same signal may be sent again.
	WatchSignals(ctx context.Context, key Key, f Fence) (<-chan Signal, error)
}

// Checker is the optional ability to verify a record's every checksum and chain link (S-7).
type Checker interface {
	// Check reads the whole record. It returns nil error with findings; an
	// error only if it couldn't look.
	Check(ctx context.Context, key Key) (CheckReport, error)
}

// CheckReport is what a Checker found in one record.
type CheckReport struct {
	Key      Key      `json:"key"`
	Birth    Birth    `json:"birth"`
	Revision uint64   `json:"revision"`
	Commits  uint64   `json:"commits"`   // whole commits that were verified
	Entries  uint64   `json:"entries"`   // log entries that were verified
	Bytes    int64    `json:"bytes"`     // bytes read
	Findings []string `json:"findings"`  // damage, each with its place; empty: all whole
	SetAside []string `json:"set_aside"` // torn tails kept apart (S-7), with their place
}

// Description says what a store is and what it promises (S-5).
type Description struct {
	Name       string     `json:"name"`       // "fs", "redis", "memory", …
	Version    string     `json:"version"`    // of the backend or its server; may be ""
	Location   string     `json:"location"`   // for people; never holds a secret
	Durability Durability `json:"durability"` // the best this store reaches
	Probe      string     `json:"probe"`      // how that was found out, one sentence
	Limits     Limits     `json:"limits"`
	// Capabilities, one word each: "watch", "check", "processes" (several
	// processes may open the same data), "liveness" (a dead owner is known at once),
	// "queue" (see Queue).
	Capabilities []string `json:"capabilities"`
}

// Has reports whether the description lists capability c.
func (d Description) Has(c string) bool {
	for _, x := range d.Capabilities {
		if x == c {
			return true
		}
	}
	return false
}

// Limits are a store's own bounds in bytes. Zero means the port's limit.
type Limits struct {
	HeadBytes   int64 `json:"head_bytes"`
	EntryBytes  int64 `json:"entry_bytes"`
	CommitBytes int64 `json:"commit_bytes"`
}
