package store

import (
	"fmt"

	"github.com/google/uuid"
)

// Validate checks what every backend checks before it writes: the id is a UUID
// and the sizes are within lim (zero fields: the port's own limits).
func (c Commit) Validate(op string, key Key, lim Limits) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if _, err := uuid.Parse(c.ID); err != nil {
		return &Error{Op: op, Key: key, Kind: ErrUnsupported, Detail: "the commit id must be a UUID", Err: err}
	}
	head, entry, commit := limit(lim.HeadBytes, MaxHeadBytes), limit(lim.EntryBytes, MaxEntryBytes), limit(lim.CommitBytes, MaxCommitBytes)
	if int64(len(c.Head)) > head {
		return tooLarge(op, key, "the head", int64(len(c.Head)), head)
	}
	total := int64(len(c.Head))
	for i, e := range c.Entries {
		if int64(len(e)) > entry {
			return tooLarge(op, key, fmt.Sprintf("entry %d", i), int64(len(e)), entry)
		}
		total += int64(len(e))
	}
	if total > commit {
		return tooLarge(op, key, "the commit", total, commit)
	}
	return nil
}

func limit(own, port int64) int64 {
	if own > 0 && own < port {
		return own
	}
	return port
}

func tooLarge(op string, key Key, what string, got, max int64) error {
	return &Error{Op: op, Key: key, Kind: ErrTooLarge, Detail: fmt.Sprintf("%s has %d bytes; at most %d are allowed", what, got, max)}
}
