package store

import (
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"
)

// MaxOwnerBytes bounds Claim.Owner.
const MaxOwnerBytes = 256

// MaxReasonBytes bounds Signal.Reason.
const MaxReasonBytes = 1024

// Validate checks what every backend checks before it grants ownership: the
// key, and that the run is a UUID in its canonical lower-case form (it becomes
// part of names) and the owner is valid UTF-8 of at most 256 bytes. Errors:
// ErrInvalidID, ErrTooLarge, ErrUnsupported.
func (c Claim) Validate(key Key) error {
	const op = "acquire"
	if err := key.Validate(); err != nil {
		return err
	}
	if len(c.Owner) > MaxOwnerBytes {
		return tooLarge(op, key, "the owner", int64(len(c.Owner)), MaxOwnerBytes)
	}
	if key.Kind.Shared() {
		return &Error{Op: op, Key: key, Kind: ErrUnsupported, Detail: "records of a shared kind have no owner; commit with an empty fence"}
	}
	if !utf8.ValidString(c.Owner) {
		return &Error{Op: op, Key: key, Kind: ErrUnsupported, Detail: "the owner is not valid UTF-8"}
	}
	if u, err := uuid.Parse(c.Run); err != nil || u.String() != c.Run {
		return &Error{Op: op, Key: key, Kind: ErrUnsupported, Detail: fmt.Sprintf("the run %q must be a UUID in its canonical lower-case form", c.Run), Err: err}
	}
	return nil
}

// Validate checks what every backend checks before it posts a signal: the key,
// the kind (stop or cancel) and the length of the reason, which must be valid
// UTF-8. Errors: ErrInvalidID, ErrTooLarge, ErrUnsupported.
func (s Signal) Validate(key Key) error {
	const op = "signal"
	if err := key.Validate(); err != nil {
		return err
	}
	if len(s.Reason) > MaxReasonBytes {
		return tooLarge(op, key, "the reason", int64(len(s.Reason)), MaxReasonBytes)
	}
	if !utf8.ValidString(s.Reason) {
		return &Error{Op: op, Key: key, Kind: ErrUnsupported, Detail: "the reason is not valid UTF-8"}
	}
	if s.Kind != SignalStop && s.Kind != SignalCancel {
		return &Error{Op: op, Key: key, Kind: ErrUnsupported, Detail: fmt.Sprintf("the signal %q is unknown; use stop or cancel", s.Kind)}
	}
	return nil
}
