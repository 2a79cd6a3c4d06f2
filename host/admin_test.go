package host_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

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

func (r *rig) record(id string) store.Record {
	r.t.Helper()
	rec, err := r.store.Load(context.Background(), store.SessionKey(id))
	if err != nil {
		r.t.Fatal(err)
	}
	return rec
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
