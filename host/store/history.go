package store

import (
	"context"
	"time"
)

// Historian is the optional ability to tell a record's history: who wrote, who was
// fenced, and when. It is for people; nothing that the host decides comes from it.
type Historian interface {
	// History gives what happened to the record of key to visit, in order, until visit
	// is false. Errors: ErrNotFound; ErrCorrupt, after all that is whole up to the damage.
	History(ctx context.Context, key Key, visit func(Change) bool) error
}

// ChangeKind is what a change did.
type ChangeKind string

// The changes that a history tells.
const (
	ChangeCreate  ChangeKind = "create"  // the record and its first commit
	ChangeCommit  ChangeKind = "commit"  // one commit
	ChangeNever   ChangeKind = "never"   // Resolve decided that a commit never applies (S-4)
	ChangeAcquire ChangeKind = "acquire" // an owner came
	ChangeRelease ChangeKind = "release" // the owner left
)

// Change is one step of a record's history.
type Change struct {
	Seq      uint64     `json:"seq"` // 1 for the first
	Kind     ChangeKind `json:"kind"`
	Time     time.Time  `json:"time"` // by the clock of who wrote it; for people
	Revision uint64     `json:"revision"`
	Entries  uint64     `json:"entries"`   // log entries that it appended
	CommitID string     `json:"commit_id"` // "" for an acquire and a release
	Fence    Fence      `json:"fence"`     // who did it; of a shared kind only the birth
	// Fenced is the owner that an acquire fenced: it had not released. nil: nobody.
	Fenced *Fence `json:"fenced"`
}
