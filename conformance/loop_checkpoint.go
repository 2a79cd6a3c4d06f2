package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// checkpointCases are M-1 and what L-19 and L-20 say beyond it: every row with
// every way in which its checkpoint can fail.
func checkpointCases() []Case {
	var out []Case
	for _, row := range checkpointRows() {
		cell := func(rule, way, sentence string, run func(context.Context, *Env, checkpointRow) error) {
			out = append(out, inLoop(fmt.Sprintf("%s/%s/%s", rule, row.name, way), fmt.Sprintf(sentence, row.words),
				func(ctx context.Context, e *Env) error { return run(ctx, e, row) }))
		}
		cell("M-1", "before", "When %s fails before the store wrote it, the run fails, admits nothing more, and the store is made equal to memory.", cellFails(Before))
		cell("M-1", "after", "When %s fails after the store wrote it, the run fails, admits nothing more, and the store is made equal to memory.", cellFails(After))
		cell("L-19", "unknown-absent", "When the outcome of %s is unknown and it was not applied, it is sent once more and the run goes on.", cellUnknown(Before))
		cell("L-19", "unknown-applied", "When the outcome of %s is unknown and it was applied, the run goes on.", cellUnknown(After))
		cell("L-19", "unresolved", "When the outcome of %s is unknown and can't be resolved either, the checkpoint has failed.", cellUnresolved)
		cell("L-20", "unsettled-before", "When %s fails before the store wrote it and so does the write over it, the error says that the durable state is unknown, and a later checkpoint repairs it.", cellUnsettled(Before))
		cell("L-20", "unsettled-after", "When %s fails after the store wrote it and the write over it fails, the error says that the durable state is unknown, and a later checkpoint repairs it.", cellUnsettled(After))
	}
	return out
}

// checkpointRun is one run of a row.
type checkpointRun struct {
	*loopRig
	row          checkpointRow
	session      *host.Session
	model        *model
	tools, hooks counter
}

// errCause is what the store says when it fails a checkpoint for certain.
var errCause = errors.New("the disk is on fire")

// runRow opens the row's session under faults and runs its loop.
func runRow(ctx context.Context, e *Env, row checkpointRow, faults func(*Faulty) []Fault) (*checkpointRun, func(), error, error) {
	rig, err := e.loop(ctx, row.name, never)
	if err != nil {
		return nil, nil, nil, err
	}
	r := &checkpointRun{loopRig: rig, row: row}
	s, done, err := rig.open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	r.session = s
	rig.faulty.Inject(faults(rig.faulty)...)
	r.model = &model{answer: row.answer}
	if row.cancels {
		r.model.answer = func(ctx context.Context, _ int) (pluginapi.Message, error) {
			if err := s.Cancel("enough"); err != nil {
				return pluginapi.Message{}, err
			}
			<-ctx.Done()
			return pluginapi.Message{}, ctx.Err()
		}
	}
	spec := rig.spec(r.model, row.k, row.r)
	if row.tool {
		spec.Tools = []plugin.Tool{workTool(&r.tools, nil)}
	}
	if row.hook != nil {
		spec.Hooks = []plugin.Hook{afterRound(&r.hooks, row.hook)}
	}
	_, runErr := s.Run(ctx, spec)
	if n := rig.faulty.Struck(); n == 0 {
		done()
		return nil, nil, nil, failf("want the run to reach the checkpoint that fails, but no call was failed; it ended with %w", orNone(runErr))
	}
	return r, done, runErr, nil
}

func orNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// rowFault fails the row's commit once.
func (row checkpointRow) fault(when When, err error) Fault {
	return Fault{Op: OpCommit, Match: onCommit(row.at), When: when, Err: err}
}

// wantEnding checks what memory, the events and the plugins saw.
func (r *checkpointRun) wantEnding(w ending) error {
	head := r.session.Snapshot().Head
	bad := []error{
		wantLoop("memory", head, w.status, w.runtime, w.counts),
		wantEqual("provider calls", r.model.count(), w.calls),
		wantEqual("runs of the tool", r.tools.count(), w.tools),
		wantEqual("runs of the after-round hook", r.hooks.count(), w.hooks),
		wantEqual("Complete events", r.count(host.EventComplete), w.complete),
	}
	if head.Loop != nil {
		bad = append(bad, wantEqual("reason code", head.Loop.ReasonCode, w.code))
	}
	return errors.Join(bad...)
}

// wantFailure checks the error of a checkpoint failure (L-19).
func (r *checkpointRun) wantFailure(err, cause error) error {
	bad := []error{wantText("the run", err, "session checkpoint failed; execution not admitted")}
	if err != nil && !errors.Is(err, cause) {
		bad = append(bad, failf("the run: want an error that wraps the store's (%w), got %w", cause, err))
	}
	return errors.Join(bad...)
}

// wantRepaired checks that one explicit checkpoint makes the store equal to
// what memory was before it (L-20), and that nothing was written twice.
func (r *checkpointRun) wantRepaired(ctx context.Context, before host.Head) error {
	if err := r.session.Checkpoint(ctx); err != nil {
		return failf("an explicit checkpoint after the run: want success, got %w", err)
	}
	return errors.Join(
		wantSameLoop("memory after the explicit checkpoint", r.session.Snapshot().Head, before),
		r.wantStored(ctx, "the store after the explicit checkpoint", before),
		r.wantOnceEach(ctx),
	)
}

// wantGreater checks that memory's loop revision is greater than that of the commit that failed.
func (r *checkpointRun) wantGreater() error {
	for _, c := range r.faulty.Calls() {
		if c.Op != OpCommit || !c.Failed {
			continue
		}
		h, err := host.DecodeHead(c.Commit.Head)
		if err != nil {
			return err
		}
		l := r.session.Snapshot().Head.Loop
		if l == nil || l.Revision <= h.Loop.Revision {
			return failf("the loop's revision: want one greater than %d, that of the failed checkpoint, got %+v", h.Loop.Revision, l)
		}
		return nil
	}
	return failf("want a commit that failed, got none")
}

func cellFails(when When) func(context.Context, *Env, checkpointRow) error {
	return func(ctx context.Context, e *Env, row checkpointRow) error {
		r, done, runErr, err := runRow(ctx, e, row, func(*Faulty) []Fault { return []Fault{row.fault(when, definite())} })
		if err != nil {
			return err
		}
		defer done()
		before := r.session.Snapshot().Head
		err = errors.Join(
			r.wantFailure(runErr, errCause),
			r.wantEnding(row.failed),
			r.wantGreater(),
			r.wantStored(ctx, "the store after the run", before),
			r.wantHeld(ctx),
		)
		if runErr != nil && errors.Is(runErr, store.ErrUnknownOutcome) {
			err = errors.Join(err, failf("the run: want no unknown outcome, got %w", runErr))
		}
		if err != nil {
			return err
		}
		return r.wantRepaired(ctx, before)
	}
}

// definite is a failure that is no unknown outcome.
func definite() error {
	return &store.Error{Op: "commit", Kind: store.ErrUnavailable, Detail: "injected", Err: errCause}
}

func unknown() error {
	return &store.Error{Op: "commit", Kind: store.ErrUnknownOutcome, Detail: "injected", Err: errCause}
}

// wantHeld checks that the fence is held until the session is closed (L-20).
func (r *checkpointRun) wantHeld(ctx context.Context) error {
	rec, err := r.other.Load(ctx, r.key())
	if err != nil {
		return failf("load the session: %w", err)
	}
	return wantEqual("the run of the record's fence after the failure", rec.Fence.Run, r.session.ExecutionID())
}

func cellUnknown(when When) func(context.Context, *Env, checkpointRow) error {
	return func(ctx context.Context, e *Env, row checkpointRow) error {
		r, done, runErr, err := runRow(ctx, e, row, func(*Faulty) []Fault { return []Fault{row.fault(when, unknown())} })
		if err != nil {
			return err
		}
		defer done()
		bad := []error{r.wantEnding(row.whole), r.wantStored(ctx, "the store after the run", r.session.Snapshot().Head), r.wantOnceEach(ctx)}
		switch row.whole.status {
		case loop.Failed:
			failed, ok := errors.AsType[*host.FailedError](runErr)
			if !ok || failed.Code != row.whole.code {
				bad = append(bad, failf("the run: want it to fail with %s, got %w", row.whole.code, orNone(runErr)))
			}
		case loop.Cancelled:
			if !errors.Is(runErr, host.ErrCancelled) {
				bad = append(bad, failf("the run: want %w, got %w", host.ErrCancelled, orNone(runErr)))
			}
		default:
			bad = append(bad, wantOK("the run", runErr))
		}
		sent := 0
		for _, c := range r.faulty.Calls() {
			if c.Op == OpCommit && onCommit(row.at)(c) {
				sent++
			}
		}
		want := 1
		if when == Before {
			want = 2
		}
		return errors.Join(append(bad, wantEqual("how often the checkpoint was sent", sent, want))...)
	}
}

func cellUnresolved(ctx context.Context, e *Env, row checkpointRow) error {
	for _, when := range []When{Before, After} {
		r, done, runErr, err := runRow(ctx, e, row.named(row.name+"-"+word(when)), func(*Faulty) []Fault {
			return []Fault{row.fault(when, unknown()), {Op: OpResolve, Err: definite()}}
		})
		if err != nil {
			return err
		}
		before := r.session.Snapshot().Head
		err = errors.Join(
			r.wantFailure(runErr, errCause),
			r.wantEnding(row.failed),
			r.wantStored(ctx, "the store after the run", before),
		)
		if err == nil {
			err = r.wantRepaired(ctx, before)
		}
		done()
		if err != nil {
			return failf("the checkpoint failed %s: %w", when, err)
		}
	}
	return nil
}

func (row checkpointRow) named(name string) checkpointRow {
	row.name = name
	return row
}

func word(w When) string {
	if w == After {
		return "after"
	}
	return "before"
}

func cellUnsettled(when When) func(context.Context, *Env, checkpointRow) error {
	return func(ctx context.Context, e *Env, row checkpointRow) error {
		r, done, runErr, err := runRow(ctx, e, row, func(f *Faulty) []Fault {
			first := row.fault(when, definite())
			first.Then = func() {
				f.Inject(Fault{Op: OpCommit, Times: -1, Err: definite()}, Fault{Op: OpResolve, Times: -1, Err: definite()})
			}
			return []Fault{first}
		})
		if err != nil {
			return err
		}
		defer done()
		before := r.session.Snapshot().Head
		bad := []error{
			r.wantFailure(runErr, errCause),
			wantText("the run", runErr, "the durable state is unknown"),
			r.wantEnding(row.failed),
			wantEqual("terminal Failed and Cancelled events of an ending that is not durable", r.count(host.EventFailed)+r.count(host.EventCancelled), 0),
			wantText("an explicit checkpoint while the store still fails", r.session.Checkpoint(ctx), "session checkpoint failed"),
			wantSameLoop("memory after it", r.session.Snapshot().Head, before),
		}
		if err := errors.Join(bad...); err != nil {
			return err
		}
		r.faulty.Heal()
		return r.wantRepaired(ctx, before)
	}
}
