package store

import (
	"strings"
	"unicode/utf8"
)

// Kind is the class of a record. It is a short lower-case ASCII word.
type Kind string

// The kinds that the host core writes.
const (
	// KindSession is a durable conversation; it has one owner at a time.
	KindSession Kind = "session"
	// KindScope is a ticket scope; it is shared (S-2).
	KindScope Kind = "scope"
)

// Shared reports whether records of kind k commit with an empty fence: only
// birth and expected revision must be equal then (S-2).
func (k Kind) Shared() bool { return k == KindScope }

// MaxKindBytes bounds a kind's length.
const MaxKindBytes = 32

// MaxIDBytes bounds an id's length (S-10).
const MaxIDBytes = 256

// Key names a record. Two different keys never share one (S-10).
type Key struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
}

// SessionKey is the key of the session id.
func SessionKey(id string) Key { return Key{Kind: KindSession, ID: id} }

// String renders the key for messages; it quotes nothing.
func (k Key) String() string { return string(k.Kind) + "/" + k.ID }

// Validate checks the bounds of S-10 that every backend shares: the kind is
// 1–32 bytes of a–z, 0–9, '-' or '_'; the id is 1–256 bytes of valid UTF-8,
// any characters. The error is an ErrInvalidID that says why.
func (k Key) Validate() error {
	why := ""
	switch {
	case k.Kind == "" || len(k.Kind) > MaxKindBytes || strings.Trim(string(k.Kind), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		why = "the kind must be 1 to 32 characters of a-z, 0-9, - and _"
	case k.ID == "":
		why = "the id is empty; it needs 1 to 256 bytes"
	case len(k.ID) > MaxIDBytes:
		why = "the id is longer than 256 bytes"
	case !utf8.ValidString(k.ID):
		why = "the id is not valid UTF-8"
	default:
		return nil
	}
	return &Error{Op: "validate", Key: k, Kind: ErrInvalidID, Detail: why}
}
