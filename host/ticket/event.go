package ticket

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/loophost/loophost/host/ticket/internal/canon"
	"github.com/loophost/loophost/internal/strictjson"
)

// Event is one fact: the new values of what changed. A ticket without contract
// keeps the one it has.
type Event struct {
	Type       string      `json:"type"` // what moved it, for people
	Ticket     *Ticket     `json:"ticket,omitzero"`
	Assignment *Assignment `json:"assignment,omitzero"`
	Submission *Submission `json:"submission,omitzero"`
	Intent     *Intent     `json:"intent,omitzero"`
	IntentDone string      `json:"intent_done,omitzero"` // the assignment whose intent is fulfilled or void
	Authority  *Authority  `json:"authority,omitzero"`
}

// Authority says who coordinates a scope. When it changes, every live assignment's
// epoch follows; those that the change loses are events of their own, before it.
type Authority struct {
	Epoch       uint64 `json:"authority_epoch"`
	Coordinator string `json:"coordinator"`
}

// Entry is what one command adds to a scope's log.
type Entry struct {
	Seq     uint64         `json:"seq"`
	Prev    string         `json:"prev"`    // SHA-256, hex, of the entry before; "" of the first
	Receipt jsontext.Value `json:"receipt"` // canonical
	Events  []Event        `json:"events"`
}

// Canonical is the entry's canonical JSON.
func (e *Entry) Canonical() ([]byte, error) { return canon.Marshal(e) }

// DecodeEntry reads a stored entry strictly.
func DecodeEntry(data []byte) (Entry, error) {
	var e Entry
	if err := strictjson.Unmarshal(data, &e); err != nil {
		return Entry{}, &Error{Op: "decode", Key: "entry", Kind: AuthorityUnavailable, Err: err}
	}
	return e, nil
}
