package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/pluginapi"
)

func faultyMemory(t *testing.T) (*conformance.Faulty, store.Store) {
	t.Helper()
	mem := memstore.New()
	inner, other := mem.Open(), mem.Open()
	t.Cleanup(func() { _, _ = inner.Close(), other.Close() })
	return conformance.NewFaulty(inner), other
}

// After lost data nothing is written and nothing is tried again (S-6).
func TestARegressedRecordIsNotWrittenAgain(t *testing.T) {
	f, _ := faultyMemory(t)
	r := newRig(t, f.Store())
	f.Inject(conformance.Fault{Op: conformance.OpCommit, Nth: 2, Err: &store.Error{Op: "commit", Kind: store.ErrRegressed}})
	s := r.open("s")
	p := &script{answers: []any{say("a")}}
	_, err := s.Run(context.Background(), r.spec(p, 1, 1))
	failed, ok := errors.AsType[*host.CheckpointError](err)
	if !ok || !failed.Unknown || !errors.Is(err, store.ErrRegressed) {
		t.Errorf("got %v, want a checkpoint failure of unknown state that wraps ErrRegressed", err)
	}
	if err := s.Checkpoint(context.Background()); !errors.Is(err, store.ErrRegressed) {
		t.Errorf("a checkpoint after it: got %v, want ErrRegressed", err)
	}
	if n, m := f.Count(conformance.OpCommit), f.Count(conformance.OpResolve); n != 2 || m != 0 || p.calls.Load() != 0 {
		t.Errorf("got %d commits, %d resolves and %d provider calls, want 2, 0 and 0", n, m, p.calls.Load())
	}
}

// hanging is a store whose chosen calls hang until their context ends.
type hanging struct {
	store.Store
	from, n int
}

func (h *hanging) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	if h.n++; h.n >= h.from {
		<-ctx.Done()
		return store.Ack{}, &store.Error{Op: "commit", Key: key, Kind: store.ErrUnknownOutcome, Err: ctx.Err()}
	}
	return h.Store.Commit(ctx, key, f, c)
}

func (h *hanging) Resolve(ctx context.Context, _ store.Key, _ store.Fence, _ string) (store.Outcome, error) {
	<-ctx.Done()
	return store.Outcome{}, ctx.Err()
}

func TestAStoreThatHangsEndsTheRunHonestly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New().Open()
		t.Cleanup(func() { _ = mem.Close() })
		r := newRig(t, &hanging{Store: mem, from: 2})
		p := &script{answers: []any{say("a")}}
		began := time.Now()
		_, err := r.open("s").Run(context.Background(), r.spec(p, 1, 1))
		failed, ok := errors.AsType[*host.CheckpointError](err)
		if !ok || !failed.Unknown || !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a checkpoint failure of unknown state that wraps its causes", err)
		}
		// The commit, its resolving, and the settling's resolving.
		if took := time.Since(began); took != 3*host.DefaultStoreTimeout || p.calls.Load() != 0 {
			t.Errorf("got the end after %v and %d provider calls, want after %v and none", took, p.calls.Load(), 3*host.DefaultStoreTimeout)
		}
	})
}

// longExport is an export whose log takes several commits.
func longExport(t *testing.T) []byte {
	t.Helper()
	r := newRig(t, nil)
	r.runOnce("s", r.spec(&script{answers: []any{say(strings.Repeat("a", 3<<20))}}, 8, 8))
	var out bytes.Buffer
	if err := r.host.Export(context.Background(), "s", &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Whichever store call of an import fails, the session is there whole, or not
// at all, or the error says that a half is left.
func TestAnImportThatFailsLeavesNoHalf(t *testing.T) {
	export := longExport(t)
	for _, when := range []conformance.When{conformance.Before, conformance.After} {
		for n, more := 1, true; more; n++ {
			f, other := faultyMemory(t)
			f.Inject(conformance.Fault{Nth: n, When: when})
			r := newRig(t, f.Store())
			_, err := r.host.Import(context.Background(), bytes.NewReader(export), "t")
			more = f.Struck() > 0
			at := fmt.Sprintf("call %d fails %s", n, when)
			if !more {
				if err != nil {
					t.Fatalf("an import without a fault: %v", err)
				}
				break
			}
			if err == nil {
				t.Errorf("%s: got success", at)
			}
			rec, lerr := other.Load(context.Background(), store.SessionKey("t"))
			if errors.Is(lerr, store.ErrNotFound) {
				continue
			}
			head, derr := host.DecodeHead(rec.Head)
			if derr != nil {
				t.Fatal(derr)
			}
			calls := f.Calls()
			last := calls[len(calls)-1].Op
			switch {
			case last == conformance.OpRelease && head.Loop != nil && head.Loop.Status == loop.Completed: // whole
			case n == 1 && when == conformance.After && last == conformance.OpCreate: // whose it is can't be told
			default:
				t.Errorf("%s: a half is left: revision %d, loop %+v (%v)", at, rec.Mark.Revision, head.Loop, err)
			}
		}
	}
}

func TestAStopBeforeTheRunAdmitsNothing(t *testing.T) {
	r := newRig(t, nil)
	s := r.open("s")
	if err := errors.Join(s.Stop("never mind"), s.Stop("again")); err != nil {
		t.Fatal(err)
	}
	p := &script{answers: []any{say("a")}}
	res, err := s.Run(context.Background(), r.spec(p, 1, 1))
	if err != nil || res.Status != loop.Stopped || res.Reason != "never mind" || p.calls.Load() != 0 {
		t.Errorf("got %+v and %v after %d provider calls, want stopped with the first reason and none", res, err, p.calls.Load())
	}
	if got := of(r.stored("s").Loop); got != (counters{}) {
		t.Errorf("got counters %v, want none", got)
	}
}

func TestATextInjectedBesideARewrittenRequestReachesTheProvider(t *testing.T) {
	r := newRig(t, nil)
	p := &script{answers: []any{say("a")}}
	spec := r.spec(p, 1, 1)
	spec.Hooks = []plugin.Hook{redactor("rewrites", 0, pluginapi.BeforeProvider), hook("injects", pluginapi.BeforeProvider, func(*pluginapi.HookInput) pluginapi.Decision {
		return pluginapi.Decision{Action: pluginapi.Inject, Text: "mind the gap"}
	})}
	if _, err := r.open("s").Run(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	for what, messages := range map[string][]pluginapi.Message{"the provider": p.seen[0].Messages, "the log": r.messages("s")} {
		n := 0
		for _, m := range messages {
			if m.Text == "mind the gap" && m.Origin == "hook:injects" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s has the injected text %d times, want once: %+v", what, n, messages)
		}
	}
}
