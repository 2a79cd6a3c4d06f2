package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// Run runs one loop in the session, from its start checkpoint to its ending. An
// execution runs one loop; a second call answers ErrUsed.
//
// The error is nil for completed, stopped and budget_exhausted. Otherwise it is
// the spec's own (Validate), ErrChild, *RecoveryError (L-3), ErrCancelled, *FailedError,
// *CheckpointError, or one that matches store.ErrFenced. The Result is filled as
// far as it is known. The end of ctx cancels the run (L-17); what must be written
// then is written all the same.
func (s *Session) Run(ctx context.Context, spec RunSpec) (Result, error) {
	if err := spec.Validate(); err != nil {
		return Result{SessionID: s.ID()}, err
	}
	s.use.Lock()
	defer s.use.Unlock()
	switch {
	case s.closed:
		return Result{SessionID: s.ID()}, ErrClosed
	case s.used:
		return Result{SessionID: s.ID()}, ErrUsed
	}
	if err := s.Snapshot().Head.Child.mayRun(s.ExecutionID()); err != nil {
		return s.result(), fmt.Errorf("session %q: %w", s.ID(), err)
	}
	d, err := s.newDriver(spec)
	if err != nil {
		return s.result(), err
	}
	if spec.OnceKey != "" {
		if r, ok, err := s.host.once(ctx, s.key, s.head, spec.OnceKey); err != nil || ok {
			return r, err
		}
	}
	// What must be committed is committed, also when ctx ends.
	durable := context.WithoutCancel(ctx)
	if err := s.recover(durable, spec.NewLoop, d.emit); err != nil {
		return s.result(), err
	}
	s.used = true
	defer s.mail.close()
	return d.run(ctx, durable)
}

// Recover brings the session's last loop to an ending, where it has none, as the
// next Run would (L-3), and runs nothing. That a loop is recovery_unsupported then is
// no error.
func (s *Session) Recover(ctx context.Context) error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.closed {
		return ErrClosed
	}
	err := s.recover(ctx, false, func(Event) {})
	if _, ok := errors.AsType[*RecoveryError](err); ok {
		return nil
	}
	return err
}

// recover brings the session's last loop to an ending, where it has none (L-3).
func (s *Session) recover(ctx context.Context, newLoop bool, emit func(Event)) error {
	head := s.Snapshot().Head
	plan := loop.PlanRecovery(head.Loop, head.Runtime)
	if plan == loop.RecoverNothing {
		return nil
	}
	lost := append([]pluginapi.ToolCall(nil), s.conv.open...)
	if plan == loop.RecoverRefuse {
		if newLoop {
			return nil
		}
		var err error
		if lost, err = s.unknownCalls(ctx); err != nil {
			return err
		}
		return &RecoveryError{Session: s.ID(), State: *head.Loop, UnknownCalls: lost, LostExecution: head.Loop.OwnerExecutionID}
	}
	state, runtime := loop.Recovered(*head.Loop, head.Runtime, plan)
	s.setHead(func(h *Head) { h.Loop, h.Runtime = &state, runtime; h.noteOnce(s.ID(), s.mark.Revision+1) })
	if err := s.closeCalls(unknownEffect); err != nil {
		return err
	}
	if _, err := s.commitHead(ctx, "recovery"); err != nil {
		if IsFenced(err) {
			return err
		}
		return &CheckpointError{Session: s.ID(), Checkpoint: "recovery", Unknown: true, Err: err}
	}
	if plan == loop.RecoverMirror {
		return nil
	}
	emit(s.terminalEvent(EventRecoveryUnsupported))
	if newLoop {
		return nil
	}
	return &RecoveryError{Session: s.ID(), State: state, UnknownCalls: lost, LostExecution: state.OwnerExecutionID}
}

// unknownEffect is the result of a call that a lost owner may have run (L-26).
func unknownEffect(pluginapi.ToolCall) (pluginapi.ResultStatus, string) {
	return pluginapi.ResultUnknown, "the run ended before this call's result was known; whether it had an effect is unknown"
}

// unknownCalls finds the calls of the last loop whose effects are unknown.
func (s *Session) unknownCalls(ctx context.Context) ([]pluginapi.ToolCall, error) {
	args := map[string]pluginapi.ToolCall{}
	var out []pluginapi.ToolCall
	for _, m := range s.conv.messages {
		if m.Role == pluginapi.RoleUser && m.Origin == "" {
			out = nil // an iteration starts: what was unknown before it is not news
		}
		for _, c := range m.ToolCalls {
			args[c.ID] = c
		}
		if r := m.Result; r != nil && r.Status == pluginapi.ResultUnknown {
			out = append(out, args[r.CallID])
		}
	}
	return out, ctx.Err()
}

// result is the session's last loop as memory has it.
func (s *Session) result() Result {
	snap := s.Snapshot()
	return resultOf(s.ID(), snap.Head, snap.Mark.Revision)
}

func resultOf(id string, head Head, revision uint64) Result {
	r := Result{SessionID: id, Revision: revision, RuntimeStatus: head.Runtime.Status, ExecutionID: head.Runtime.ExecutionID}
	if l := head.Loop; l != nil {
		r.Generation, r.ExecutionID = l.Generation, l.OwnerExecutionID
		r.Status, r.ReasonCode, r.Reason = l.Status, l.ReasonCode, l.Reason
		r.IterationsStarted, r.IterationsCompleted, r.RoundsStarted = l.IterationsStarted, l.IterationsCompleted, l.RoundsStarted
	}
	if head.Run != nil {
		r.Usage, r.Demo = head.Run.Usage, head.Run.Demo
	}
	return r
}

func (s *Session) terminalEvent(t EventType) Event {
	snap := s.Snapshot()
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	return terminalEvent(s.ID(), t, snap.Head, snap.Mark.Revision, at)
}

// terminalEvent projects the ending of a committed head; at is the time of the
// checkpoint entry that was committed with it.
func terminalEvent(id string, t EventType, head Head, revision uint64, at time.Time) Event {
	l := head.Loop
	return Event{
		Type: t, SessionID: id, ExecutionID: l.OwnerExecutionID, Generation: l.Generation, Revision: revision, Time: at,
		Ending: &Ending{
			Status: l.Status, ReasonCode: l.ReasonCode, Reason: l.Reason, RuntimeStatus: head.Runtime.Status,
			IterationsStarted: l.IterationsStarted, IterationsCompleted: l.IterationsCompleted, RoundsStarted: l.RoundsStarted,
		},
	}
}

// Once looks for a loop of the session that ended under key. ok is false where
// there is none, or no such session.
func (h *Host) Once(ctx context.Context, id, key string) (r Result, ok bool, err error) {
	rec, err := h.cfg.Store.Load(ctx, store.SessionKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, err
	}
	head, err := DecodeHead(rec.Head)
	if err != nil {
		return Result{}, false, err
	}
	return h.once(ctx, rec.Key, head, key)
}

func (h *Host) once(ctx context.Context, key store.Key, head Head, once string) (Result, bool, error) {
	for i := len(head.Once) - 1; i >= 0; i-- {
		o := head.Once[i]
		if o.Key != once {
			continue
		}
		o.Result.Replayed = true
		if o.Final == 0 {
			return o.Result, true, nil
		}
		text, err := h.finalText(ctx, key, o.Final)
		o.Result.FinalText = text
		return o.Result, err == nil, err
	}
	return Result{}, false, nil
}

func (h *Host) finalText(ctx context.Context, key store.Key, seq uint64) (string, error) {
	page, err := h.cfg.Store.ReadLog(ctx, key, seq, 1)
	if err != nil || len(page.Entries) == 0 {
		return "", err
	}
	e, err := DecodeEntry(page.Entries[0].Data)
	if err != nil || e.Message == nil {
		return "", err
	}
	return e.Message.Text, nil
}

// noteOnce remembers an ending under its once key, so that it is reported and
// not run again. An ending whose loop died is not one: it is refused, not repeated.
func (h *Head) noteOnce(id string, revision uint64) {
	if h.Run == nil || h.Run.OnceKey == "" || h.Loop == nil || h.Loop.Status == loop.RecoveryUnsupported || h.Loop.Status == loop.Finalizing || h.Loop.Status == loop.Running {
		return
	}
	if h.Loop.Status.Bounded() && h.Runtime.Status != loop.RuntimeCompleted {
		return
	}
	record := OnceRecord{Key: h.Run.OnceKey, Result: resultOf(id, *h, revision), Final: h.Run.FinalSeq}
	kept := make([]OnceRecord, 0, len(h.Once)+1)
	for _, o := range h.Once {
		if o.Key != record.Key {
			kept = append(kept, o)
		}
	}
	kept = append(kept, record)
	if len(kept) > MaxOnceKeys {
		kept = kept[len(kept)-MaxOnceKeys:]
	}
	h.Once = kept
}
