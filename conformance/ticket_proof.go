package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/pluginapi"
)

// proof is what the record of a child holds of its stop: a receipt and its mirror,
// whole and valid until a row changes it.
type proof struct {
	status   ticket.ChildStatus
	receipt  map[string]any // nil: none
	raw      string         // the receipt as text, where JSON can't say it; "": receipt
	metadata map[string]string
}

func (p *proof) inner() map[string]any { return p.receipt["receipt"].(map[string]any) }

// processForm makes p the receipt of a process, without task metadata.
func (p *proof) processForm(pid uint64) {
	delete(p.receipt, "task_instance")
	p.receipt["pid"] = pid
	delete(p.metadata, ticket.MetaTaskState)
	delete(p.metadata, ticket.MetaTaskInstance)
}

// text is the receipt as it is stored.
func (p *proof) text() (string, error) {
	if p.raw != "" {
		return p.raw, nil
	}
	data, err := json.Marshal(p.receipt)
	return string(data), err
}

// proofRow is a proof that is none: what is wrong with it, and what the refusal says.
type proofRow struct {
	name, words string
	says        string
	kind        ticket.Kind // "": scope denied
	change      func(p *proof)
}

// proofRows are the rows of M-4 about a receipt that does not fit, and those of T-13
// and T-14 beside them.
func proofRows() []proofRow {
	otherInstance := "0b4f37c0-5d5f-4a5e-8d21-6a2b1de0a9c1"
	set := func(field string, value any) func(*proof) {
		return func(p *proof) { p.receipt[field] = value }
	}
	inner := func(field string) func(*proof) {
		return func(p *proof) { p.inner()[field] = "another" }
	}
	without := func(field string) func(*proof) {
		return func(p *proof) { delete(p.receipt, field) }
	}
	withText := func(change func(string) string) func(*proof) {
		return func(p *proof) {
			text, err := p.text()
			if err != nil {
				text = err.Error() // no row makes a receipt that JSON can't say
			}
			p.raw = change(text)
		}
	}
	rows := []proofRow{
		{name: "no-receipt", words: "no stop receipt, though the metadata shows a stopped task and its UUID", says: "no stop receipt", kind: ticket.AuthorityUnavailable, change: func(p *proof) { p.receipt = nil }},

		{name: "state-missing", words: "no task state", says: ticket.MetaTaskState, change: func(p *proof) { delete(p.metadata, ticket.MetaTaskState) }},
		{name: "state-running", words: "a task state that is running", says: ticket.MetaTaskState, change: func(p *proof) { p.metadata[ticket.MetaTaskState] = ticket.TaskRunning }},
		{name: "instance-missing", words: "no task instance beside it", says: ticket.MetaTaskInstance, change: func(p *proof) { delete(p.metadata, ticket.MetaTaskInstance) }},
		{name: "instance-other", words: "another task instance beside it", says: ticket.MetaTaskInstance, change: func(p *proof) { p.metadata[ticket.MetaTaskInstance] = otherInstance }},

		{name: "birth", words: "another birth", says: "child_birth", change: set("child_birth", "1")},
		{name: "run", words: "another run", says: "run_id", change: inner("run_id")},
		{name: "session", words: "another session", says: "session_id", change: inner("session_id")},
		{name: "dispatch-key", words: "another dispatch key", says: "dispatch_key", change: inner("dispatch_key")},
		{name: "spec-hash", words: "another spec hash", says: "spec_hash", change: inner("spec_hash")},

		{name: "task-instance", words: "another task instance in it", says: "task_instance", change: set("task_instance", otherInstance)},
		{name: "nil-instance", words: "the nil UUID", says: "task_instance", change: func(p *proof) {
			p.receipt["task_instance"] = uuid.Nil.String()
			p.metadata[ticket.MetaTaskInstance] = uuid.Nil.String()
		}},
		{name: "both-kinds", words: "a task instance and a pid", says: "both task_instance and pid", change: set("pid", 1234)},
		{name: "neither-kind", words: "neither a task instance nor a pid", says: "neither task_instance nor pid", change: without("task_instance")},
		{name: "pid-zero", words: "the pid 0", says: "pid is 0", change: func(p *proof) { p.processForm(0) }},
		{name: "not-completed", words: "completed: false of a child that completed", says: "completed", change: set("completed", false)},

		{name: "not-json", words: "a receipt that is no JSON", says: ticket.MetaOwnedStop, change: func(p *proof) { p.raw = "stopped" }},
		{name: "null", words: "a receipt that is null", says: ticket.MetaOwnedStop, change: func(p *proof) { p.raw = "null" }},
		{name: "wrong-type", words: "a word where a truth value belongs", says: "completed", change: set("completed", "yes")},
		{name: "wrong-type-inside", words: "a number where the run belongs", says: "run_id", change: func(p *proof) { p.inner()["run_id"] = 1 }},
		{name: "field-missing", words: "no completed", says: "completed is missing", change: without("completed")},
		{name: "field-missing-inside", words: "no run", says: "run_id is missing", change: func(p *proof) { delete(p.inner(), "run_id") }},
		{name: "field-null", words: "a birth that is null", says: "child_birth is null", change: set("child_birth", nil)},
		{name: "field-unknown", words: "a field that nobody knows", says: "acquitted", change: set("acquitted", true)},
		{name: "field-twice", words: "a field twice", says: "completed", change: withText(func(s string) string { return `{"completed":true,` + s[1:] })},
		{name: "field-twice-in-case", words: "a field twice, in another case", says: "Completed", change: withText(func(s string) string { return `{"Completed":true,` + s[1:] })},
		{name: "too-long", words: "more than 4,096 bytes", says: "4097 bytes", change: withText(func(s string) string {
			return s + strings.Repeat(" ", ticket.MaxChildValueBytes+1-len(s))
		})},
	}
	for _, status := range []ticket.ChildStatus{ticket.ChildFailed, ticket.ChildCancelled, ticket.ChildTimedOut} {
		rows = append(rows, proofRow{
			name: "completed-but-" + strings.ReplaceAll(string(status), "_", "-"), words: "completed: true of a child that " + strings.ReplaceAll(string(status), "_", " "),
			says: "completed is true", change: func(p *proof) { p.status = status },
		})
	}
	return append(rows,
		proofRow{name: "pid-beside-a-task", words: "a pid beside the metadata of a task", says: "pid", change: func(p *proof) {
			metadata := maps.Clone(p.metadata)
			p.processForm(1234)
			p.metadata = metadata
		}},
		proofRow{name: "pid-of-another-process", words: "a pid that is not the kept process's", says: "pid", change: func(p *proof) {
			p.processForm(1234)
			p.metadata[ticket.MetaProcessIdentity] = `{"boot_id":"boot","host_name":"host","pid":1235,"process_group":1235,"start_time":1}`
		}},
		proofRow{name: "task-beside-a-process", words: "a task instance beside the identity of a process", says: ticket.MetaProcessIdentity, change: func(p *proof) {
			p.metadata[ticket.MetaProcessIdentity] = `{"boot_id":"boot","host_name":"host","pid":1234,"process_group":1234,"start_time":1}`
		}},
	)
}

func proofCases() []Case {
	var out []Case
	for _, row := range proofRows() {
		if row.kind == "" {
			row.kind = ticket.ScopeDenied
		}
		out = append(out, inTickets("M-4/proof/"+row.name,
			fmt.Sprintf("A stop with %s is refused as %s that says so, and leaves the scope's bytes, process_stopped and the submissions as they were.", row.words, row.kind),
			func(ctx context.Context, e *Env) error { return refusedProof(ctx, e, row) }))
	}
	return append(out,
		inTickets("M-4/pid-form", "A receipt that names a pid is accepted without task metadata, and replays to the same receipt and the same bytes.", pidForm),
		inTickets("T-13/no-usable-message", "A valid stop of a child whose last message can't be a result publishes the stop, answers invalid_transition, and does so again without changing a byte.", noUsableMessage),
		inTickets("T-6/another-receipt", "Once a stop is published, another receipt in the child's record is refused and changes nothing.", anotherReceipt),
	)
}

// admission is a child whose run was admitted and which completed, while nothing proves
// yet that it stopped. Its record is written through session.
type admission struct {
	*scopeRig
	assignment string
	run        string
	session    *host.Session
	proof      proof
}

// admitted makes one. speaks says whether the child has an answer to leave.
func (e *Env) admitted(ctx context.Context, id string, speaks bool) (*admission, error) {
	o, err := e.prepared(ctx, id)
	if err != nil {
		return nil, err
	}
	if !speaks {
		o.agent.fail = &pluginapi.Failure{Kind: pluginapi.FailAuth, Message: "it has nothing to say"}
	}
	// The run is a real one, whose worker dies before its stop receipt is stored.
	o.faulty.Inject(Fault{Op: OpCommit, Match: func(c Call) bool {
		return c.Key.Kind == store.KindSession && bytes.Contains(c.Commit.Head, []byte(ticket.MetaOwnedStop))
	}, Times: -1, Err: definite()})
	if err := o.task.Execute(ctx, o.agent.work()); err == nil {
		return nil, failf("execute without a stop receipt: want an error, got success")
	}
	if err := o.task.Abandon(ctx); err != nil {
		return nil, failf("give the session back: want success, got %w", err)
	}
	o.faulty.Heal()
	if err := wantEqual("the run completed", o.task.Outcome().Status == ticket.ChildCompleted, speaks); err != nil {
		return nil, err
	}
	// A later owner of the child's session writes its record.
	s, err := o.eyes.Open(ctx, host.OpenRequest{ID: o.task.SessionID(), MustExist: true})
	if err != nil {
		return nil, failf("open the child: want success, got %w", err)
	}
	e.atEnd(func() { _ = s.Close(context.Background()) }) // one that is closed says so
	a := &admission{scopeRig: o.scopeRig, assignment: o.assignment, run: o.task.RunID(), session: s}
	d, err := ticket.DecodeChildDispatch([]byte(s.Snapshot().Head.Child.Metadata[ticket.MetaDispatch]))
	if err != nil {
		return nil, err
	}
	if d.Receipt == nil {
		return nil, failf("want the child's dispatch to name its run, got none")
	}
	instance := uuid.NewString()
	a.proof = proof{
		status: ticket.ChildCompleted,
		receipt: map[string]any{
			"receipt": map[string]any{
				"dispatch_key": d.Receipt.DispatchKey, "spec_hash": d.Receipt.SpecHash,
				"run_id": d.Receipt.RunID, "session_id": d.Receipt.SessionID,
			},
			"child_birth": d.ChildBirth, "task_instance": instance, "completed": true,
		},
		metadata: map[string]string{ticket.MetaTaskState: ticket.TaskStopped, ticket.MetaTaskInstance: instance},
	}
	return a, nil
}

// write puts the proof into the child's record, as it is.
func (a *admission) write(ctx context.Context) error {
	change := func(c *host.Child) error {
		for _, key := range []string{ticket.MetaOwnedStop, ticket.MetaTaskState, ticket.MetaTaskInstance, ticket.MetaProcessIdentity} {
			delete(c.Metadata, key)
		}
		maps.Copy(c.Metadata, a.proof.metadata)
		c.Status = a.proof.status
		if a.proof.receipt == nil {
			return nil
		}
		text, err := a.proof.text()
		c.Metadata[ticket.MetaOwnedStop] = text
		return err
	}
	err := a.session.UpdateChild(ctx, change)
	if errors.Is(err, ticket.ScopeDenied) {
		err = a.writeRaw(ctx, change) // the host does not write such a record
	}
	return wantOK("write the child's record", err)
}

// writeRaw commits the child's record past the host that refuses it.
func (a *admission) writeRaw(ctx context.Context, change func(*host.Child) error) error {
	head := a.session.Snapshot().Head
	if err := change(head.Child); err != nil {
		return err
	}
	data, err := json.Marshal(head)
	if err != nil {
		return err
	}
	key := store.SessionKey(a.session.ID())
	rec, err := a.other.Load(ctx, key)
	if err != nil {
		return err
	}
	_, err = a.other.Commit(ctx, key, rec.Fence, store.Commit{ID: a.e.UUID(), After: rec.Mark, Head: data})
	return err
}

// result takes the result checkpoint.
func (a *admission) result(ctx context.Context) (ticket.Receipt, bool, error) {
	return a.runner.Checkpoint(ctx, a.assignment, a.run)
}

func refusedProof(ctx context.Context, e *Env, row proofRow) error {
	a, err := e.admitted(ctx, "proof", true)
	if err != nil {
		return err
	}
	row.change(&a.proof)
	if err := a.write(ctx); err != nil {
		return err
	}
	first, err := a.still(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(
		wantEqual("process_stopped before any checkpoint", first.stopped[a.assignment], false),
		wantEqual("submissions before any checkpoint", first.counts.Submissions, 0),
	); err != nil {
		return err
	}
	key := store.SessionKey(a.session.ID())
	before, err := look(ctx, a.other, key)
	if err != nil {
		return err
	}
	try := func(what string, do func() error) error {
		return errors.Join(a.refused(ctx, what, row.kind, row.says, do), expectUntouched(ctx, a.other, what, key, before))
	}
	return errors.Join(
		try("the result checkpoint", func() error { _, _, err := a.result(ctx); return err }),
		try("publishing the stop", func() error { _, err := a.runner.PublishStop(ctx, a.assignment, a.run); return err }),
		try("the result checkpoint again", func() error { _, _, err := a.result(ctx); return err }),
	)
}

func pidForm(ctx context.Context, e *Env) error {
	a, err := e.admitted(ctx, "pid", true)
	if err != nil {
		return err
	}
	a.proof.processForm(1234)
	if err := a.write(ctx); err != nil {
		return err
	}
	first, ok, err := a.result(ctx)
	if err != nil || !ok {
		return failf("the result checkpoint: want a result, got %t, %w", ok, orNone(err))
	}
	before, err := a.still(ctx)
	if err != nil {
		return err
	}
	again, ok, err := a.result(ctx)
	if err != nil || !ok {
		return failf("the result checkpoint again: want a result, got %t, %w", ok, orNone(err))
	}
	return errors.Join(
		wantReceipt("the result checkpoint again", again, first),
		a.wantStill(ctx, "the result checkpoint again", before),
		wantEqual("process_stopped", before.stopped[a.assignment], true),
		wantEqual("submissions", before.counts.Submissions, 1),
	)
}

func noUsableMessage(ctx context.Context, e *Env) error {
	a, err := e.admitted(ctx, "mute", false)
	if err != nil {
		return err
	}
	if err := a.write(ctx); err != nil {
		return err
	}
	_, _, err = a.result(ctx)
	if err := wantRefusal("the result checkpoint", err, ticket.InvalidTransition, "last message"); err != nil {
		return err
	}
	before, err := a.still(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		wantEqual("process_stopped", before.stopped[a.assignment], true),
		wantEqual("submissions", before.counts.Submissions, 0),
		a.refused(ctx, "the result checkpoint again", ticket.InvalidTransition, "last message", func() error { _, _, err := a.result(ctx); return err }),
		a.give(ctx, ticket.Fail{Assignment: a.assignment, Reason: "it left nothing to submit"}),
	)
}

func anotherReceipt(ctx context.Context, e *Env) error {
	a, err := e.admitted(ctx, "another", true)
	if err != nil {
		return err
	}
	if err := a.write(ctx); err != nil {
		return err
	}
	if _, err := a.runner.PublishStop(ctx, a.assignment, a.run); err != nil {
		return failf("publish the stop: want success, got %w", err)
	}
	a.proof.processForm(1234)
	if err := a.write(ctx); err != nil {
		return err
	}
	return a.refused(ctx, "another receipt of the run", ticket.ScopeDenied, "another stop receipt", func() error { _, _, err := a.result(ctx); return err })
}
