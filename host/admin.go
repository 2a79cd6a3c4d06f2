package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
)

// SessionView is a session as it is stored.
type SessionView struct {
	ID     string
	Record store.Record
	Head   Head
	Err    error // in a list: why Record and Head can't be read
}

// SessionPage is one page of Sessions. Next is "" on the last page.
type SessionPage struct {
	Items []SessionView
	Next  string
}

// Sessions lists sessions in the store's order. limit 0 is 100.
func (h *Host) Sessions(ctx context.Context, cursor string, limit int) (SessionPage, error) {
	page, err := h.cfg.Store.List(ctx, store.Query{Kind: store.KindSession, Cursor: cursor, Limit: limit})
	if err != nil {
		return SessionPage{}, err
	}
	out := SessionPage{Next: page.Next}
	for _, item := range page.Items {
		v := SessionView{ID: item.Record.Key.ID, Record: item.Record, Err: item.Err}
		if v.Err == nil {
			v.Head, v.Err = DecodeHead(item.Record.Head)
		}
		out.Items = append(out.Items, v)
	}
	return out, nil
}

// Show reads one session without its log.
func (h *Host) Show(ctx context.Context, id string) (SessionView, error) {
	rec, err := h.cfg.Store.Load(ctx, store.SessionKey(id))
	if err != nil {
		return SessionView{ID: id, Record: rec}, err
	}
	head, err := DecodeHead(rec.Head)
	if err != nil {
		return SessionView{ID: id, Record: rec}, fmt.Errorf("session %q: %w", id, err)
	}
	return SessionView{ID: id, Record: rec, Head: head}, nil
}

// LogItem is one entry of a session's log.
type LogItem struct {
	Seq      uint64
	Revision uint64 // of the record, with the commit that appended it
	Entry    Entry
}

// LogPage is a run of log entries. Length is the whole log's.
type LogPage struct {
	Items  []LogItem
	Length uint64
}

// Log reads log entries from from (1 is the first) on, at most limit (0: 256).
func (h *Host) Log(ctx context.Context, id string, from uint64, limit int) (LogPage, error) {
	page, err := h.cfg.Store.ReadLog(ctx, store.SessionKey(id), max(from, 1), limit)
	out := LogPage{Length: page.Length}
	for _, raw := range page.Entries {
		e, derr := DecodeEntry(raw.Data)
		if derr != nil {
			return out, fmt.Errorf("session %q: %w: entry %d: %w", id, loop.ErrState, raw.Seq, derr)
		}
		out.Items = append(out.Items, LogItem{Seq: raw.Seq, Revision: raw.Revision, Entry: e})
	}
	return out, err
}

// followPoll is how often Events looks for news.
const followPoll = 200 * time.Millisecond

// Events passes the session's durable events from log entry from on to fn, in
// order, then, if its last loop has ended and nobody holds the session any more,
// the terminal one, which is projected from the head (it is stored nowhere else).
// With follow it waits for more until that, until ctx ends, or, with ErrOwnerLost,
// until the loop's owner is found to be gone. An error of fn ends it.
func (h *Host) Events(ctx context.Context, id string, from uint64, follow bool, fn func(Event) error) error {
	key := store.SessionKey(id)
	next := max(from, 1)
	var ownerless store.Mark // the last state that was seen with a loop under way and no holder
	for {
		rec, err := h.cfg.Store.Load(ctx, key)
		if err != nil {
			return err
		}
		err = h.eachEntry(ctx, key, next, rec.LogLength, func(raw store.Entry, e Entry) error {
			next = raw.Seq + 1
			if ev, ok := projectEntry(id, e, raw.Seq, raw.Revision); ok {
				return fn(ev)
			}
			return nil
		})
		if err != nil {
			return err
		}
		head, err := DecodeHead(rec.Head)
		if err != nil {
			return err
		}
		if t, ended := endingOf(head); ended && rec.Holder == nil {
			at, err := h.lastTime(ctx, key, rec.LogLength)
			if err != nil {
				return err
			}
			return fn(terminalEvent(id, t, head, rec.Mark.Revision, at))
		}
		if !follow {
			return nil
		}
		if rec.Holder == nil && head.Loop != nil && !head.Loop.Status.Terminal() {
			// Twice, since an owner may have ended the loop and let go between two looks.
			if ownerless == rec.Mark {
				return fmt.Errorf("session %q: %w", id, ErrOwnerLost)
			}
			ownerless = rec.Mark
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(followPoll):
		}
	}
}

// lastTime is the time of the log's last entry: that of the last checkpoint.
func (h *Host) lastTime(ctx context.Context, key store.Key, length uint64) (at time.Time, err error) {
	err = h.eachEntry(ctx, key, max(length, 1), length, func(_ store.Entry, e Entry) error {
		at = e.Time
		return nil
	})
	return at, err
}

// endingOf is the terminal event that a committed head stands for.
func endingOf(h Head) (EventType, bool) {
	if h.Loop == nil {
		return "", false
	}
	switch s := h.Loop.Status; {
	case s == loop.Cancelled:
		return EventCancelled, true
	case s == loop.Failed:
		return EventFailed, true
	case s == loop.RecoveryUnsupported:
		return EventRecoveryUnsupported, true
	case s == loop.Completed, s.Bounded():
		return EventComplete, h.Runtime.Status == loop.RuntimeCompleted
	}
	return "", false
}

// Stop asks the session's live run, wherever it is, to admit nothing more (S-13).
// It answers who holds the session, or ErrNotRunning.
func (h *Host) Stop(ctx context.Context, id, reason string) (store.Holder, error) {
	return h.signal(ctx, id, store.SignalStop, reason)
}

func (h *Host) signal(ctx context.Context, id string, kind store.SignalKind, reason string) (store.Holder, error) {
	key := store.SessionKey(id)
	rec, err := h.cfg.Store.Load(ctx, key)
	if err != nil {
		return store.Holder{}, err
	}
	if rec.Holder == nil {
		return store.Holder{}, fmt.Errorf("session %q: %w", id, ErrNotRunning)
	}
	err = h.cfg.Store.Signal(ctx, key, store.Signal{Kind: kind, Run: rec.Fence.Run, Reason: reason, Time: h.now()})
	if errors.Is(err, store.ErrNotFound) {
		return store.Holder{}, fmt.Errorf("session %q: %w: its run ended meanwhile", id, ErrNotRunning)
	}
	return *rec.Holder, err
}

// CancelReport says what Cancel did: it asked the holder, or settled a loop that had lost its owner.
type CancelReport struct {
	Holder  *store.Holder
	Settled *Result
}

// Cancel asks the session's live run to end now. A loop whose owner died is
// settled as cancelled. Otherwise ErrNotRunning.
func (h *Host) Cancel(ctx context.Context, id, reason string) (CancelReport, error) {
	holder, err := h.signal(ctx, id, store.SignalCancel, reason)
	if err == nil {
		return CancelReport{Holder: &holder}, nil
	}
	if !errors.Is(err, ErrNotRunning) {
		return CancelReport{}, err
	}
	view, verr := h.Show(ctx, id)
	if verr != nil {
		return CancelReport{}, verr
	}
	if view.Head.Loop == nil || view.Head.Loop.Status.Terminal() {
		return CancelReport{}, err
	}
	s, oerr := h.Open(ctx, OpenRequest{ID: id, MustExist: true})
	if oerr != nil {
		return CancelReport{}, oerr
	}
	r, serr := s.settleLost(ctx, loop.OutcomeCancelled, reason)
	return CancelReport{Settled: &r}, errors.Join(serr, s.Close(ctx))
}

// settleLost ends the loop of a lost owner as the operator says.
func (s *Session) settleLost(ctx context.Context, o loop.Outcome, reason string) (Result, error) {
	snap := s.Snapshot()
	if snap.Head.Loop == nil || snap.Head.Loop.Status.Terminal() {
		return s.result(), fmt.Errorf("session %q: %w", s.ID(), ErrNotRunning)
	}
	runtime := snap.Head.Runtime
	runtime.Status = loop.RuntimeCancelled
	if err := s.SetRuntime(runtime); err != nil {
		return s.result(), err
	}
	err := s.Finish(ctx, s.Expected(), o, loop.ReasonOperatorCancel, orElse(reason, "cancelled by an operator after its owner was lost"))
	return s.result(), err
}

// TakeOverReport says whom TakeOver fenced and what became of the loop.
type TakeOverReport struct {
	Previous *store.Holder // the live owner that was fenced; nil: there was none
	Result   *Result       // the loop as it is now; nil: the session has none
}

// TakeOver fences the session's owner, live or hung, at the operator's explicit
// word. A loop that was under way is checkpointed as recovery_unsupported (L-3); the
// session is released then, so that a new loop may start in it.
func (h *Host) TakeOver(ctx context.Context, id, reason string) (TakeOverReport, error) {
	rec, err := h.cfg.Store.Load(ctx, store.SessionKey(id))
	if err != nil {
		return TakeOverReport{}, err
	}
	s, err := h.Open(ctx, OpenRequest{ID: id, MustExist: true, Force: true})
	if err != nil {
		return TakeOverReport{}, err
	}
	report := TakeOverReport{Previous: rec.Holder}
	h.cfg.Logger.Warn("session taken over", "session_id", id, "generation", s.Generation(), "reason", reason)
	err = s.Recover(ctx)
	if r := s.result(); r.Status != "" {
		report.Result = &r
	}
	return report, errors.Join(err, s.Close(ctx))
}

// Delete removes a session. A tombstone stays, so that its birth never comes
// back (S-12). A live owner makes it store.ErrBusy.
func (h *Host) Delete(ctx context.Context, id string) error {
	key := store.SessionKey(id)
	fence, _, err := h.cfg.Store.Acquire(ctx, key, store.Claim{Owner: h.cfg.Owner, Run: h.cfg.NewID(), TTL: h.cfg.LeaseTTL})
	if err != nil {
		return err
	}
	if err := h.cfg.Store.Delete(ctx, key, fence); err != nil {
		return errors.Join(err, h.cfg.Store.Release(context.WithoutCancel(ctx), key, fence))
	}
	return nil
}
