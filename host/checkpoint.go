package host

import (
	"context"
	"errors"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
)

// Checkpoint makes the store equal to memory: it settles a commit in doubt and
// commits the head and the entries that are not durable yet (L-20). The loop's own
// revision stays: nothing of the loop changes. It works after Run until Close. The
// error matches store.ErrFenced where another owner took over; then nothing was
// written.
func (s *Session) Checkpoint(ctx context.Context) error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.closed {
		return ErrClosed
	}
	return s.checkpoint(ctx, "checkpoint")
}

// checkpoint commits what is in memory, outside of a run.
func (s *Session) checkpoint(ctx context.Context, name string) error {
	_, err := s.commitHead(ctx, name)
	if err != nil && !IsFenced(err) {
		return &CheckpointError{Session: s.ID(), Checkpoint: name, Unknown: !errors.Is(err, store.ErrNotDurable), Err: err}
	}
	return err
}

// Expect names the session as the caller of Finish knows it (L-23, L-24).
type Expect struct {
	Generation  string      // of the loop
	Birth       store.Birth // of the session
	ExecutionID string      // the current one of the runtime
	OwnerID     string      // the execution that started the loop
}

// Expected is what Finish compares with, as it is now.
func (s *Session) Expected() Expect {
	snap := s.Snapshot()
	e := Expect{Birth: s.fence.Birth, ExecutionID: snap.Head.Runtime.ExecutionID}
	if l := snap.Head.Loop; l != nil {
		e.Generation, e.OwnerID = l.Generation, l.OwnerExecutionID
	}
	return e
}

// Finish settles the session's loop with an execution's outcome (L-22): status
// by the settling table, counters and generation kept, the runtime state as it is
// in memory, one checkpoint for both. A *MismatchError says that the session is
// not the one the caller means; then nothing changes, in memory or in the store.
func (s *Session) Finish(ctx context.Context, want Expect, outcome loop.Outcome, code loop.ReasonCode, reason string) error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.closed {
		return ErrClosed
	}
	got := s.Expected()
	for _, f := range []struct{ field, got, want string }{
		{"generation", got.Generation, want.Generation},
		{"birth", got.Birth.String(), want.Birth.String()},
		{"owner", got.OwnerID, want.OwnerID},
		{"execution", got.ExecutionID, want.ExecutionID},
	} {
		if f.got != f.want {
			return &MismatchError{Session: s.ID(), Field: f.field, Got: f.got, Want: f.want}
		}
	}
	snap := s.Snapshot()
	if snap.Head.Loop == nil {
		return &MismatchError{Session: s.ID(), Field: "generation", Got: "no loop", Want: want.Generation}
	}
	next := loop.Settle(*snap.Head.Loop, outcome, snap.Head.Runtime.Status == loop.RuntimeSuspended, code, reason)
	s.setHead(func(h *Head) { h.Loop = &next })
	if err := s.closeCalls(unknownEffect); err != nil {
		return err
	}
	if _, err := s.commitHead(ctx, "settle"); err != nil {
		if IsFenced(err) {
			return err
		}
		return &CheckpointError{Session: s.ID(), Checkpoint: "settle", Unknown: true, Err: err}
	}
	return nil
}
