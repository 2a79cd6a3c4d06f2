package ticket

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

const (
	instance = "0b5f2f0e-6f2e-4f6e-9d0a-0c6f1f7f8a11"
	another  = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	output   = "The result of the child"
)

// admitted is a scope with one run at work, and its child as it completed in a local
// task: joined, drained, stopped, saved.
func admitted(t testing.TB) (*play, Child) {
	t.Helper()
	p := newPlay(t)
	p.start("a", 1)
	d := p.admit("a@1", "run")
	document, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	stop, err := d.TaskStop(instance, true)
	if err != nil {
		t.Fatal(err)
	}
	c := Child{
		SessionID: d.Receipt.SessionID, Birth: "born", Parent: "boss", Root: "root", Status: ChildCompleted,
		Metadata: map[string]string{MetaDispatch: document, MetaTaskState: TaskStopped, MetaTaskInstance: instance},
		Last:     &LastMessage{Role: "assistant", Text: output},
	}
	keepStop(t, &c, stop)
	return p, c
}

func keepStop(t testing.TB, c *Child, r StopReceipt) {
	t.Helper()
	value, _, err := r.Store(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Metadata[MetaOwnedStop] = value
}

// change rewrites a document of the child's metadata.
func change(t testing.TB, c *Child, key string, f func(map[string]any)) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(c.Metadata[key]), &doc); err != nil {
		t.Fatal(err)
	}
	f(doc)
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	c.Metadata[key] = string(data)
}

// stopOf gives a change of the stop receipt.
func stopOf(f func(doc, receipt map[string]any)) func(testing.TB, *Child) {
	return func(t testing.TB, c *Child) {
		change(t, c, MetaOwnedStop, func(doc map[string]any) { f(doc, doc["receipt"].(map[string]any)) })
	}
}

// set gives a change of the metadata.
func set(pairs ...string) func(testing.TB, *Child) {
	return func(_ testing.TB, c *Child) {
		for i := 0; i < len(pairs); i += 2 {
			c.Metadata[pairs[i]] = pairs[i+1]
		}
	}
}

func without(key string) func(testing.TB, *Child) {
	return func(_ testing.TB, c *Child) { delete(c.Metadata, key) }
}

// aProcess makes the child one that was reaped and not joined.
func aProcess(t testing.TB, c *Child) {
	delete(c.Metadata, MetaTaskState)
	delete(c.Metadata, MetaTaskInstance)
	stopOf(func(doc, _ map[string]any) { delete(doc, "task_instance"); doc["pid"] = 1234 })(t, c)
}

func identity(t testing.TB, pid uint64) string {
	t.Helper()
	value, err := ProcessIdentity{PID: pid, StartTime: 99, BootID: "boot", ProcessGroup: pid, HostName: "machine"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestTheStopReceiptMatrixRefuses is M-4, with T-6, T-7, T-13 and T-14: whatever does
// not fit is refused, and neither the bytes nor the stop nor the submissions change.
func TestTheStopReceiptMatrixRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(testing.TB, *Child)
		want   Kind
		says   string
	}{
		"no stop receipt, though the metadata shows stopped and a UUID": {without(MetaOwnedStop), AuthorityUnavailable, "no stop receipt"},
		"storage has no such child":                                     {func(_ testing.TB, c *Child) { *c = Child{} }, AuthorityUnavailable, "no child"},

		"the task's state is missing":                   {without(MetaTaskState), ScopeDenied, MetaTaskState},
		"the task's state is running":                   {set(MetaTaskState, TaskRunning), ScopeDenied, MetaTaskState},
		"the task's state is stopped in another case":   {set(MetaTaskState, "Stopped"), ScopeDenied, MetaTaskState},
		"the task's instance is missing":                {without(MetaTaskInstance), ScopeDenied, MetaTaskInstance},
		"the task's instance is another":                {set(MetaTaskInstance, another), ScopeDenied, MetaTaskInstance},
		"the task's instance is the same in upper case": {set(MetaTaskInstance, strings.ToUpper(instance)), ScopeDenied, MetaTaskInstance},
		"a local task's stop beside a process":          {func(t testing.TB, c *Child) { c.Metadata[MetaProcessIdentity] = identity(t, 7) }, ScopeDenied, MetaProcessIdentity},

		"the receipt's birth is another":        {stopOf(func(doc, _ map[string]any) { doc["child_birth"] = "later" }), ScopeDenied, "child_birth"},
		"the receipt's run is another":          {stopOf(func(_, r map[string]any) { r["run_id"] = "other" }), ScopeDenied, "run_id"},
		"the receipt's session is another":      {stopOf(func(_, r map[string]any) { r["session_id"] = "other" }), ScopeDenied, "session_id"},
		"the receipt's dispatch key is another": {stopOf(func(_, r map[string]any) { r["dispatch_key"] = "other" }), ScopeDenied, "dispatch_key"},
		"the receipt's spec hash is another":    {stopOf(func(_, r map[string]any) { r["spec_hash"] = "other" }), ScopeDenied, "spec_hash"},
		"the receipt's instance is another":     {stopOf(func(doc, _ map[string]any) { doc["task_instance"] = another }), ScopeDenied, "task_instance"},
		"the instance is the nil UUID": {func(t testing.TB, c *Child) {
			const zero = "00000000-0000-0000-0000-000000000000"
			c.Metadata[MetaTaskInstance] = zero
			stopOf(func(doc, _ map[string]any) { doc["task_instance"] = zero })(t, c)
		}, ScopeDenied, "task_instance"},
		"the instance is no UUID": {func(t testing.TB, c *Child) {
			c.Metadata[MetaTaskInstance] = "one"
			stopOf(func(doc, _ map[string]any) { doc["task_instance"] = "one" })(t, c)
		}, ScopeDenied, "task_instance"},
		"both pid and instance":               {stopOf(func(doc, _ map[string]any) { doc["pid"] = 1234 }), ScopeDenied, "both"},
		"neither pid nor instance":            {stopOf(func(doc, _ map[string]any) { delete(doc, "task_instance") }), ScopeDenied, "neither"},
		"pid 0":                               {stopOf(func(doc, _ map[string]any) { delete(doc, "task_instance"); doc["pid"] = 0 }), ScopeDenied, "pid is 0"},
		"a pid where a local task is told of": {stopOf(func(doc, _ map[string]any) { delete(doc, "task_instance"); doc["pid"] = 7 }), ScopeDenied, "local task"},
		"a pid that is not the process's":     {func(t testing.TB, c *Child) { aProcess(t, c); c.Metadata[MetaProcessIdentity] = identity(t, 7) }, ScopeDenied, MetaProcessIdentity},
		"a pid beside an unreadable process":  {func(t testing.TB, c *Child) { aProcess(t, c); c.Metadata[MetaProcessIdentity] = "{}" }, ScopeDenied, "pid is missing"},

		"not completed, of a completed child": {stopOf(func(doc, _ map[string]any) { doc["completed"] = false }), ScopeDenied, "completed is false"},
		"completed, of a failed child":        {func(_ testing.TB, c *Child) { c.Status = ChildFailed }, ScopeDenied, "completed is true"},
		"completed, of a cancelled child":     {func(_ testing.TB, c *Child) { c.Status = ChildCancelled }, ScopeDenied, "completed is true"},
		"completed, of a child out of time":   {func(_ testing.TB, c *Child) { c.Status = ChildTimedOut }, ScopeDenied, "completed is true"},
		"a status that nobody knows":          {func(_ testing.TB, c *Child) { c.Status = "done" }, ScopeDenied, "done"},

		"over 4,096 bytes": {func(_ testing.TB, c *Child) {
			c.Metadata[MetaOwnedStop] += strings.Repeat(" ", MaxChildValueBytes+1-len(c.Metadata[MetaOwnedStop]))
		}, ScopeDenied, "4097 bytes"},
		"empty":                       {set(MetaOwnedStop, ""), ScopeDenied, MetaOwnedStop},
		"not JSON":                    {set(MetaOwnedStop, "stopped"), ScopeDenied, MetaOwnedStop},
		"null":                        {set(MetaOwnedStop, "null"), ScopeDenied, "null"},
		"a list":                      {set(MetaOwnedStop, "[]"), ScopeDenied, MetaOwnedStop},
		"completed is a string":       {stopOf(func(doc, _ map[string]any) { doc["completed"] = "true" }), ScopeDenied, "completed"},
		"pid is a string":             {stopOf(func(doc, _ map[string]any) { delete(doc, "task_instance"); doc["pid"] = "7" }), ScopeDenied, "pid"},
		"pid is negative":             {stopOf(func(doc, _ map[string]any) { delete(doc, "task_instance"); doc["pid"] = -7 }), ScopeDenied, "pid"},
		"pid is null":                 {stopOf(func(doc, _ map[string]any) { doc["pid"] = nil }), ScopeDenied, "pid"},
		"completed is null":           {stopOf(func(doc, _ map[string]any) { doc["completed"] = nil }), ScopeDenied, "completed"},
		"receipt is missing":          {stopOf(func(doc, _ map[string]any) { delete(doc, "receipt") }), ScopeDenied, "receipt"},
		"child_birth is missing":      {stopOf(func(doc, _ map[string]any) { delete(doc, "child_birth") }), ScopeDenied, "child_birth"},
		"completed is missing":        {stopOf(func(doc, _ map[string]any) { delete(doc, "completed") }), ScopeDenied, "completed"},
		"receipt.run_id is missing":   {stopOf(func(_, r map[string]any) { delete(r, "run_id") }), ScopeDenied, "run_id"},
		"a field that nobody knows":   {stopOf(func(doc, _ map[string]any) { doc["note"] = "x" }), ScopeDenied, "note"},
		"an unknown field deep in it": {stopOf(func(_, r map[string]any) { r["note"] = "x" }), ScopeDenied, "note"},
		"a field in another case": {stopOf(func(doc, _ map[string]any) {
			doc["Completed"] = doc["completed"]
			delete(doc, "completed")
		}), ScopeDenied, "Completed"},
		"a field twice": {func(_ testing.TB, c *Child) {
			c.Metadata[MetaOwnedStop] = strings.Replace(c.Metadata[MetaOwnedStop], `"completed":true`, `"completed":true,"completed":true`, 1)
		}, ScopeDenied, "completed"},
		"a field twice deep in it": {func(_ testing.TB, c *Child) {
			c.Metadata[MetaOwnedStop] = strings.Replace(c.Metadata[MetaOwnedStop], `"run_id":"run"`, `"run_id":"run","run_id":"run"`, 1)
		}, ScopeDenied, "run_id"},
		"bytes after it": {func(_ testing.TB, c *Child) { c.Metadata[MetaOwnedStop] += "{}" }, ScopeDenied, MetaOwnedStop},

		"another birth":   {func(_ testing.TB, c *Child) { c.Birth = "later" }, ScopeDenied, "birth"},
		"another session": {func(_ testing.TB, c *Child) { c.SessionID = "other" }, ScopeDenied, "session"},
		"another parent":  {func(_ testing.TB, c *Child) { c.Parent = "other" }, ScopeDenied, "parent"},
		"another root":    {func(_ testing.TB, c *Child) { c.Root = "other" }, ScopeDenied, "root"},

		"no dispatch":                    {without(MetaDispatch), ScopeDenied, MetaDispatch},
		"a dispatch that can't be read":  {set(MetaDispatch, "{"), ScopeDenied, MetaDispatch},
		"a dispatch without a run":       {dispatchOf(func(doc map[string]any) { delete(doc, "receipt"); delete(doc, "child_birth") }), ScopeDenied, "receipt"},
		"a dispatch of another run":      {dispatchOf(func(doc map[string]any) { doc["receipt"].(map[string]any)["run_id"] = "other" }), ScopeDenied, "receipt"},
		"a dispatch of another birth":    {dispatchOf(func(doc map[string]any) { doc["child_birth"] = "later" }), ScopeDenied, "child_birth"},
		"a dispatch of another root":     {dispatchOf(func(doc map[string]any) { doc["root_session_id"] = "other" }), ScopeDenied, "root"},
		"a dispatch of another contract": {dispatchOf(func(doc map[string]any) { doc["contract_revision"] = 9 }), ScopeDenied, "contract_revision"},
		"a dispatch of another binding":  {dispatchOf(func(doc map[string]any) { doc["binding"].(map[string]any)["binding_revision"] = 9 }), ScopeDenied, "binding"},
		"a dispatch of another spec": {dispatchOf(func(doc map[string]any) {
			other := strings.Repeat("0", 64)
			doc["spec_hash"], doc["receipt"].(map[string]any)["spec_hash"] = other, other
		}), ScopeDenied, "spec_hash"},
	} {
		t.Run(name, func(t *testing.T) {
			p, child := admitted(t)
			c.change(t, &child)
			before := canonical(t, p.s)
			_, err := p.s.JudgeStop("a@1", "run", child)
			denied(t, err, c.want, c.says)
			_, ok, err := p.s.JudgeResult("a@1", "run", child)
			denied(t, err, c.want, c.says)
			if a := p.assignment("a@1"); ok || a.ProcessStopped || p.s.Counts().Submissions != 0 || !bytes.Equal(before, canonical(t, p.s)) {
				t.Errorf("the refusal changed something: result %t, assignment %+v", ok, a)
			}
		})
	}
}

func dispatchOf(f func(map[string]any)) func(testing.TB, *Child) {
	return func(t testing.TB, c *Child) { change(t, c, MetaDispatch, f) }
}

func denied(t testing.TB, err error, want Kind, says string) {
	t.Helper()
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Kind != want || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v; want %v that names %q", err, want, says)
	}
}

// TestAnotherRunHasNoProof: M-4, T-7.
func TestAnotherRunHasNoProof(t *testing.T) {
	p, child := admitted(t)
	_, err := p.s.JudgeStop("a@1", "another-run", child)
	denied(t, err, ScopeDenied, "another-run")
	_, err = p.s.JudgeStop("b@1", "run", child)
	denied(t, err, ScopeDenied, "no such assignment")
	p.start("b", 1)
	_, err = p.s.JudgeStop("b@1", "run", child)
	denied(t, err, ScopeDenied, "no run was admitted")
	p.admit("b@1", "run")
	_, err = p.s.JudgeStop("b@1", "run", child)
	denied(t, err, ScopeDenied, "was not admitted")
}

// TestAJoinedTaskIsJudged: M-4, T-7. The stop alone gives no submission; the
// result comes after it, once, however often it is asked for.
func TestAJoinedTaskIsJudged(t *testing.T) {
	p, child := admitted(t)
	stop, err := p.s.JudgeStop("a@1", "run", child)
	if err != nil {
		t.Fatal(err)
	}
	if r := stop.Stop; r.PID != nil || r.TaskInstance == nil || *r.TaskInstance != instance || !r.Completed || r.ChildBirth != "born" || r.Receipt.RunID != "run" {
		t.Errorf("got %+v, want the receipt of the joined task, without a pid", r)
	}
	_, _, err = p.s.JudgeResult("a@1", "run", child)
	denied(t, err, AuthorityUnavailable, "publish it first")

	p.do(host1, stop)
	if a := p.assignment("a@1"); !a.ProcessStopped || a.State != Running || p.s.Counts().Submissions != 0 {
		t.Errorf("after the stop: %+v with %d submissions; want it stopped, running, none", a, p.s.Counts().Submissions)
	}
	result, ok, err := p.s.JudgeResult("a@1", "run", child)
	if err != nil || !ok {
		t.Fatalf("got %t, %v; want a result", ok, err)
	}
	if string(result.Content) != output || result.Artifact.URI != "sha256:"+result.Artifact.SHA256 || result.Artifact.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(output))) {
		t.Errorf("got %+v, want the last message under its SHA-256", result)
	}
	p.do(host1, result.Submit)
	before := canonical(t, p.s)
	again, ok, err := p.s.JudgeResult("a@1", "run", child)
	if err != nil || !ok {
		t.Fatalf("got %t, %v; want the result again", ok, err)
	}
	if d := p.command(Command{OperationID: again.Submit.Operation(), Principal: host1, Request: again.Submit}); !d.Replayed {
		t.Error("the same result was taken twice")
	}
	if !bytes.Equal(before, canonical(t, p.s)) || p.s.Counts().Submissions != 1 {
		t.Error("the result taken again changed the scope")
	}
	if sub, _ := p.s.Submission("a@1"); sub.Stale || len(sub.Evidence) != 1 {
		t.Errorf("got %+v, want one that is not stale, with its stop as evidence", sub)
	} else if _, ok := p.s.Receipt(sub.Evidence[0]); !ok {
		t.Errorf("the evidence %q names no operation of the scope", sub.Evidence[0])
	}
}

// TestAReapedProcessNeedsNoTaskMetadata: M-4, T-14.
func TestAReapedProcessNeedsNoTaskMetadata(t *testing.T) {
	for name, more := range map[string]func(*Child){
		"without its identity": func(*Child) {},
		"with its identity":    func(c *Child) { c.Metadata[MetaProcessIdentity] = identity(t, 1234) },
	} {
		t.Run(name, func(t *testing.T) {
			p, child := admitted(t)
			aProcess(t, &child)
			more(&child)
			for range 2 {
				stop, err := p.s.JudgeStop("a@1", "run", child)
				if err != nil {
					t.Fatal(err)
				}
				if stop.Stop.PID == nil || *stop.Stop.PID != 1234 || stop.Stop.TaskInstance != nil {
					t.Errorf("got %+v, want the pid 1234 alone", stop.Stop)
				}
				p.do(host1, stop)
				result, ok, err := p.s.JudgeResult("a@1", "run", child)
				if err != nil || !ok {
					t.Fatalf("got %t, %v; want a result", ok, err)
				}
				p.do(host1, result.Submit)
				if n, seq := p.s.Counts().Submissions, p.s.Seq(); n != 1 || seq != 6 {
					t.Errorf("got %d submissions at seq %d; want 1 at 6, also the second time", n, seq)
				}
			}
		})
	}
}

// TestAnotherReceiptAfterThePublishedOneIsDenied: T-6.
func TestAnotherReceiptAfterThePublishedOneIsDenied(t *testing.T) {
	p, child := admitted(t)
	stop, err := p.s.JudgeStop("a@1", "run", child)
	if err != nil {
		t.Fatal(err)
	}
	p.do(host1, stop)
	aProcess(t, &child)
	_, err = p.s.JudgeStop("a@1", "run", child)
	denied(t, err, ScopeDenied, "another stop receipt")
}

// TestAStopIsStoredOnce: T-6.
func TestAStopIsStoredOnce(t *testing.T) {
	_, child := admitted(t)
	held, err := DecodeStop([]byte(child.Metadata[MetaOwnedStop]))
	if err != nil {
		t.Fatal(err)
	}
	if value, changed, err := held.Store(map[string]string{}); err != nil || !changed || value != child.Metadata[MetaOwnedStop] {
		t.Errorf("the first time: got %q, %t, %v; want it written", value, changed, err)
	}
	if value, changed, err := held.Store(child.Metadata); err != nil || changed || value != child.Metadata[MetaOwnedStop] {
		t.Errorf("the same bytes: got %q, %t, %v; want nothing written", value, changed, err)
	}
	other := held
	other.Completed = false
	_, _, err = other.Store(child.Metadata)
	denied(t, err, ScopeDenied, MetaOwnedStop)
}

// TestAnUnusableLastMessagePublishesTheStopFirst: T-13.
func TestAnUnusableLastMessagePublishesTheStopFirst(t *testing.T) {
	for name, c := range map[string]struct {
		last *LastMessage
		says string
	}{
		"no message":        {nil, "no message"},
		"a user's":          {&LastMessage{Role: "user", Text: output}, "user"},
		"a tool's":          {&LastMessage{Role: "tool", Text: output}, "tool"},
		"it asks for tools": {&LastMessage{Role: "assistant", Text: output, ToolCalls: true}, "tools"},
		"empty":             {&LastMessage{Role: "assistant"}, "blank"},
		"blank":             {&LastMessage{Role: "assistant", Text: " \n\t\u00a0"}, "blank"},
		"over 1 MiB":        {&LastMessage{Role: "assistant", Text: strings.Repeat("x", MaxArtifactBytes+1)}, "1048577"},
	} {
		t.Run(name, func(t *testing.T) {
			p, child := admitted(t)
			child.Last = c.last
			stop, err := p.s.JudgeStop("a@1", "run", child)
			if err != nil {
				t.Fatal(err)
			}
			p.do(host1, stop)
			_, ok, err := p.s.JudgeResult("a@1", "run", child)
			denied(t, err, InvalidTransition, c.says)
			if a := p.assignment("a@1"); ok || !a.ProcessStopped || p.s.Counts().Submissions != 0 {
				t.Errorf("got %+v, a result %t; want the stop and no submission", a, ok)
			}
			p.do(host1, TakeOver{}, Fail{Assignment: "a@1", Reason: err.Error()})
			if got := p.ticket("a").State; got != Blocked {
				t.Errorf("the ticket of a spent attempt is %s, want %s", got, Blocked)
			}
		})
	}
}

// TestTheLargestAndTheSmallestArtifactAreTaken: 1 byte and 1 MiB.
func TestTheLargestAndTheSmallestArtifactAreTaken(t *testing.T) {
	for _, text := range []string{"x", strings.Repeat("x", MaxArtifactBytes)} {
		p, child := admitted(t)
		child.Last.Text = text
		stop, err := p.s.JudgeStop("a@1", "run", child)
		if err != nil {
			t.Fatal(err)
		}
		p.do(host1, stop)
		result, ok, err := p.s.JudgeResult("a@1", "run", child)
		if err != nil || !ok || len(result.Content) != len(text) {
			t.Fatalf("%d bytes: got %d, %t, %v; want them all", len(text), len(result.Content), ok, err)
		}
		p.do(host1, result.Submit)
	}
}

// TestAnUnsuccessfulChildPublishesItsStopOnly: T-9.
func TestAnUnsuccessfulChildPublishesItsStopOnly(t *testing.T) {
	for _, status := range []ChildStatus{ChildFailed, ChildCancelled, ChildTimedOut} {
		t.Run(string(status), func(t *testing.T) {
			p, child := admitted(t)
			child.Status = status
			stopOf(func(doc, _ map[string]any) { doc["completed"] = false })(t, &child)
			stop, err := p.s.JudgeStop("a@1", "run", child)
			if err != nil {
				t.Fatal(err)
			}
			p.do(host1, stop)
			if _, ok, err := p.s.JudgeResult("a@1", "run", child); ok || err != nil {
				t.Errorf("got %t, %v; want no result and no error", ok, err)
			}
			if a := p.assignment("a@1"); a.State != Failed || !a.ProcessStopped || p.s.Counts().Submissions != 0 {
				t.Errorf("got %+v, want it failed and stopped without a submission", a)
			}
		})
	}
}

// TestTheStopComesBeforeTheFinalSave: life cycle, rows 8 to 10. A child whose status
// is still running may have stopped, but has no result.
func TestTheStopComesBeforeTheFinalSave(t *testing.T) {
	p, child := admitted(t)
	child.Status, child.Last = ChildRunning, nil
	stop, err := p.s.JudgeStop("a@1", "run", child)
	if err != nil {
		t.Fatal(err)
	}
	p.do(host1, stop)
	_, _, err = p.s.JudgeResult("a@1", "run", child)
	denied(t, err, AuthorityUnavailable, "final save")

	failed := child
	failed.Status = ChildFailed
	_, _, err = p.s.JudgeResult("a@1", "run", failed)
	denied(t, err, ScopeDenied, "completed is true")
}

// TestJudgingLeavesTheChildAlone: what is judged stays the caller's.
func TestJudgingLeavesTheChildAlone(t *testing.T) {
	p, child := admitted(t)
	before := maps.Clone(child.Metadata)
	if _, err := p.s.JudgeStop("a@1", "run", child); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, child.Metadata) {
		t.Errorf("the metadata became %v", child.Metadata)
	}
}
