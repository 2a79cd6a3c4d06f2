package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

func recoverCases() []Case {
	out := []Case{
		inLoop("L-4/a-new-loop", "A loop that ended is followed by a new one in the same session: new generation, counters from zero, messages kept.", loopAfterLoop),
		inLoop("L-26/unknown-effects", "A tool call that was under way when its owner died gets the result unknown, is named to the operator, and is not repeated.", unknownEffects),
		inLoop("L-3/unreadable", "A session whose loop can't be read starts nothing and stays as it is.", unreadableLoop),
	}
	for _, status := range []loop.Status{loop.Running, loop.Finalizing} {
		out = append(out, inLoop("L-3/found-"+string(status),
			fmt.Sprintf("A loop found %s without an owner is recorded as recovery_unsupported, and every start is refused until a new loop is asked for.", status),
			func(ctx context.Context, e *Env) error { return foundOpen(ctx, e, status) }))
	}
	for _, status := range []loop.Status{loop.Stopped, loop.BudgetExhausted} {
		out = append(out, inLoop("L-3/found-"+strings.ReplaceAll(string(status), "_", "-"),
			fmt.Sprintf("A loop found %s without its final mirror gets the mirror from the next owner, without an event.", status),
			func(ctx context.Context, e *Env) error { return foundUnmirrored(ctx, e, status) }))
	}
	return out
}

func foundOpen(ctx context.Context, e *Env, status loop.Status) error {
	rig, err := e.loop(ctx, "found", never)
	if err != nil {
		return err
	}
	runtime := loop.RuntimeRunning
	if status == loop.Finalizing {
		runtime = loop.RuntimeFinalizing
	}
	found := foundHead(e, status, runtime)
	if err := rig.seed(ctx, e, found); err != nil {
		return err
	}
	m := &model{answer: direct}
	refused := func(what string) error {
		s, done, err := rig.open(ctx)
		if err != nil {
			return err
		}
		defer done()
		_, err = s.Run(ctx, rig.spec(m, 1, 1))
		lost, ok := errors.AsType[*host.RecoveryError](err)
		if !ok {
			return failf("%s: want a *host.RecoveryError, got %w", what, orNone(err))
		}
		stored, serr := rig.stored(ctx)
		if serr != nil {
			return serr
		}
		return errors.Join(
			wantEqual(what+": the execution that was lost", lost.LostExecution, found.Loop.OwnerExecutionID),
			wantEqual(what+": provider calls", m.count(), 0),
			wantLoop(what+": the store", stored, loop.RecoveryUnsupported, loop.RuntimeFailed, countsOf(found.Loop)),
			wantEqual(what+": generation", stored.Loop.Generation, found.Loop.Generation),
			wantEqual(what+": the loop's revision", stored.Loop.Revision, found.Loop.Revision+1),
			wantEqual(what+": reason code", stored.Loop.ReasonCode, loop.ReasonOwnerLost),
		)
	}
	if err := errors.Join(refused("the first start"), refused("the second start"), refused("the third start")); err != nil {
		return err
	}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	spec := rig.spec(m, 1, 1)
	spec.NewLoop = true
	_, err = s.Run(ctx, spec)
	return errors.Join(
		wantOK("a new loop", err),
		wantLoop("memory", s.Snapshot().Head, loop.Completed, loop.RuntimeCompleted, counts{1, 1, 1}),
		wantEqual("generation of the new loop", s.Snapshot().Head.Loop.Generation, s.Generation()),
		rig.wantStored(ctx, "the store", s.Snapshot().Head),
		wantEqual("recovery_unsupported events", rig.count(host.EventRecoveryUnsupported), 1),
		wantEqual("Complete events", rig.count(host.EventComplete), 1),
	)
}

func foundUnmirrored(ctx context.Context, e *Env, status loop.Status) error {
	rig, err := e.loop(ctx, "found", never)
	if err != nil {
		return err
	}
	found := foundHead(e, status, loop.RuntimeFinalizing)
	if err := rig.seed(ctx, e, found); err != nil {
		return err
	}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	var mirrored error
	first := true
	spec := rig.spec(&model{answer: direct}, 1, 1)
	// The mirror is a commit of its own, before that of the new loop's start.
	spec.Observer = func(ev host.Event) {
		rig.observe(ev)
		if ev.Checkpoint == nil || !first {
			return
		}
		first = false
		mirrored = errors.Join(
			wantEqual("the first checkpoint's status", ev.Checkpoint.Status, status),
			wantEqual("the first checkpoint's runtime", ev.Checkpoint.RuntimeStatus, loop.RuntimeCompleted),
			wantEqual("the first checkpoint's loop revision", ev.Checkpoint.LoopRevision, found.Loop.Revision+1),
		)
	}
	_, err = s.Run(ctx, spec)
	return errors.Join(
		wantOK("the run of a new loop", err), mirrored,
		wantEqual("Complete events: the new loop's alone", rig.count(host.EventComplete), 1),
		wantEqual("recovery_unsupported events", rig.count(host.EventRecoveryUnsupported), 0),
		wantLoop("the new loop", s.Snapshot().Head, loop.Completed, loop.RuntimeCompleted, counts{1, 1, 1}),
		rig.wantStored(ctx, "the store", s.Snapshot().Head),
	)
}

func loopAfterLoop(ctx context.Context, e *Env) error {
	rig, err := e.loop(ctx, "again", never)
	if err != nil {
		return err
	}
	run := func() (host.Head, error) {
		s, done, err := rig.open(ctx)
		if err != nil {
			return host.Head{}, err
		}
		defer done()
		_, err = s.Run(ctx, rig.spec(&model{answer: direct}, 2, 2))
		return s.Snapshot().Head, errors.Join(wantOK("the run", err), wantEqual("generation", s.Snapshot().Head.Loop.Generation, s.Generation()))
	}
	one, err := run()
	if err != nil {
		return failf("the first loop: %w", err)
	}
	before, err := rig.messages(ctx)
	if err != nil {
		return err
	}
	two, err := run()
	if err != nil {
		return failf("the second loop: %w", err)
	}
	after, err := rig.messages(ctx)
	if err != nil {
		return err
	}
	bad := []error{
		wantLoop("the second loop", two, loop.Completed, loop.RuntimeCompleted, counts{2, 2, 2}),
		wantEqual("the generations differ", one.Loop.Generation != two.Loop.Generation, true),
		wantEqual("messages after the first loop", len(before), 4),
		wantEqual("messages after the second loop", len(after), 8),
		wantEqual("Complete events of both", rig.count(host.EventComplete), 2),
	}
	for i := range min(len(before), len(after)) {
		bad = append(bad, wantEqual(fmt.Sprintf("message %d after the second loop", i+1), after[i].Text, before[i].Text))
	}
	return errors.Join(bad...)
}

func unknownEffects(ctx context.Context, e *Env) error {
	rig, err := e.loop(ctx, "effects", never)
	if err != nil {
		return err
	}
	found := foundHead(e, loop.Running, loop.RuntimeRunning)
	entry := func(m pluginapi.Message) host.Entry {
		return host.Entry{Type: host.EntryMessage, Time: time.Now(), ExecutionID: found.Loop.OwnerExecutionID, Generation: found.Loop.Generation, Message: &m}
	}
	err = rig.seed(ctx, e, found,
		entry(pluginapi.Message{Role: pluginapi.RoleUser, Text: "prove it"}),
		entry(pluginapi.Message{Role: pluginapi.RoleAssistant, ToolCalls: []pluginapi.ToolCall{
			{ID: "first", Name: "work", Arguments: json.RawMessage(`{}`)}, {ID: "second", Name: "work", Arguments: json.RawMessage(`{}`)},
		}}),
		entry(pluginapi.Message{Role: pluginapi.RoleTool, Result: &pluginapi.ToolResult{CallID: "first", Name: "work", Status: pluginapi.ResultOK, Text: "done"}}),
	)
	if err != nil {
		return err
	}
	var ran counter
	start := func(newLoop bool) error {
		s, done, err := rig.open(ctx)
		if err != nil {
			return err
		}
		defer done()
		spec := rig.spec(&model{answer: direct}, 1, 1)
		spec.NewLoop = newLoop
		spec.Tools = []plugin.Tool{workTool(&ran, nil)}
		_, err = s.Run(ctx, spec)
		return err
	}
	named := func(what string, err error) error {
		lost, ok := errors.AsType[*host.RecoveryError](err)
		if !ok {
			return failf("%s: want a *host.RecoveryError, got %w", what, orNone(err))
		}
		if len(lost.UnknownCalls) != 1 || lost.UnknownCalls[0].ID != "second" || lost.UnknownCalls[0].Name != "work" {
			return failf("%s: want the call second of work to be named as unknown, got %+v", what, lost.UnknownCalls)
		}
		return nil
	}
	if err := errors.Join(named("the first start", start(false)), named("the second start", start(false)), wantOK("a new loop", start(true))); err != nil {
		return err
	}
	messages, err := rig.messages(ctx)
	if err != nil {
		return err
	}
	status := map[string]pluginapi.ResultStatus{}
	for _, m := range messages {
		if m.Result != nil {
			status[m.Result.CallID] = m.Result.Status
		}
	}
	return errors.Join(
		wantEqual("the result of the first call", status["first"], pluginapi.ResultOK),
		wantEqual("the result of the second call", status["second"], pluginapi.ResultUnknown),
		wantEqual("runs of the tool", ran.count(), 0),
		rig.wantOnceEach(ctx),
	)
}

func unreadableLoop(ctx context.Context, e *Env) error {
	heads := map[string]string{
		"no-json":         `{"schema":1,`,
		"another-schema":  `{"schema":2,"created":"2026-01-02T03:04:05Z","loop":null,"runtime":{"status":"idle","execution_id":""},"run":null}`,
		"a-loop-of-zeros": `{"schema":1,"created":"2026-01-02T03:04:05Z","loop":{},"runtime":{"status":"idle","execution_id":""},"run":null}`,
	}
	for name, head := range heads {
		rig, err := e.loop(ctx, name, never)
		if err != nil {
			return err
		}
		if _, err := rig.other.Create(ctx, rig.key(), store.Commit{ID: e.UUID(), Head: []byte(head)}); err != nil {
			return failf("create: %w", err)
		}
		before, err := look(ctx, rig.other, rig.key())
		if err != nil {
			return err
		}
		_, opened := rig.host.Open(ctx, host.OpenRequest{ID: rig.id})
		after, err := look(ctx, rig.other, rig.key())
		if err != nil {
			return err
		}
		if !errors.Is(opened, loop.ErrState) {
			return failf("%s: open: want %w, got %w", name, loop.ErrState, orNone(opened))
		}
		if err := errors.Join(before.same(name, after), wantEqual(name+": it is owned afterwards", after.record.Fence.IsZero(), true)); err != nil {
			return err
		}
	}
	return nil
}
