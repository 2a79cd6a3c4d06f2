package store

import (
	"errors"
	"strconv"
	"strings"
)

// The kinds of errors, in order of precedence: where two apply, the earlier one
// is returned. Match them with errors.Is. Each says what the caller does next.
var (
	// ErrInvalidID: the key breaks S-10. Stop; choose another id.
	ErrInvalidID = errors.New("invalid id")
	// ErrTooLarge: a head, an entry or a commit is over the limit. Stop; nothing was written.
	ErrTooLarge = errors.New("too large")
	// ErrNotFound: no such record, or it was deleted. Stop.
	ErrNotFound = errors.New("not found")
	// ErrCommitIDReused: this commit id was used with other content (S-3). Stop; it is a caller's fault.
	ErrCommitIDReused = errors.New("commit id reused with other content")
	// ErrFenced: another owner holds the record now (S-2); Error.Fence is the
	// current fence. Stop: write nothing more.
	ErrFenced = errors.New("fenced")
	// ErrConflict: the record's revision is not the expected one; Error.Revision
	// is the current one. Reload.
	ErrConflict = errors.New("revision conflict")
	// ErrBusy: a live owner holds the record; Error.Holder says who. Retry later, or take over.
	ErrBusy = errors.New("busy")
	// ErrExists: the record exists already. Reload.
	ErrExists = errors.New("already exists")
	// ErrCorrupt: a stored unit fails its checksum or chain (S-7). Stop; an operator looks.
	ErrCorrupt = errors.New("corrupt")
	// ErrRegressed: the record no longer holds what was acknowledged (S-6). Stop; data was lost.
	ErrRegressed = errors.New("regressed: acknowledged data was lost")
	// ErrNotDurable: the required durability can't be reached (S-5). Stop, or lower the requirement.
	ErrNotDurable = errors.New("not durable enough")
	// ErrUnknownOutcome: the commit may or may not be applied (S-4). Resolve it.
	ErrUnknownOutcome = errors.New("unknown outcome")
	// ErrUnavailable: the store can't be reached or can't write; nothing was changed by this call. Retry later.
	ErrUnavailable = errors.New("unavailable")
	// ErrUnsupported: this store can't do that. Stop.
	ErrUnsupported = errors.New("unsupported")
)

// kinds in order of precedence; KindOf walks it.
var kinds = [...]error{
	ErrInvalidID, ErrTooLarge, ErrNotFound, ErrCommitIDReused, ErrFenced, ErrConflict, ErrBusy,
	ErrExists, ErrCorrupt, ErrRegressed, ErrNotDurable, ErrUnknownOutcome, ErrUnavailable, ErrUnsupported,
}

// KindOf is the sentinel that err matches, or nil when it matches none.
func KindOf(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return k
		}
	}
	return nil
}

// Error is what a store returns: which operation on which key failed, how, and why.
type Error struct {
	Op   string // the method, lower case: "commit", "acquire", …
	Key  Key    // zero when the operation has no key
	Kind error  // one of the sentinels above
	// Detail says in words what was found and what to do; may be empty. It never holds a secret.
	Detail string
	// Err is the cause (an *os.PathError, a network error, a context error); may be nil.
	Err error

	Fence    Fence  // with ErrFenced: the record's current fence
	Revision uint64 // with ErrConflict: the record's current revision
	Holder   Holder // with ErrBusy: who holds the record
}

// Error renders operation, key, kind, detail and cause on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Key != (Key{}) {
		b.WriteString(" " + string(e.Key.Kind) + " " + strconv.Quote(e.Key.ID))
	}
	b.WriteString(": " + e.Kind.Error())
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the kind and the cause, so errors.Is finds either.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
