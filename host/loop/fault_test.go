package loop

import (
	"slices"
	"testing"
)

func kinds(effects []Effect) []EffectKind {
	var out []EffectKind
	for _, ef := range effects {
		out = append(out, ef.Kind)
	}
	return out
}

// L-17: cancel wins over a failure whose ending is still being written.
func TestCancelWinsOverAFailureThatIsBeingWritten(t *testing.T) {
	for name, failure := range map[string]Event{
		"provider": {Kind: EvProviderFailed, Reason: "overloaded"},
		"hook":     {Kind: EvHookAborted, Reason: "no"},
		"host":     {Kind: EvHostFailed, Reason: "panic"},
	} {
		p := newPlayer(t, testConfig(2, 4, false, false))
		p.reach(Calling, manner{})
		p.must(failure, Event{Kind: EvCancel, Reason: "now"})
		p.reach(Done, manner{})
		t.Log(name)
		wantEnding(t, p, Cancelled, RuntimeCancelled, ReasonOperatorCancel, "(1, 0, 1)")
		if p.terminals != 1 {
			t.Errorf("%s: %d terminal events; want 1", name, p.terminals)
		}
	}
}

// L-17: cancel never wins over a failed checkpoint, also that of a failure.
func TestCancelNeverWinsOverAFailedCheckpoint(t *testing.T) {
	p := newPlayer(t, testConfig(2, 4, false, false))
	p.reach(Calling, manner{})
	p.must(Event{Kind: EvProviderFailed, Reason: "overloaded"}, Event{Kind: EvCancel}, Event{Kind: EvCheckpointFailed}, Event{Kind: EvCancel}, Event{Kind: EvSettled})
	wantEnding(t, p, Failed, RuntimeFailed, ReasonProvider, "(1, 0, 1)")
}

// S-13: a stop that came while the admission was being written ends the rate-limit waits of its call, too.
func TestAStopBeforeTheCallHurriesIt(t *testing.T) {
	p := newPlayer(t, testConfig(2, 4, false, false))
	p.reach(Admitting, manner{})
	p.must(Event{Kind: EvStop})
	got := kinds(p.must(Event{Kind: EvCheckpointDone}))
	if want := []EffectKind{EffectCallProvider, EffectHurry}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	p.must(Event{Kind: EvInterrupted})
	p.reach(Done, manner{})
	wantEnding(t, p, Stopped, RuntimeCompleted, ReasonOperatorStop, "(1, 0, 1)")
}

// The drain of a wall time may run out while nothing can be interrupted, or while
// an answer is on its way; what would start next is not started then.
func TestAnExpiredDrainStartsNothingMore(t *testing.T) {
	for _, c := range []struct {
		name     string
		cfg      Config
		at       Phase
		how      manner
		answer   []Event
		counters string
	}{
		{"admission", testConfig(2, 4, false, false), Admitting, manner{}, []Event{{Kind: EvCheckpointDone}}, "(1, 0, 1)"},
		{"call answered with tools", testConfig(2, 4, false, false), Calling, manner{}, []Event{{Kind: EvAnswered, ToolCalls: true}}, "(1, 0, 1)"},
		{"guards", testConfig(2, 4, false, false), Guarding, manner{tools: true}, []Event{{Kind: EvToolsGuarded}}, "(1, 0, 1)"},
		{"before tools", testConfig(2, 4, false, false), Securing, manner{tools: true}, []Event{{Kind: EvCheckpointDone}}, "(1, 0, 1)"},
		{"tools", testConfig(2, 4, true, false), Working, manner{tools: true}, []Event{{Kind: EvToolsDone}, {Kind: EvCheckpointDone}}, "(1, 0, 1)"},
		{"round's end, verifier due", testConfig(2, 4, false, true), Closing, manner{}, []Event{{Kind: EvCheckpointDone}}, "(1, 1, 1)"},
		{"round's end, review due", testConfig(2, 4, true, false), Closing, manner{}, []Event{{Kind: EvCheckpointDone}}, "(1, 1, 1)"},
		{"verifier, review due", testConfig(2, 4, true, true), Verifying, manner{}, []Event{{Kind: EvVerified}}, "(1, 1, 1)"},
		{"last answer, finalize due", testConfig(1, 4, false, false), Calling, manner{}, []Event{{Kind: EvAnswered}}, "(1, 1, 1)"},
		{"last review, finalize due", testConfig(1, 4, true, false), Reviewing, manner{}, []Event{{Kind: EvReviewed}}, "(1, 1, 1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlayer(t, c.cfg)
			p.reach(c.at, c.how)
			calls := p.calls
			p.must(Event{Kind: EvWallTime}, Event{Kind: EvExpire})
			p.must(c.answer...)
			if p.m.Phase() != Bounding {
				t.Fatalf("got phase %s, want %s", p.m.Phase(), Bounding)
			}
			p.reach(Done, manner{})
			wantEnding(t, p, BudgetExhausted, RuntimeCompleted, ReasonWallTime, c.counters)
			if p.calls != calls {
				t.Errorf("%d provider calls after the drain expired", p.calls-calls)
			}
		})
	}
}

// A boundary taken at the round's end skips its verifier and hooks once the drain expired.
func TestAnExpiredDrainSkipsWhatABoundaryOwes(t *testing.T) {
	for _, cfg := range []Config{testConfig(2, 4, true, false), testConfig(2, 4, false, true)} {
		p := newPlayer(t, cfg)
		p.reach(Calling, manner{})
		p.must(Event{Kind: EvWallTime}, Event{Kind: EvAnswered}, Event{Kind: EvExpire}, Event{Kind: EvCheckpointDone})
		if p.m.Phase() != Mirroring {
			t.Errorf("got phase %s, want %s", p.m.Phase(), Mirroring)
		}
	}
}

// Durable is about memory as it is: a completion that waits for the next commit is not durable.
func TestACompletionThatWaitsIsNotDurable(t *testing.T) {
	p := newPlayer(t, testConfig(2, 4, false, false))
	p.reach(Calling, manner{})
	p.must(Event{Kind: EvAnswered})
	if p.m.Phase() != Preparing || p.m.Durable() {
		t.Errorf("got phase %s, durable %t; want %s, false", p.m.Phase(), p.m.Durable(), Preparing)
	}
}

// A code that was left out never leaves an ending without one.
func TestEveryHaltHasACode(t *testing.T) {
	for kind, want := range map[EventKind]ReasonCode{
		EvStop: ReasonOperatorStop, EvWallTime: ReasonWallTime, EvBudgetSpent: ReasonTokens, EvCancel: ReasonOperatorCancel,
	} {
		p := newPlayer(t, testConfig(2, 4, false, false))
		p.reach(Calling, manner{})
		p.must(Event{Kind: kind})
		p.reach(Done, manner{})
		if got := p.m.State().ReasonCode; got != want {
			t.Errorf("%s: got code %q, want %q", kind, got, want)
		}
	}
}
