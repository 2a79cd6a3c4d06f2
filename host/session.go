package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// OpenRequest names the session to open.
type OpenRequest struct {
	ID string
	// MustExist refuses to create the session (store.ErrNotFound).
	MustExist bool
	// Force takes the session over from a live owner: an operator's explicit word.
	Force bool
	// Child describes the session where it is created here; one that exists keeps its own.
	Child *Child
}

// Session is one execution's ownership of a session: opened, it holds the fence
// until Close. Its methods may be called from any goroutine.
type Session struct {
	host  *Host
	fence store.Fence
	key   store.Key
	lease *lease
	mail  *mailbox
	watch sync.WaitGroup
	quit  context.CancelFunc // ends the watcher

	// use serialises Run, Checkpoint, Finish and Close.
	use    sync.Mutex
	used   bool
	closed bool
	w      *writer
	conv   *conversation

	mu   sync.Mutex // guards what Snapshot reads
	head Head
	mark store.Mark
	at   time.Time // of the last checkpoint entry that was acknowledged
}

// Snapshot is a session as it is in memory.
type Snapshot struct {
	Head Head
	Mark store.Mark // the record's last state known to be in the store
}

// Open makes the caller the session's owner, creating it first where it does
// not exist. It changes no loop; Run does (L-3). Errors: *store.Error (ErrBusy with
// the holder, ErrNotFound, ErrInvalidID, ErrCorrupt, …), or one that wraps
// loop.ErrState for a head or log that can't be read: then nothing is held.
func (h *Host) Open(ctx context.Context, req OpenRequest) (*Session, error) {
	key := store.SessionKey(req.ID)
	if err := key.Validate(); err != nil {
		return nil, err
	}
	claim := store.Claim{Owner: h.cfg.Owner, Run: h.cfg.NewID(), TTL: h.cfg.LeaseTTL, Force: req.Force}
	acquired := time.Now()
	fence, rec, err := h.cfg.Store.Acquire(ctx, key, claim)
	if errors.Is(err, store.ErrNotFound) && !req.MustExist {
		if err := h.create(ctx, key, req.Child); err != nil {
			return nil, err
		}
		acquired = time.Now()
		fence, rec, err = h.cfg.Store.Acquire(ctx, key, claim)
	}
	if err != nil {
		return nil, err
	}
	s, err := h.load(ctx, fence, rec)
	if err != nil {
		return nil, errors.Join(err, h.cfg.Store.Release(context.WithoutCancel(ctx), key, fence))
	}
	s.begin(acquired)
	return s, nil
}

func (h *Host) create(ctx context.Context, key store.Key, child *Child) error {
	first := NewHead(h.now())
	first.Child = child.clone()
	head, err := first.Encode()
	if err != nil {
		return err
	}
	_, err = h.cfg.Store.Create(ctx, key, store.Commit{ID: h.cfg.NewID(), Head: head})
	if errors.Is(err, store.ErrExists) {
		return nil // somebody else was faster; Acquire decides who owns it
	}
	return err
}

// load builds the session of an acquired record.
func (h *Host) load(ctx context.Context, fence store.Fence, rec store.Record) (*Session, error) {
	head, err := DecodeHead(rec.Head)
	if err != nil {
		return nil, fmt.Errorf("session %q: %w", rec.Key.ID, err)
	}
	s := &Session{
		host: h, fence: fence, key: rec.Key, mail: newMailbox(), head: head, mark: rec.Mark, conv: newConversation(),
		w: &writer{
			store: h.cfg.Store, key: rec.Key, fence: fence, newID: h.cfg.NewID, timeout: h.cfg.StoreTimeout,
			mark: rec.Mark, length: rec.LogLength,
		},
	}
	err = h.eachEntry(ctx, rec.Key, 1, rec.LogLength, func(_ store.Entry, e Entry) error { return s.conv.apply(&e, nil) })
	if err != nil {
		return nil, fmt.Errorf("session %q: %w", rec.Key.ID, err)
	}
	for _, sig := range rec.Signals {
		if sig.Run == fence.Run {
			if err := s.mail.offer(sig); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// eachEntry reads the log entries from … last, page by page.
func (h *Host) eachEntry(ctx context.Context, key store.Key, from, last uint64, fn func(store.Entry, Entry) error) error {
	for from <= last {
		page, err := h.cfg.Store.ReadLog(ctx, key, from, 0)
		if err != nil {
			return err
		}
		if len(page.Entries) == 0 {
			return fmt.Errorf("log entry %d of %d is missing", from, last)
		}
		for _, raw := range page.Entries {
			if raw.Seq > last {
				return nil
			}
			e, err := DecodeEntry(raw.Data)
			if err != nil {
				return fmt.Errorf("%w: entry %d: %w", loop.ErrState, raw.Seq, err)
			}
			if err := fn(raw, e); err != nil {
				return err
			}
			from = raw.Seq + 1
		}
	}
	return nil
}

func (s *Session) begin(acquired time.Time) {
	cfg := s.host.cfg
	s.lease = startLease(acquired, cfg.LeaseTTL, cfg.RenewEvery, func(ctx context.Context) error {
		return cfg.Store.Renew(ctx, s.key, s.fence, cfg.LeaseTTL)
	})
	ctx, quit := context.WithCancel(context.Background())
	s.quit = quit
	s.watch.Go(func() { s.mail.watch(ctx, cfg.Store, s.key, s.fence, cfg.SignalPoll) })
}

// ID is the session's id.
func (s *Session) ID() string { return s.key.ID }

// ExecutionID is this execution's UUID.
func (s *Session) ExecutionID() string { return s.fence.Run }

// Generation is the fence's generation, which a loop started here carries for life.
func (s *Session) Generation() string { return s.fence.Generation }

// Birth is the session's birth.
func (s *Session) Birth() store.Birth { return s.fence.Birth }

// Snapshot is the session as it is in memory. It is a copy.
func (s *Session) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := s.head
	if head.Loop != nil {
		state := *head.Loop
		head.Loop = &state
	}
	if head.Run != nil {
		run := *head.Run
		head.Run = &run
	}
	head.Child = head.Child.clone()
	return Snapshot{Head: head, Mark: s.mark}
}

// durableMark is Snapshot's mark.
func (s *Session) durableMark() store.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mark
}

// SetRuntime sets the runtime state in memory; the next checkpoint or Finish
// stores it (L-22). It must not be called while Run is under way.
func (s *Session) SetRuntime(rt loop.Runtime) error {
	if err := rt.Validate(); err != nil {
		return err
	}
	s.use.Lock()
	defer s.use.Unlock()
	s.setHead(func(h *Head) { h.Runtime = rt })
	return nil
}

// Stop asks the run to admit nothing more. ErrNotRunning once the run is over.
func (s *Session) Stop(reason string) error {
	return s.mail.offer(store.Signal{Kind: store.SignalStop, Run: s.fence.Run, Reason: reason, Time: s.host.now()})
}

// Cancel asks the run to end now (L-17). ErrNotRunning once the run is over.
func (s *Session) Cancel(reason string) error {
	return s.mail.offer(store.Signal{Kind: store.SignalCancel, Run: s.fence.Run, Reason: reason, Time: s.host.now()})
}

// Close releases the fence. After a failed checkpoint, call Checkpoint first if
// memory is to be saved. Closing a closed or fenced session is no error.
func (s *Session) Close(ctx context.Context) error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.mail.close()
	s.quit()
	s.watch.Wait()
	s.lease.end()
	err := s.host.cfg.Store.Release(ctx, s.key, s.fence)
	if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

func (s *Session) setHead(change func(*Head)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.head)
}

// append adds an entry to the next commit and to the conversation.
func (s *Session) append(e Entry) (uint64, error) {
	e = s.stamp(e)
	var message []byte // is encoded once: for the log and for the provider
	if e.Message != nil {
		m := *e.Message // the entry outlives the round, as an event that somebody keeps
		e.Message = &m
		var err error
		if message, err = encodeMessage(e.Message); err != nil {
			return 0, err
		}
	}
	seq, err := s.w.append(e, message)
	if err != nil {
		return 0, err
	}
	return seq, s.conv.apply(&e, message)
}

func (s *Session) stamp(e Entry) Entry {
	e.Time, e.ExecutionID, e.Generation = s.host.now(), s.fence.Run, s.fence.Generation
	return e
}

// closeCalls gives every open tool call a result (L-9): what status says of it.
func (s *Session) closeCalls(status func(pluginapi.ToolCall) (pluginapi.ResultStatus, string)) error {
	for _, call := range append([]pluginapi.ToolCall(nil), s.conv.open...) {
		st, text := status(call)
		result := &pluginapi.ToolResult{CallID: call.ID, Name: call.Name, Status: st, Text: text}
		if _, err := s.append(Entry{Type: EntryMessage, Message: &pluginapi.Message{Role: pluginapi.RoleTool, Result: result}}); err != nil {
			return err
		}
	}
	return nil
}

// commitHead commits the head in memory and everything pending, as checkpoint name.
func (s *Session) commitHead(ctx context.Context, name string) ([]store.Signal, error) {
	s.mu.Lock()
	head := s.head
	s.mu.Unlock()
	info := &CheckpointInfo{Name: name, RuntimeStatus: head.Runtime.Status}
	if l := head.Loop; l != nil {
		info.LoopRevision, info.Status, info.ReasonCode = l.Revision, l.Status, l.ReasonCode
		info.IterationsStarted, info.IterationsCompleted, info.RoundsStarted = l.IterationsStarted, l.IterationsCompleted, l.RoundsStarted
	}
	data, err := head.Encode()
	if err != nil {
		return nil, err
	}
	trailer := s.stamp(Entry{Type: EntryCheckpoint, Checkpoint: info})
	signals, err := s.w.commit(ctx, data, trailer)
	s.mu.Lock()
	s.mark = s.w.mark
	if err == nil {
		s.at = trailer.Time
	}
	s.mu.Unlock()
	return signals, err
}
