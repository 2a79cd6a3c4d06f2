package store

import (
	"context"
	"time"
)

// Historian is the optional ability to tell a record's history: who wrote, who was
// fenced, and when. It is for people; nothing that the host decides comes from it.
type Historian interface {
	// History reads what happened to the record of key, in order, from the change
	// numbered from on (1 is the first; 0: from the first), at most limit (0: 256) of
	// them. A page past the end is empty. Errors: ErrNotFound; ErrCorrupt, then the page
	// holds what is whole up to the damage.
	History(ctx context.Context, key Key, from uint64, limit int) (HistoryPage, error)
}

// HistoryPage is a run of changes.
type HistoryPage struct {
	Changes []Change
	Next    uint64 // where the next page begins; 0: there is none
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
