package loop

import (
	"fmt"
	"testing"
)

// M-1 at the level of the machine: which checkpoint fails, the counters at the
// end, and how often the provider was called and tools and hooks ran.
func TestCheckpointFailureMatrix(t *testing.T) {
	hookStop := Event{Kind: EvStop, Code: ReasonHookStop, Reason: "enough"}
	for _, c := range []struct {
		name     string
		cfg      Config
		play     func(*player) // to the checkpoint that fails
		fails    Checkpoint
		status   Status
		counters string
		calls    int
		toolRuns int
	}{
		{"stopped, boundary", testConfig(2, 4, true, false), func(p *player) {
			p.reach(Reviewing, manner{})
			p.must(hookStop, Event{Kind: EvReviewed})
		}, CheckpointBoundary, Stopped, "(1, 1, 1)", 1, 0},
		{"stopped, final mirror", testConfig(2, 4, true, false), func(p *player) {
			p.reach(Reviewing, manner{})
			p.must(hookStop)
			p.reach(Mirroring, manner{})
		}, CheckpointMirror, Stopped, "(1, 1, 1)", 1, 0},
		{"budget_exhausted, boundary", testConfig(1, 1, false, false), func(p *player) {
			p.reach(Bounding, manner{tools: true})
		}, CheckpointBoundary, BudgetExhausted, "(1, 0, 1)", 1, 1},
		{"budget_exhausted, final mirror", testConfig(1, 1, false, false), func(p *player) {
			p.reach(Mirroring, manner{tools: true})
		}, CheckpointMirror, BudgetExhausted, "(1, 0, 1)", 1, 1},
		{"completed, final mirror", testConfig(1, 1, false, false), func(p *player) {
			p.reach(Mirroring, manner{})
		}, CheckpointMirror, Completed, "(1, 1, 1)", 1, 0},
		{"finalizing, boundary", testConfig(1, 1, false, false), func(p *player) {
			p.reach(Bounding, manner{})
		}, CheckpointBoundary, Finalizing, "(1, 1, 1)", 1, 0},
		{"start", testConfig(1, 1, false, false), func(p *player) {
			p.reach(Starting, manner{})
		}, CheckpointStart, Running, "(0, 0, 0)", 0, 0},
		{"first admission", testConfig(1, 1, false, false), func(p *player) {
			p.reach(Admitting, manner{})
		}, CheckpointAdmission, Running, "(1, 0, 1)", 0, 0},
		{"second iteration's admission", testConfig(2, 4, false, false), func(p *player) {
			p.reach(Calling, manner{})
			p.reach(Admitting, manner{})
		}, CheckpointAdmission, Running, "(2, 1, 2)", 1, 0},
		{"before tools", testConfig(1, 2, false, false), func(p *player) {
			p.reach(Securing, manner{tools: true})
		}, CheckpointTools, Running, "(1, 0, 1)", 1, 0},
		{"round's end", testConfig(2, 4, true, false), func(p *player) {
			p.reach(Closing, manner{})
		}, CheckpointRoundEnd, Running, "(1, 1, 1)", 1, 0},
		{"failed ending", testConfig(1, 1, false, false), func(p *player) {
			p.reach(Calling, manner{})
			p.must(Event{Kind: EvProviderFailed, Reason: "overloaded"})
		}, CheckpointEnding, Failed, "(1, 0, 1)", 1, 0},
		{"cancelled ending", testConfig(1, 1, false, false), func(p *player) {
			p.reach(Calling, manner{})
			p.must(Event{Kind: EvCancel, Reason: "now"}, Event{Kind: EvInterrupted})
		}, CheckpointEnding, Cancelled, "(1, 0, 1)", 1, 0},
	} {
		for _, settling := range []EventKind{EvSettled, EvSettleFailed, EvFenced} {
			t.Run(fmt.Sprintf("%s, then %s", c.name, settling), func(t *testing.T) {
				p := newPlayer(t, c.cfg)
				c.play(p)
				if p.pending == nil || p.pending.Checkpoint != c.fails || p.m.State().Status != c.status {
					t.Fatalf("got %+v under way with status %s; want checkpoint %s with %s", p.pending, p.m.State().Status, c.fails, c.status)
				}
				atCommit := p.m.State()
				p.must(Event{Kind: EvCheckpointFailed, Reason: "disk full"}, Event{Kind: settling})

				status, rt, code := Failed, RuntimeFailed, ReasonCheckpoint
				switch c.status {
				case Failed:
					code = ReasonProvider
				case Cancelled:
					status, rt, code = Cancelled, RuntimeCancelled, ReasonOperatorCancel
				}
				wantEnding(t, p, status, rt, code, c.counters)
				if p.calls != c.calls || p.toolRuns != c.toolRuns || p.completes != 0 {
					t.Errorf("got %d calls, %d tool batches, %d complete events; want %d, %d, 0", p.calls, p.toolRuns, p.completes, c.calls, c.toolRuns)
				}
				if got := p.m.State().Revision; got <= atCommit.Revision {
					t.Errorf("the state that is written over has revision %d; want one over %d (L-20)", got, atCommit.Revision)
				}
				if !p.m.CheckpointFailed() || p.m.Durable() != (settling == EvSettled) || p.m.Fenced() != (settling == EvFenced) {
					t.Errorf("checkpoint failed %t, durable %t, fenced %t", p.m.CheckpointFailed(), p.m.Durable(), p.m.Fenced())
				}
				if (p.terminals == 1) != (settling == EvSettled) {
					t.Errorf("got %d terminal events after %s; want one only once the ending is durable", p.terminals, settling)
				}
				p.silence()
			})
		}
	}
}

// The n-th checkpoint fails, for n = 1, 2, 3 … until the run gets through; for
// several runs that differ in what they do.
func TestWhicheverCheckpointFailsTheRunFails(t *testing.T) {
	for name, c := range map[string]struct {
		cfg Config
		how manner
		at  Phase // where signal is sent; "" for nowhere
		sig Event
	}{
		"direct answers":             {cfg: testConfig(3, 6, false, false)},
		"tools until the rounds end": {cfg: testConfig(2, 3, false, false), how: manner{tools: true}},
		"everything subscribed":      {cfg: testConfig(3, 6, true, true)},
		"goal met":                   {cfg: testConfig(3, 6, true, true), how: manner{passed: true}},
		"stop during the call":       {cfg: testConfig(3, 6, true, false), at: Calling, sig: Event{Kind: EvStop}},
		"cancel during the call":     {cfg: testConfig(3, 6, false, false), at: Calling, sig: Event{Kind: EvCancel}},
		"wall time, tools":           {cfg: testConfig(3, 6, true, true), how: manner{tools: true}, at: Working, sig: Event{Kind: EvWallTime}},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				p := newPlayer(t, c.cfg)
				seen, failed, sent := 0, false, false
				calls := 0
				for p.m.Phase() != Done {
					if p.m.Phase() == c.at && !sent {
						sent = true
						p.must(c.sig)
						continue
					}
					if p.pending != nil && p.pending.Kind == EffectCheckpoint {
						if seen++; seen == n {
							failed, calls = true, p.calls
							p.must(Event{Kind: EvCheckpointFailed, Reason: "disk full"})
							continue
						}
					}
					p.must(p.next(c.how))
				}
				if !failed {
					if n < 4 || p.terminals != 1 || p.m.CheckpointFailed() {
						t.Errorf("the run without a failure had %d checkpoints and %d terminal events, checkpoint failed %t", n-1, p.terminals, p.m.CheckpointFailed())
					}
					return
				}
				if !p.m.CheckpointFailed() || p.completes != 0 || p.calls != calls {
					t.Errorf("checkpoint %d: failed %t, %d complete events, %d calls afterwards", n, p.m.CheckpointFailed(), p.completes, p.calls-calls)
				}
			}
		})
	}
}
