package store

import "time"

// Fence says who may write a record; equality of all four fields is the test
// (S-2). The zero value is no fence: the record is unowned, or of a shared kind
// (then Birth alone is set).
type Fence struct {
	Birth      Birth  `json:"birth"`
	Generation string `json:"generation"` // UUID, minted by Acquire
	Owner      string `json:"owner"`      // who, for people: "host:pid" or a name
	Run        string `json:"run"`        // UUID of the execution
}

// IsZero reports whether f is no fence.
func (f Fence) IsZero() bool { return f == Fence{} }

// Mark identifies one state of one record's history: what an Ack vouches for (S-6).
type Mark struct {
	Birth    Birth  `json:"birth"`
	Revision uint64 `json:"revision"`
	// Chain is the hash over the whole history up to Revision, as Chain and
	// ChainNever compute it, in hex. "" in a commit's After: not checked.
	Chain string `json:"chain"`
}

// Commit is one atomic change of a record.
type Commit struct {
	ID string // UUID; unique per attempt, the key of idempotence (S-3)
	// After is the state this commit builds on. The record's revision below
	// After.Revision, or another chain at it, is ErrRegressed; above it,
	// ErrConflict. Birth is compared with the fence's rules. Zero for Create.
	After   Mark
	Head    []byte     // the new head, opaque; at most 1 MiB
	Entries [][]byte   // log entries to append, opaque; at most 16 MiB each
	Require Durability // the least durability an Ack must state; zero: whatever the store reaches
}

// Ack says that a commit is applied.
type Ack struct {
	Mark       Mark       `json:"mark"`       // the record's state with this commit
	LogLength  uint64     `json:"log_length"` // entries in the log with this commit
	Durability Durability `json:"durability"` // what was reached
	// Signals are the pending ones addressed to the committing fence's run (S-13).
	Signals []Signal `json:"signals,omitempty"`
}

// Outcome is the answer of Resolve.
type Outcome struct {
	Applied bool // false: it can never apply any more
	Ack     Ack  // Applied: the original one; else the record's state after the revision advanced
}

// Claim asks for ownership of a record.
type Claim struct {
	Owner string // for people, at most 256 bytes
	Run   string // UUID of the execution that will write
	// Generation, if not "", must be the record's last generation (held or released).
	Generation string
	TTL        time.Duration // of the lease; 0: 30 s
	// Force is an operator's explicit take-over: it never waits and fences a live owner.
	Force bool
	// Seen, if not zero, is a state this host saw acknowledged; a record whose
	// history does not hold it is ErrRegressed (S-6).
	Seen Mark
}

// DefaultTTL is the lease time of a Claim that names none (L-28).
const DefaultTTL = 30 * time.Second

// Holder is the live owner of a record, for people.
type Holder struct {
	Fence   Fence     `json:"fence"`
	Expires time.Time `json:"expires"` // zero where the store knows liveness without a lease
	PID     int       `json:"pid"`     // 0: not known
	Host    string    `json:"host"`    // "": not known
	Started time.Time `json:"started"` // when it acquired
}

// Record is a record without its log.
type Record struct {
	Key          Key      `json:"key"`
	Mark         Mark     `json:"mark"`
	Head         []byte   `json:"-"`
	LogLength    uint64   `json:"log_length"`
	LastCommitID string   `json:"last_commit_id"`
	Fence        Fence    `json:"fence"`             // the current one; zero: unowned
	Generation   string   `json:"generation"`        // the last one minted, also after release; "": never acquired
	Holder       *Holder  `json:"holder"`            // nil: no live owner
	Signals      []Signal `json:"signals,omitempty"` // pending, addressed to Fence.Run
	Released     bool     `json:"released"`          // the last owner released it cleanly (or it was never acquired)
}

// Entry is one log entry.
type Entry struct {
	Seq      uint64 // 1 for the first entry of the record
	Revision uint64 // of the commit that appended it
	Data     []byte
}

// LogPage is a run of log entries.
type LogPage struct {
	Entries []Entry
	Length  uint64 // of the whole log when the page was read
}

// Query asks List for records.
type Query struct {
	Kind   Kind   // required
	Cursor string // opaque; "": from the start
	Limit  int    // 0: 100
}

// ListPage is one page of List. Next is "" on the last page.
type ListPage struct {
	Items []Listed
	Next  string
}

// Listed is one record of a list; a record that can't be read is listed with its error.
type Listed struct {
	Record Record // Key is always set
	Err    error
}
