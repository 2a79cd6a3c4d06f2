package ledger

import (
	"context"

	"github.com/loophost/loophost/host/store"
)

// Engine is storage with transactions. Its methods may be called by many goroutines.
//
// An error that matches a sentinel of package store keeps that kind (ErrCorrupt for
// stored bytes that their checksum denies, ErrUnknownOutcome where a transaction may
// have been applied); any other is ErrUnavailable, or the context's where that ended.
type Engine interface {
	// Do runs f in one transaction on the record of key. Only where write is true f may
	// put. When f returns nil, what it put is applied whole, and is durable before Do
	// returns; else nothing is. Transactions that write are serial for a key. ctx may
	// keep Do from starting f, but does not undo it (S-9). f's error is returned as it is.
	Do(ctx context.Context, key store.Key, write bool, f func(Tx) error) error
	// Rows reads up to n records of a kind with an id above after, in the order of the
	// ids' bytes.
	Rows(ctx context.Context, kind store.Kind, after string, n int) ([]Row, error)
	// Describe is the port's.
	Describe(ctx context.Context) (store.Description, error)
	// Close frees the engine.
	Close() error
}

// Tx is one transaction on one record.
type Tx interface {
	// Load reads the record: a copy of its state, and its head; nil: there is none. What
	// it finds damaged is an error that matches store.ErrCorrupt, with as much of the
	// record as is whole (S-7).
	Load() (*State, []byte, error)
	// Grave is the tombstone of the record that was deleted last; 0: none (S-12).
	Grave() (store.Birth, error)
	// Settled is what was put for a commit id; nil: nothing.
	Settled(id string) (*Settled, error)
	// Chain is the chain at a revision from 1 to the state's; "": it is not kept (S-6).
	Chain(revision uint64) (string, error)
	// Entries gives the log's entries from seq on to f, in order, until f is false. It
	// verifies each (S-7).
	Entries(seq uint64, f func(store.Entry) bool) error
	// Put writes c.
	Put(c Change) error
	// Delete removes the record and all that belongs to it, and leaves a tombstone.
	Delete(grave store.Birth) error
}

// Change is what a transaction writes.
type Change struct {
	State *State
	// ID is the commit that was settled; "": none was, and the state alone changed.
	ID      string
	Settled *Settled
	// Head and Entries are the commit's where it was applied. The last entry has the
	// number State.LogLength; all have the revision State.Mark.Revision.
	Applied bool
	Head    []byte
	Entries [][]byte
}

// Row is one record of a list. A damaged one has an error that matches
// store.ErrCorrupt, and as much of State and Head as is whole; State may be nil.
type Row struct {
	ID    string
	State *State
	Head  []byte
	Err   error
}
