package ledger

import (
	"time"

	"github.com/loophost/loophost/host/store"
)

// State is a record apart from its head and its log. It encodes to JSON and back
// without loss. Make one with Create.
type State struct {
	Mark         store.Mark     `json:"mark"`
	LogLength    uint64         `json:"log_length"`
	LastCommitID string         `json:"last_commit_id"`
	Fence        store.Fence    `json:"fence"`      // zero: unowned
	Generation   string         `json:"generation"` // the last one minted; "": never acquired
	Started      time.Time      `json:"started"`
	Expires      time.Time      `json:"expires"`
	Released     bool           `json:"released"`
	Signals      []store.Signal `json:"signals,omitempty"` // addressed to Fence.Run; a stop before a cancel
}

// Settled is what a backend keeps for each commit id that was settled, for the last
// store.MinRememberedCommits of a record at least (S-3).
type Settled struct {
	Never   bool      `json:"never,omitempty"` // Resolve decided that it never applies (S-4)
	Content [32]byte  `json:"content"`         // store.ContentHash; zero for a never
	Ack     store.Ack `json:"ack"`             // the original one; of a never the state that it left
}

// CurrentFence is the fence that a writer must hold: of a shared kind the birth alone.
func (s *State) CurrentFence(k store.Kind) store.Fence {
	if k.Shared() {
		return store.Fence{Birth: s.Mark.Birth}
	}
	return s.Fence
}

// Record is the record as the port shows it at now.
func (s *State) Record(key store.Key, head []byte, now time.Time) store.Record {
	return store.Record{
		Key: key, Mark: s.Mark, Head: head, LogLength: s.LogLength, LastCommitID: s.LastCommitID,
		Fence: s.CurrentFence(key.Kind), Generation: s.Generation, Holder: s.holder(now),
		Signals: s.Pending(s.Fence.Run), Released: s.Released,
	}
}

// Pending is a copy of the signals addressed to run (S-13); nil: none.
func (s *State) Pending(run string) []store.Signal {
	if run == "" || run != s.Fence.Run {
		return nil
	}
	return append([]store.Signal(nil), s.Signals...)
}

// holder is the live owner at now, or nil.
func (s *State) holder(now time.Time) *store.Holder {
	if s.Fence.IsZero() || !now.Before(s.Expires) {
		return nil
	}
	return &store.Holder{Fence: s.Fence, Expires: s.Expires, Started: s.Started}
}

// NotFound is the error of a key without a record. deleted: there was one (S-12).
func NotFound(op string, key store.Key, deleted bool) error {
	e := &store.Error{Op: op, Key: key, Kind: store.ErrNotFound}
	if deleted {
		e.Detail = "it was deleted"
	}
	return e
}

// Owned is nil where f is the record's fence, else ErrFenced (S-2). The zero fence owns nothing.
func (s *State) Owned(op string, key store.Key, f store.Fence) error {
	if current := s.CurrentFence(key.Kind); f.IsZero() || f != current {
		return &store.Error{Op: op, Key: key, Kind: store.ErrFenced, Fence: current}
	}
	return nil
}
