package store

import "time"

// SignalKind is what a signal asks for.
type SignalKind string

// The signals (S-13).
const (
	SignalStop   SignalKind = "stop"   // admit nothing more; what is admitted drains
	SignalCancel SignalKind = "cancel" // end now
)

// Signal is a request to one exact run.
type Signal struct {
	Kind   SignalKind `json:"kind"`
	Run    string     `json:"run"`    // the run it is addressed to
	Reason string     `json:"reason"` // for people, at most 1,024 bytes
	Time   time.Time  `json:"time"`   // when it was posted, by the poster's clock; for people
}
