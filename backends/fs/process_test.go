//go:build linux || darwin

package fs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loophost/loophost/host/store"
)

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	wantKind(p.t, s.String(), p.cmd.Process.Signal(s), nil)
}

// stop stops the process and waits until it is.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		p.t.Fatalf("wait for the stop: got %v, %v", status, err)
	}
}

func newRecordIn(t *testing.T) (*Store, store.Ack) {
	t.Helper()
	s := openStore(t, t.TempDir())
	return s, must[store.Ack](t)(s.Create(t.Context(), key, commit(store.Mark{}, "0")))
}

func TestAKilledOwnerIsKnownToBeGoneAtOnce(t *testing.T) {
	ctx := t.Context()
	s, _ := newRecordIn(t)
	p := startProcess(t, s.desc.Location)
	_, _, err := s.Acquire(ctx, key, claim("me"))
	var e *store.Error
	if !errors.Is(err, store.ErrBusy) || !errors.As(err, &e) {
		t.Fatalf("an acquire beside a live owner: got %v, want %v", err, store.ErrBusy)
	}
	host, _ := os.Hostname()
	h := e.Holder
	if h.Fence != p.fence || h.PID != p.cmd.Process.Pid || h.Host != host || time.Since(h.Started) > time.Hour || !h.Expires.IsZero() {
		t.Errorf("got holder %+v, want the fence %+v, pid %d, host %q, a start time and no expiry", h, p.fence, p.cmd.Process.Pid, host)
	}
	p.kill()
	rec := must[store.Record](t)(s.Load(ctx, key))
	if rec.Holder != nil || rec.Fence != p.fence || rec.Released {
		t.Errorf("got %+v, want no holder, the dead owner's fence, not released", rec)
	}
	if _, _, err = s.Acquire(ctx, key, claim("me")); err != nil {
		t.Errorf("an acquire after the kill: got %v, want none", err)
	}
}

func TestAStoppedOwnerIsFencedByForce(t *testing.T) {
	ctx := t.Context()
	s, first := newRecordIn(t)
	p := startProcess(t, s.desc.Location)
	p.stop()
	_, _, err := s.Acquire(ctx, key, claim("me"))
	wantKind(t, "an acquire beside a stopped owner", err, store.ErrBusy)
	f, _ := acquire(t, s, key, force(claim("me")))
	ack := must[store.Ack](t)(s.Commit(ctx, key, f, commit(first.Mark, "mine")))
	p.signal(syscall.SIGCONT)
	p.say("commit")
	if got := p.read("commit"); got != store.ErrFenced.Error() {
		t.Errorf("a commit of the owner that woke up: got %s, want %v", got, store.ErrFenced)
	}
	if rec := must[store.Record](t)(s.Load(ctx, key)); rec.Mark != ack.Mark || string(rec.Head) != "mine" {
		t.Errorf("got %+v %q, want the new owner's state untouched", rec.Mark, rec.Head)
	}
}

// Most of the time the stopped owner holds the commit lock: the take-over must
// not need it, and whatever the owner saw acknowledged must be there.
func TestAnOwnerStoppedInTheMiddleOfCommitsIsFencedByForce(t *testing.T) {
	ctx := t.Context()
	s, _ := newRecordIn(t)
	past := 0
	for round := range 6 {
		p := startProcess(t, s.desc.Location)
		p.say("loop")
		for range 5 + round {
			p.read("acked")
		}
		p.stop()
		f, rec := acquire(t, s, key, force(claim("me")))
		ack := must[store.Ack](t)(s.Commit(ctx, key, f, commit(rec.Mark, "mine", "mine")))
		p.signal(syscall.SIGCONT)
		acked, ended := uint64(0), ""
		for ended == "" && p.out.Scan() {
			if _, err := fmt.Sscanf(p.out.Text(), "acked %d", &acked); err != nil {
				ended = strings.TrimPrefix(p.out.Text(), "ended ")
			}
		}
		if ended != store.ErrFenced.Error() && ended != store.ErrUnknownOutcome.Error() {
			t.Errorf("round %d: the stopped owner ended with %q, want fenced or unknown outcome", round, ended)
		}
		if acked > rec.Mark.Revision {
			t.Errorf("round %d: the stopped owner saw revision %d acknowledged, and the take-over found only %d", round, acked, rec.Mark.Revision)
		}
		p.kill()
		if got := must[store.Record](t)(s.Load(ctx, key)); got.Mark != ack.Mark || string(got.Head) != "mine" {
			t.Errorf("round %d: got %+v %q, want the new owner's state untouched", round, got.Mark, got.Head)
		}
		rep := must[store.CheckReport](t)(s.Check(ctx, key))
		if len(rep.Findings) > 0 {
			t.Errorf("round %d: findings %v", round, rep.Findings)
		}
		s.mu.Lock()
		past = int(s.records[key].number) - 1
		s.mu.Unlock()
		wantKind(t, "release", s.Release(ctx, key, f), nil)
	}
	t.Logf("in %d of 6 rounds the stopped owner held the commit lock", past)
}

func TestAKillBetweenAnyTwoInstructionsLosesNothingAcknowledged(t *testing.T) {
	ctx := t.Context()
	s, _ := newRecordIn(t)
	for round := range 12 {
		p := startProcess(t, s.desc.Location)
		p.say("loop")
		p.read("acked")
		for range round {
			p.read("acked")
		}
		p.signal(syscall.SIGKILL)
		acked := uint64(0)
		for p.out.Scan() {
			var n uint64
			if _, err := fmt.Sscanf(p.out.Text(), "acked %d", &n); err != nil {
				t.Fatalf("round %d: the other process says %q", round, p.out.Text())
			}
			acked = n
		}
		p.kill()
		rec := must[store.Record](t)(s.Load(ctx, key))
		if rec.Mark.Revision < acked || rec.Mark.Revision > acked+1 && acked > 0 {
			t.Errorf("round %d: got revision %d after %d was acknowledged, want that or the next", round, rec.Mark.Revision, acked)
		}
		if rep := must[store.CheckReport](t)(s.Check(ctx, key)); len(rep.Findings) > 0 {
			t.Errorf("round %d: findings %v", round, rep.Findings)
		}
		f, _ := acquire(t, s, key, claim("me"))
		wantKind(t, "release", s.Release(ctx, key, f), nil)
	}
}

func TestASignalReachesAnOwnerInAnotherProcess(t *testing.T) {
	ctx := t.Context()
	s, _ := newRecordIn(t)
	p := startProcess(t, s.desc.Location)
	p.stop() // also one that hangs can be told
	wantKind(t, "signal", s.Signal(ctx, key, store.Signal{Kind: store.SignalStop, Run: p.fence.Run, Reason: "enough"}), nil)
	rec := must[store.Record](t)(s.Load(ctx, key))
	if len(rec.Signals) != 1 || rec.Signals[0].Reason != "enough" {
		t.Errorf("got signals %+v, want the stop", rec.Signals)
	}
	p.signal(syscall.SIGCONT)
}
