package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/pluginapi"
)

// runOnce runs a loop in session id and closes it again.
func (r *rig) runOnce(id string, spec host.RunSpec) host.Result {
	r.t.Helper()
	s, err := r.host.Open(context.Background(), host.OpenRequest{ID: id})
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := s.Run(context.Background(), spec)
	if err := errors.Join(err, s.Close(context.Background())); err != nil {
		r.t.Fatal(err)
	}
	return res
}

// abandon leaves a session with a loop under way whose owner is gone, with one
// tool call whose result nobody knows.
func abandon(t *testing.T, mem *memstore.Memory, id string) {
	t.Helper()
	st := mem.Open()
	defer st.Close()
	h, err := host.New(host.Config{Store: st, Owner: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Open(context.Background(), host.OpenRequest{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	other := mem.Open()
	defer other.Close()
	spec := host.RunSpec{Objective: "do it", Iterations: 2, Rounds: 4, Provider: twoRounds()}
	spec.Tools = []plugin.Tool{(&bench{do: func(ctx context.Context, _ pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
		// Somebody else takes the record and lets it go again, as if the owner had died here.
		f, _, err := other.Acquire(ctx, store.SessionKey(id), store.Claim{Owner: "undertaker", Run: "00000000-0000-4000-8000-000000000001", Force: true})
		if err == nil {
			err = other.Release(ctx, store.SessionKey(id), f)
		}
		return pluginapi.ToolOutput{Text: "done"}, err
	}}).tool()}
	spec.Provider = &script{answers: []any{useTool("write", `{}`)}}
	if _, err := s.Run(context.Background(), spec); !host.IsFenced(err) {
		t.Fatalf("got %v, want the owner to be gone", err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func newMemory(t *testing.T) (*memstore.Memory, store.Store) {
	t.Helper()
	mem := memstore.New()
	st := mem.Open()
	t.Cleanup(func() { _ = st.Close() })
	return mem, st
}

func TestAnExportComesBackByteForByte(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	var tools atomic.Int64
	spec := r.spec(&script{answers: []any{useTool("echo", `{"html":"<b>&amp;\u2028</b>","big":9007199254740993}`), say("1 < 2 \u2028 ünï")}}, 1, 2)
	spec.Tools = []plugin.Tool{echoTool(&tools)}
	r.runOnce("s", spec)
	var out bytes.Buffer
	if err := r.host.Export(ctx, "s", &out); err != nil {
		t.Fatal(err)
	}
	id, err := r.host.Import(ctx, bytes.NewReader(out.Bytes()), "t")
	if err != nil || id != "t" {
		t.Fatalf("import: got %q and %v", id, err)
	}
	if r.raw("s") != r.raw("t") {
		t.Error("head and log of the imported session differ from the exported ones")
	}
	if a, b := r.record("s").Mark.Birth, r.record("t").Mark.Birth; a == b {
		t.Error("the imported session has the birth of the exported one")
	}
	if _, err := r.host.Import(ctx, bytes.NewReader(out.Bytes()), ""); !errors.Is(err, store.ErrExists) {
		t.Errorf("import over the session itself: got %v, want ErrExists", err)
	}
	r.runOnce("t", r.spec(&script{answers: []any{say("on")}}, 1, 1))
}

func (r *rig) record(id string) store.Record {
	r.t.Helper()
	rec, err := r.store.Load(context.Background(), store.SessionKey(id))
	if err != nil {
		r.t.Fatal(err)
	}
	return rec
}

func TestADamagedExportIsRefusedAndCreatesNothing(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	r.runOnce("s", r.spec(&script{answers: []any{say("a")}}, 1, 1))
	var out bytes.Buffer
	if err := r.host.Export(ctx, "s", &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(out.String(), "\n")
	damaged := map[string]string{
		"nothing":                   "",
		"something else":            "{}\n",
		"cut in the header":         out.String()[:20],
		"cut before the checksum":   strings.Join(lines[:len(lines)-2], ""),
		"without its last newline":  strings.TrimSuffix(out.String(), "\n"),
		"something behind it":       out.String() + "\n",
		"a line too few":            strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), ""),
		"a line twice":              strings.Join(append(append([]string{}, lines[:2]...), lines[1:]...), ""),
		"a changed entry":           strings.Replace(out.String(), `"text":"a"`, `"text":"b"`, 1),
		"a changed head":            strings.Replace(out.String(), `"iterations_started":1`, `"iterations_started":0`, 1),
		"a head that does not hold": strings.Replace(out.String(), `"runtime":{`, `"runtim":{`, 1),
	}
	for name, data := range damaged {
		if _, err := r.host.Import(ctx, strings.NewReader(data), "t"); !errors.Is(err, host.ErrExport) {
			t.Errorf("%s: got %v, want ErrExport", name, err)
		}
		if _, err := r.store.Load(ctx, store.SessionKey("t")); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("%s: a session was created (%v)", name, err)
		}
	}
}

func TestALongLogIsExportedImportedAndForkedInBatches(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	p := &script{answers: []any{say(strings.Repeat("a", 3<<20))}}
	r.runOnce("s", r.spec(p, 8, 8))
	var out bytes.Buffer
	if err := r.host.Export(ctx, "s", &out); err != nil {
		t.Fatal(err)
	}
	if _, err := r.host.Import(ctx, &out, "t"); err != nil {
		t.Fatal(err)
	}
	if r.raw("s") != r.raw("t") {
		t.Error("head and log of the imported session differ from the exported ones")
	}
	if err := r.host.Fork(ctx, "s", "u"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r.messages("s"), r.messages("u")); d != "" {
		t.Error("the fork's messages differ")
	}
	for _, id := range []string{"t", "u"} {
		if rec := r.record(id); rec.Holder != nil || rec.Mark.Revision < 2 {
			t.Errorf("%s is held (%v) or was made in one commit (revision %d)", id, rec.Holder, rec.Mark.Revision)
		}
	}
}

func TestAForkHasTheMessagesAndNoLoop(t *testing.T) {
	mem, st := newMemory(t)
	abandon(t, mem, "s")
	r := newRig(t, st)
	ctx := context.Background()
	before := r.raw("s")
	if err := r.host.Fork(ctx, "s", "f"); err != nil {
		t.Fatal(err)
	}
	if r.raw("s") != before {
		t.Error("the fork changed the session it was made from")
	}
	head := r.stored("f")
	if head.Loop != nil || head.Forked == nil || head.Forked.SessionID != "s" || head.Forked.Mark != r.record("s").Mark {
		t.Errorf("the fork's head is %+v, want no loop and where it comes from", head)
	}
	if d := cmp.Diff([]string{"c unknown"}, r.results("f")); d != "" {
		t.Errorf("results in the fork (-want +got):\n%s", d)
	}
	p := &script{answers: []any{say("on")}}
	r.runOnce("f", r.spec(p, 1, 1))
	if n := len(p.seen[0].Messages); n != 4 {
		t.Errorf("the fork's run sent %d messages, want the three of its origin and the objective", n)
	}
	if err := r.host.Fork(ctx, "none", "g"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a fork of nothing: got %v, want ErrNotFound", err)
	}
	if err := r.host.Fork(ctx, "s", "f"); !errors.Is(err, store.ErrExists) {
		t.Errorf("a fork onto a session: got %v, want ErrExists", err)
	}
}

func TestALostLoopIsSettledByACancel(t *testing.T) {
	mem, st := newMemory(t)
	abandon(t, mem, "s")
	r := newRig(t, st)
	report, err := r.host.Cancel(context.Background(), "s", "give it up")
	if err != nil || report.Holder != nil || report.Settled == nil {
		t.Fatalf("got %+v and %v, want it settled", report, err)
	}
	head := r.stored("s")
	if head.Loop.Status != loop.Cancelled || head.Runtime.Status != loop.RuntimeCancelled || head.Loop.Reason != "give it up" || of(head.Loop) != (counters{1, 0, 1}) {
		t.Errorf("stored %+v %+v", head.Loop, head.Runtime)
	}
	if d := cmp.Diff([]string{"c unknown"}, r.results("s")); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	if _, err := r.host.Cancel(context.Background(), "s", "again"); !errors.Is(err, host.ErrNotRunning) {
		t.Errorf("a second cancel: got %v, want ErrNotRunning", err)
	}
	r.runOnce("s", r.spec(&script{answers: []any{say("on")}}, 1, 1))
}

func TestTakeOverMarksTheLoopAndNamesTheOwner(t *testing.T) {
	mem := memstore.New()
	a, b := mem.Open(), mem.Open()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	first, second := newRig(t, a), newRig(t, b)
	s := first.open("s")
	entered, release := make(chan struct{}), make(chan struct{})
	p := &script{answers: []any{func(context.Context) (pluginapi.Message, error) {
		close(entered)
		<-release
		return say("late"), nil
	}}}
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(context.Background(), first.spec(p, 1, 1))
		done <- err
	}()
	within(t, "the provider call", entered)
	report, err := second.host.TakeOver(context.Background(), "s", "it hangs")
	close(release)
	if err != nil || report.Previous == nil || report.Previous.Fence.Run != s.ExecutionID() || report.Result == nil || report.Result.Status != loop.RecoveryUnsupported {
		t.Errorf("got %+v and %v, want the owner and a loop that is recovery_unsupported", report, err)
	}
	if err := <-done; !host.IsFenced(err) {
		t.Errorf("the old owner got %v, want fenced", err)
	}
	if rec := second.record("s"); rec.Holder != nil {
		t.Errorf("the session is held by %+v after the take-over", rec.Holder)
	}
	none, err := second.host.TakeOver(context.Background(), "s", "again")
	if err != nil || none.Previous != nil {
		t.Errorf("a take-over from nobody: got %+v and %v", none, err)
	}
	if _, err := second.host.TakeOver(context.Background(), "none", ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a take-over of nothing: got %v, want ErrNotFound", err)
	}
}

func TestADeletedSessionComesBackWithAnotherBirth(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	r.runOnce("s", r.spec(&script{answers: []any{say("a")}}, 1, 1))
	birth := r.record("s").Mark.Birth
	if err := r.host.Delete(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if err := r.host.Delete(ctx, "s"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a second delete: got %v, want ErrNotFound", err)
	}
	if _, err := r.host.Open(ctx, host.OpenRequest{ID: "s", MustExist: true}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("open what must exist: got %v, want ErrNotFound", err)
	}
	s := r.open("s")
	if s.Birth() <= birth || s.Snapshot().Head.Loop != nil {
		t.Errorf("the new session has birth %s after %s and loop %v", s.Birth(), birth, s.Snapshot().Head.Loop)
	}
	if err := r.host.Delete(ctx, "s"); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a delete of an open session: got %v, want ErrBusy", err)
	}
}

// What anybody reads later is what the run's observer got live: its durable
// events, then the terminal one.
func TestEventsReplayTheLiveStream(t *testing.T) {
	tests := []struct {
		name string
		spec func(*rig) host.RunSpec
		last host.EventType
	}{
		{"completed", func(r *rig) host.RunSpec {
			spec := r.spec(&script{answers: []any{useTool("echo", `{}`), say("a")}}, 2, 4)
			spec.Tools = []plugin.Tool{echoTool(new(atomic.Int64))}
			spec.Hooks = []plugin.Hook{hook("watch", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
				return pluginapi.Decision{Action: pluginapi.Inject, Text: "go on"}
			})}
			return spec
		}, host.EventComplete},
		{"failed", func(r *rig) host.RunSpec { return r.spec(&script{answers: []any{fails(pluginapi.FailAuth, 0)}}, 1, 1) }, host.EventFailed},
		{"stopped", func(r *rig) host.RunSpec {
			spec := r.spec(&script{answers: []any{say("a")}}, 2, 4)
			spec.Hooks = []plugin.Hook{hook("stopper", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
				return pluginapi.Decision{Action: pluginapi.Stop, Reason: "enough"}
			})}
			return spec
		}, host.EventComplete},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			s := r.open("s")
			_, _ = s.Run(context.Background(), tt.spec(r))
			replay := func(follow bool) []host.Event {
				t.Helper()
				var out []host.Event
				if err := r.host.Events(context.Background(), "s", 1, follow, func(e host.Event) error {
					out = append(out, e)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				return out
			}
			var live []host.Event
			for _, e := range r.events {
				if e.Seq != nil || e.Type.Terminal() {
					live = append(live, e)
				}
			}
			if held := replay(false); len(held) != len(live)-1 {
				t.Errorf("got %d events while the session is held, want the %d durable ones without an ending", len(held), len(live)-1)
			}
			if err := s.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			got := replay(true)
			// The time of a terminal event is that of its reading: it is stored nowhere.
			live[len(live)-1].Time, got[len(got)-1].Time = time.Time{}, time.Time{}
			if d := cmp.Diff(asJSON(t, live), asJSON(t, got)); d != "" {
				t.Errorf("replayed events differ (-live +replayed):\n%s", d)
			}
			last := got[len(got)-1]
			if last.Type != tt.last || last.Ending == nil || last.Seq != nil || last.Revision != r.record("s").Mark.Revision {
				t.Errorf("the last event is %+v, want %s of the record's revision", last, tt.last)
			}
			for i, e := range got {
				if e.SessionID != "s" || e.ExecutionID != s.ExecutionID() || e.Generation != s.Generation() || e.Revision == 0 {
					t.Errorf("event %d is %+v, want it to name session, execution, generation and revision", i, e)
				}
			}
		})
	}
}

func asJSON(t *testing.T, events []host.Event) []string {
	t.Helper()
	out := make([]string, len(events))
	for i, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(data)
	}
	return out
}

func TestEventsFollowALiveSessionToItsEnd(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("s")
	var got []host.EventType
	done := make(chan error, 1)
	go func() {
		done <- r.host.Events(context.Background(), "s", 1, true, func(e host.Event) error {
			got = append(got, e.Type)
			return nil
		})
	}()
	if _, err := s.Run(context.Background(), r.spec(&script{answers: []any{say("a")}}, 1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 || got[len(got)-1] != host.EventComplete {
		t.Errorf("got %v, want the stream up to complete", got)
	}
}

func TestEventsEndWithTheReaderOrItsContext(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("s")
	if _, err := s.Run(context.Background(), r.spec(&script{answers: []any{say("a")}}, 1, 1)); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if err := r.host.Events(context.Background(), "s", 1, true, func(host.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want the reader's error", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	err := r.host.Events(ctx, "s", 1, true, func(host.Event) error { return nil })
	if !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if err := r.host.Events(context.Background(), "none", 1, false, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestSessionsAreListedPageByPage(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	for i := range 5 {
		r.runOnce(fmt.Sprint("s", i), r.spec(&script{answers: []any{say("a")}}, 1, 1))
	}
	bad, err := r.store.Create(ctx, store.SessionKey("bad"), store.Commit{ID: "00000000-0000-4000-8000-000000000002", Head: []byte("{")})
	if err != nil || bad.Mark.Revision != 1 {
		t.Fatal(bad, err)
	}
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := r.host.Sessions(ctx, cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Items {
			if seen[v.ID] {
				t.Errorf("%s is listed twice", v.ID)
			}
			seen[v.ID] = true
			if (v.Err != nil) != (v.ID == "bad") {
				t.Errorf("%s has the error %v", v.ID, v.Err)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 6 {
		t.Errorf("got %v, want six sessions", seen)
	}
	if _, err := r.host.Show(ctx, "bad"); !errors.Is(err, loop.ErrState) {
		t.Errorf("show: got %v, want ErrState", err)
	}
	if _, err := r.host.Open(ctx, host.OpenRequest{ID: "bad"}); !errors.Is(err, loop.ErrState) {
		t.Errorf("open: got %v, want ErrState", err)
	}
	if rec := r.record("bad"); rec.Holder != nil {
		t.Error("a session that can't be read stays held")
	}
}

func TestASnapshotIsACopy(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("s")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := s.Snapshot().Head.Encode(); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	if _, err := s.Run(context.Background(), r.spec(&script{answers: []any{say("a")}}, 20, 20)); err != nil {
		t.Error(err)
	}
	close(stop)
	<-stopped
	a := s.Snapshot()
	a.Head.Loop.Status, a.Head.Run.Model = loop.Failed, "changed"
	if b := s.Snapshot(); b.Head.Loop.Status == loop.Failed || b.Head.Run.Model == "changed" {
		t.Errorf("a change of a snapshot shows in the session: %s", cmp.Diff(a, b, cmpopts.EquateEmpty()))
	}
}

func TestASessionRunsOnceAndNotAfterItsClose(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	s := r.open("s")
	spec := r.spec(&script{answers: []any{say("a")}}, 1, 1)
	if _, err := s.Run(ctx, spec); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(ctx, spec); !errors.Is(err, host.ErrUsed) {
		t.Errorf("a second run: got %v, want ErrUsed", err)
	}
	if err := errors.Join(s.Close(ctx), s.Close(ctx)); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := s.Run(ctx, spec); !errors.Is(err, host.ErrClosed) {
		t.Errorf("a run after the close: got %v, want ErrClosed", err)
	}
	if err := s.Checkpoint(ctx); !errors.Is(err, host.ErrClosed) {
		t.Errorf("a checkpoint after the close: got %v, want ErrClosed", err)
	}
	if err := s.Finish(ctx, s.Expected(), loop.OutcomeOK, "", ""); !errors.Is(err, host.ErrClosed) {
		t.Errorf("settling after the close: got %v, want ErrClosed", err)
	}
}
