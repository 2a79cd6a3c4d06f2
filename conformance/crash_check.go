package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// afterKill reopens the record of a killed owner through fresh handles, checks
// what was left, and lets the next owners follow L-3 and L-26.
func afterKill(ctx context.Context, e *Env, session string, w *witness) (err error) {
	rig, err := e.loop(ctx, session, never)
	if err != nil {
		return err
	}
	// A matrix has many cells: each gives its handles back.
	defer func() { err = errors.Join(err, rig.faulty.Store().Close(), rig.other.Close()) }()
	left, err := look(ctx, rig.other, rig.key())
	if err != nil {
		return err
	}
	if err := w.wantLeft(left); err != nil {
		return err
	}
	if c, ok := rig.other.(store.Checker); ok && !left.absent {
		rep, err := c.Check(ctx, rig.key())
		if err != nil || len(rep.Findings) > 0 {
			return failf("check: want no findings, got %v, %w", rep.Findings, orNone(err))
		}
	}
	var head host.Head
	var entries []host.Entry
	if !left.absent {
		if head, err = host.DecodeHead(left.record.Head); err != nil {
			return failf("the head: %w", err)
		}
		if entries, err = rig.entries(ctx); err != nil {
			return err
		}
		if err := countersAgree(head, entries); err != nil {
			return err
		}
	}
	if err := w.wantEffects(head, entries); err != nil {
		return err
	}
	return (&heir{rig: rig, force: !e.Store.Has("liveness"), found: head, entries: entries}).succeed(ctx)
}

// wantLeft checks that the store holds the record as it was acknowledged last, or
// as the one commit that was on its way makes it (S-1).
func (w *witness) wantLeft(left snapshot) error {
	old := w.acked.same("the record that was acknowledged last", left)
	if old != nil && w.sent != nil && (w.sent.Op == OpCommit || w.sent.Op == OpCreate) {
		next := w.acked.with(*w.sent)
		if w.sent.Op == OpCreate {
			next.record.Mark.Birth = left.record.Mark.Birth
		}
		if now := next.same("the record with the commit that was on its way", left); now != nil {
			return errors.Join(old, now)
		}
		old = nil
	}
	moving := w.sent != nil && (w.sent.Op == OpAcquire || w.sent.Op == OpRelease)
	if old != nil || left.absent || moving {
		return old
	}
	want := w.fence
	if w.freed {
		want = store.Fence{}
	}
	return wantEqual("the fence of the record", left.record.Fence, want)
}

// countersAgree checks that head and log tell the same story of the head's loop.
func countersAgree(head host.Head, entries []host.Entry) error {
	if head.Loop == nil {
		return nil
	}
	var have counts
	var last *host.CheckpointInfo
	started := false
	for _, en := range entries {
		if en.Generation != head.Loop.Generation {
			continue
		}
		switch en.Type {
		case host.EntryStarted:
			started = true
		case host.EntryIteration:
			have.started++
		case host.EntryRound:
			have.rounds++
		case host.EntryMessage:
			if en.Message.Role == pluginapi.RoleAssistant && len(en.Message.ToolCalls) == 0 {
				have.completed++
			}
		case host.EntryCheckpoint:
			last = en.Checkpoint
		}
	}
	if !started {
		return nil // a case made this loop by hand
	}
	if last == nil {
		return failf("want the log to hold the checkpoint that made the head, got none")
	}
	l := head.Loop
	return errors.Join(
		wantEqual("counters (started, completed, rounds) of the head, by the log", countsOf(l), have),
		wantEqual("the head's loop, by the last checkpoint in the log",
			host.CheckpointInfo{LoopRevision: l.Revision, Status: l.Status, ReasonCode: l.ReasonCode, RuntimeStatus: head.Runtime.Status, IterationsStarted: l.IterationsStarted, IterationsCompleted: l.IterationsCompleted, RoundsStarted: l.RoundsStarted},
			host.CheckpointInfo{LoopRevision: last.LoopRevision, Status: last.Status, ReasonCode: last.ReasonCode, RuntimeStatus: last.RuntimeStatus, IterationsStarted: last.IterationsStarted, IterationsCompleted: last.IterationsCompleted, RoundsStarted: last.RoundsStarted}),
	)
}

// wantEffects checks that whatever the owner began to do was durable before: the
// admission of each provider call (L-6), the message with each tool call (L-9), and
// the ending of a Complete event (L-15).
func (w *witness) wantEffects(head host.Head, entries []host.Entry) error {
	durable := map[string]bool{}
	for _, en := range entries {
		if en.Message != nil {
			for _, c := range en.Message.ToolCalls {
				durable[c.ID] = true
			}
		}
	}
	rounds, ended := 0, false
	if head.Loop != nil {
		rounds = int(head.Loop.RoundsStarted)
		ended = head.Loop.Status.Terminal() && head.Runtime.Status == loop.RuntimeCompleted
	}
	var bad []error
	if n := w.count(didProvider); n > rounds {
		bad = append(bad, failf("the provider was called %d times, and only %d rounds are durable", n, rounds))
	}
	for _, effect := range w.effects {
		if id, ok := strings.CutPrefix(effect, didTool); ok {
			bad = append(bad,
				wantEqual("call "+id+" is in a durable message, since its tool ran", durable[id], true),
				wantEqual("runs of call "+id, w.count(effect), 1))
		}
	}
	if n := w.count(didComplete); n > 1 || n == 1 && !ended {
		bad = append(bad, failf("%d Complete events, with the loop %+v and the runtime %s durable", n, head.Loop, head.Runtime.Status))
	}
	return errors.Join(bad...)
}

// heir is who opens a session after its owner was killed.
type heir struct {
	rig     *loopRig
	force   bool // an operator's word takes the place of a lease that has not expired
	found   host.Head
	entries []host.Entry // of the log that was found
	calls   int          // of the provider
	ran     counter      // of the tool
}

// start opens the session and runs a loop of one iteration with a tool call in it.
func (h *heir) start(ctx context.Context, newLoop bool) (memory host.Head, first *host.CheckpointInfo, err error) {
	s, err := h.rig.host.Open(ctx, host.OpenRequest{ID: h.rig.id, Force: h.force})
	if err != nil {
		return memory, nil, failf("open the session of a dead owner: want success, got %w", err)
	}
	h.force = false // from now on every owner releases
	m := &model{answer: asksThenAnswers}
	spec := h.rig.spec(m, 1, 2)
	spec.NewLoop = newLoop
	spec.Tools = []plugin.Tool{workTool(&h.ran, nil)}
	spec.Observer = func(ev host.Event) {
		h.rig.observe(ev)
		if first == nil {
			first = ev.Checkpoint
		}
	}
	_, err = s.Run(ctx, spec)
	h.calls += m.count()
	return s.Snapshot().Head, first, errors.Join(err, s.Close(ctx))
}

// whole is how start ends when the loop is run.
var heirWhole = counts{1, 1, 2}

// succeed makes the starts that L-3 speaks of, by what was found.
func (h *heir) succeed(ctx context.Context) error {
	l := h.found.Loop
	var err error
	switch {
	case l == nil:
		err = h.runs(ctx, false)
	case l.Status == loop.Running || l.Status == loop.Finalizing || l.Status == loop.RecoveryUnsupported:
		if err = h.refused(ctx, "the first start"); err == nil {
			err = h.refused(ctx, "the second start")
		}
		if err == nil {
			err = h.runs(ctx, true)
		}
	default:
		err = h.runs(ctx, false)
	}
	if err != nil {
		return err
	}
	return errors.Join(h.kept(ctx), h.rig.wantOnceEach(ctx))
}

// refused is a start that is answered with what happened to the loop before.
func (h *heir) refused(ctx context.Context, what string) error {
	memory, _, err := h.start(ctx, false)
	lost, ok := errors.AsType[*host.RecoveryError](err)
	if !ok {
		return failf("%s: want a *host.RecoveryError, got %w", what, orNone(err))
	}
	l := h.found.Loop
	revision := l.Revision
	if l.Status != loop.RecoveryUnsupported {
		revision++
	}
	bad := []error{
		wantEqual(what+": provider calls", h.calls, 0),
		wantEqual(what+": runs of the tool", h.ran.count(), 0),
		wantEqual(what+": Complete events", h.rig.count(host.EventComplete), 0),
		wantEqual(what+": the execution that was lost", lost.LostExecution, l.OwnerExecutionID),
		wantLoop(what+": memory", memory, loop.RecoveryUnsupported, loop.RuntimeFailed, countsOf(l)),
		h.rig.wantStored(ctx, what+": the store", memory),
	}
	if memory.Loop != nil {
		bad = append(bad,
			wantEqual(what+": generation", memory.Loop.Generation, l.Generation),
			wantEqual(what+": the loop's revision", memory.Loop.Revision, revision),
			wantEqual(what+": reason code", memory.Loop.ReasonCode, loop.ReasonOwnerLost))
	}
	named := map[string]bool{}
	for _, c := range lost.UnknownCalls {
		named[c.ID] = true
	}
	unknown, err := h.unknown(ctx)
	for id := range unknown {
		bad = append(bad, wantEqual(what+": call "+id+" is named as unknown", named[id], true))
	}
	bad = append(bad, err, wantEqual(what+": calls named as unknown", len(named), len(unknown)))
	return errors.Join(bad...)
}

// unknown are the calls whose results in the log say so; each must be one that had
// no result when the owner died, and each of those must be among them (L-26).
func (h *heir) unknown(ctx context.Context) (map[string]bool, error) {
	entries, err := h.rig.entries(ctx)
	if err != nil {
		return nil, err
	}
	open, before, now := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, en := range entries {
		if en.Message == nil {
			continue
		}
		found := i < len(h.entries)
		for _, c := range en.Message.ToolCalls {
			open[c.ID] = found
		}
		r := en.Message.Result
		switch {
		case r == nil:
		case found:
			delete(open, r.CallID)
			before[r.CallID] = r.Status == pluginapi.ResultUnknown
		case r.Status == pluginapi.ResultUnknown:
			now[r.CallID] = true
		}
	}
	var bad []error
	for id := range open {
		bad = append(bad, wantEqual("call "+id+", which had no result, is unknown now", now[id], true))
	}
	bad = append(bad, wantEqual("calls whose result became unknown", len(now), len(open)))
	for id, u := range before {
		if u {
			now[id] = true
		}
	}
	return now, errors.Join(bad...)
}

// runs is a start that runs a loop of its own to its end. A loop that was found
// without its final mirror gets that first (L-3).
func (h *heir) runs(ctx context.Context, newLoop bool) error {
	before := h.rig.count(host.EventComplete)
	memory, first, err := h.start(ctx, newLoop)
	if err != nil {
		return failf("the start of a new loop: want success, got %w", err)
	}
	bad := []error{
		wantLoop("the new loop", memory, loop.Completed, loop.RuntimeCompleted, heirWhole),
		wantEqual("runs of its tool", h.ran.count(), 1),
		wantEqual("Complete events: its own alone", h.rig.count(host.EventComplete)-before, 1),
		h.rig.wantStored(ctx, "the store after it", memory),
	}
	if l := h.found.Loop; l != nil && l.Status.Bounded() && h.found.Runtime.Status != loop.RuntimeCompleted {
		if first == nil {
			return failf("the start after a loop without its mirror: want a checkpoint, got none")
		}
		bad = append(bad,
			wantEqual("the mirror's status", first.Status, l.Status),
			wantEqual("the mirror's runtime", first.RuntimeStatus, loop.RuntimeCompleted),
			wantEqual("the mirror's loop revision", first.LoopRevision, l.Revision+1))
	}
	entries, err := h.rig.entries(ctx)
	return errors.Join(append(bad, err, countersAgree(memory, entries))...)
}

// kept checks that nothing of what was found in the log has changed.
func (h *heir) kept(ctx context.Context) error {
	entries, err := h.rig.entries(ctx)
	if err != nil {
		return err
	}
	if len(entries) <= len(h.entries) {
		return failf("want a log longer than the %d entries that were found, got %d", len(h.entries), len(entries))
	}
	for i, want := range h.entries {
		a, errA := want.Encode()
		b, errB := entries[i].Encode()
		if err := errors.Join(errA, errB, wantBytes(fmt.Sprintf("entry %d that was found", i+1), b, a)); err != nil {
			return err
		}
	}
	return nil
}
