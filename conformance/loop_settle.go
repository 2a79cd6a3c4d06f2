package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
)

// settleColumn is a column of M-3: how the execution went.
type settleColumn struct {
	name      string
	outcome   loop.Outcome
	suspended bool
}

var settleColumns = []settleColumn{
	{"ok", loop.OutcomeOK, false},
	{"ok-suspended", loop.OutcomeOK, true},
	{"failed", loop.OutcomeFailed, false},
	{"cancelled", loop.OutcomeCancelled, false},
}

// settleTable is L-22's table, written down a second time: in the order of settleColumns.
var settleTable = map[loop.Status][4]loop.Status{
	loop.Running:             {loop.Failed, loop.RecoveryUnsupported, loop.Failed, loop.Cancelled},
	loop.Finalizing:          {loop.Completed, loop.RecoveryUnsupported, loop.Failed, loop.Cancelled},
	loop.Completed:           {loop.Completed, loop.Completed, loop.Failed, loop.Cancelled},
	loop.Stopped:             {loop.Stopped, loop.Stopped, loop.Failed, loop.Cancelled},
	loop.BudgetExhausted:     {loop.BudgetExhausted, loop.BudgetExhausted, loop.Failed, loop.Cancelled},
	loop.Cancelled:           {loop.Cancelled, loop.Cancelled, loop.Cancelled, loop.Cancelled},
	loop.Failed:              {loop.Failed, loop.Failed, loop.Failed, loop.Cancelled},
	loop.RecoveryUnsupported: {loop.RecoveryUnsupported, loop.RecoveryUnsupported, loop.RecoveryUnsupported, loop.Cancelled},
}

// settleCases are M-3: every status with every outcome, each after attempts in a foreign name.
func settleCases() []Case {
	var out []Case
	for _, status := range loop.Statuses() {
		for i, col := range settleColumns {
			want := settleTable[status][i]
			out = append(out, inLoop(
				fmt.Sprintf("M-3/%s/%s", strings.ReplaceAll(string(status), "_", "-"), col.name),
				fmt.Sprintf("A loop that is %s and whose execution went %s is settled as %s, counters and generation kept; a foreign caller changes nothing.", status, col.name, want),
				func(ctx context.Context, e *Env) error { return settleCell(ctx, e, status, col, want) },
			))
		}
	}
	return out
}

// foundHead is a session's head with a loop of its own generation, which an execution
// that is gone left with that status.
func foundHead(e *Env, status loop.Status, rt loop.RuntimeStatus) host.Head {
	h := host.NewHead(time.Now())
	state := loop.State{
		SchemaVersion: loop.SchemaVersion, Generation: e.UUID(), Revision: 7, OwnerExecutionID: e.UUID(), Objective: "prove it",
		MaxIterations: 3, MaxTotalRounds: 6, IterationsStarted: 2, IterationsCompleted: 1, RoundsStarted: 3, Status: status,
	}
	if status == loop.Finalizing || status == loop.Completed {
		state.IterationsStarted, state.IterationsCompleted = 3, 3
	}
	h.Loop = &state
	h.Runtime = loop.Runtime{Status: rt, ExecutionID: state.OwnerExecutionID}
	h.Run = &host.RunInfo{Provider: "conformance", Started: h.Created}
	return h
}

func settleCell(ctx context.Context, e *Env, status loop.Status, col settleColumn, want loop.Status) error {
	rig, err := e.loop(ctx, "settled", never)
	if err != nil {
		return err
	}
	found := foundHead(e, status, loop.RuntimeRunning)
	if err := rig.seed(ctx, e, found); err != nil {
		return err
	}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	before, err := look(ctx, rig.other, rig.key())
	if err != nil {
		return err
	}
	memory := s.Snapshot()
	foreign := func(field string, change func(*host.Expect)) error {
		x := s.Expected()
		change(&x)
		err := s.Finish(ctx, x, col.outcome, loop.ReasonHost, "in a foreign name")
		bad := []error{
			wantText("settling in the name of another "+field, err, field+" changed"),
			wantEqual("memory's mark after it", s.Snapshot().Mark, memory.Mark),
			wantSameLoop("memory after it", s.Snapshot().Head, memory.Head),
			expectUntouched(ctx, rig.other, "settling in the name of another "+field, rig.key(), before),
		}
		mismatch, ok := errors.AsType[*host.MismatchError](err)
		if !ok || mismatch.Field != field {
			bad = append(bad, failf("settling in the name of another %s: want a *host.MismatchError about it, got %w", field, orNone(err)))
		}
		return errors.Join(bad...)
	}
	if err := errors.Join(
		foreign("generation", func(x *host.Expect) { x.Generation = e.UUID() }), // L-23
		foreign("birth", func(x *host.Expect) { x.Birth++ }),                    // L-24
		foreign("owner", func(x *host.Expect) { x.OwnerID = e.UUID() }),
		foreign("execution", func(x *host.Expect) { x.ExecutionID = e.UUID() }),
	); err != nil {
		return err
	}
	runtime := loop.Runtime{Status: loop.RuntimeFinalizing, ExecutionID: found.Runtime.ExecutionID}
	if col.suspended {
		runtime.Status = loop.RuntimeSuspended
	}
	if err := s.SetRuntime(runtime); err != nil {
		return err
	}
	if err := s.Finish(ctx, s.Expected(), col.outcome, loop.ReasonHost, "settled"); err != nil {
		return failf("settle: want success, got %w", err)
	}
	after := s.Snapshot().Head
	bad := []error{
		wantLoop("memory", after, want, runtime.Status, countsOf(found.Loop)),
		wantEqual("runtime", after.Runtime, runtime),
		wantEqual("generation", after.Loop.Generation, found.Loop.Generation),
		wantEqual("owner execution", after.Loop.OwnerExecutionID, found.Loop.OwnerExecutionID),
		wantEqual("the loop's revision is greater", after.Loop.Revision > found.Loop.Revision, true),
		rig.wantStored(ctx, "the store", after),
	}
	if want != status {
		bad = append(bad, wantEqual("reason", after.Loop.Reason, "settled"))
	} else {
		bad = append(bad, wantEqual("reason", after.Loop.Reason, found.Loop.Reason))
	}
	rec, err := rig.other.Load(ctx, rig.key())
	if err != nil {
		return failf("load: %w", err)
	}
	return errors.Join(append(bad, wantEqual("commits that settling took", rec.Mark.Revision-before.record.Mark.Revision, 1))...)
}
