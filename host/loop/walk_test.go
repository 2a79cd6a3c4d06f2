package loop

import (
	"testing"

	"pgregory.net/rapid"
)

// choices is where a walk takes its decisions from: a number from 0 to n-1.
type choices func(name string, n int) int

// walkConfig draws a small loop.
func walkConfig(pick choices) Config {
	return testConfig(int64(1+pick("iterations", 3)), int64(1+pick("rounds", 9)), pick("after_round", 2) == 1, pick("verifier", 2) == 1)
}

// signal is one thing from outside that the phase may see, or nothing.
func (p *player) signal(pick choices) (Event, bool) {
	if p.m.Phase() == Idle {
		return Event{}, false
	}
	switch pick("signal", 60) {
	case 0:
		return Event{Kind: EvStop, Code: ReasonHookStop, Reason: "enough"}, true
	case 1:
		return Event{Kind: EvStop}, true
	case 2:
		return Event{Kind: EvWallTime, Reason: "out of time"}, true
	case 3:
		return Event{Kind: EvBudgetSpent, Code: ReasonCost}, true
	case 4:
		return Event{Kind: EvBudgetSpent}, true
	case 5:
		return Event{Kind: EvCancel, Reason: "now"}, true
	case 6:
		return Event{Kind: EvFenced}, true
	case 7, 8, 9, 10:
		// A driver expires only a drain that began.
		return Event{Kind: EvExpire}, p.m.StopRaised()
	}
	return Event{}, false
}

// walk plays one run: signals at random, answers mostly good ones. It ends in
// Done within a bound, whatever is answered.
func (p *player) walk(pick choices) {
	p.t.Helper()
	// Per round: prepare, admission, call, guard, secure, tools, close, verify,
	// review, and a finalize; beside them start, boundary with verifier and
	// review, mirror, two endings, a settling.
	most := 10*int(p.cfg.Rounds) + 12
	for n := 0; p.m.Phase() != Done; n++ {
		if n > most {
			p.t.Fatalf("still in phase %s after %d answers", p.m.Phase(), n)
		}
		for i := 0; i < 3; i++ {
			if ev, ok := p.signal(pick); ok && p.m.Phase() != Done {
				p.must(ev)
			}
		}
		if p.m.Phase() == Done {
			break
		}
		legal := p.legalAnswers()
		// Failures are rare enough that long runs happen; tool calls and denies are not.
		choice := pick("answer", 24)
		if choice >= len(legal) {
			choice = 0
			if k := legal[0].Kind; (k == EvAnswered || k == EvVerified || k == EvFinalizePassed) && pick("other", 2) == 1 {
				choice = 1
			}
		}
		p.must(legal[choice])
	}
	p.silence()
}

// silence checks that nothing happens any more after the end.
func (p *player) silence() {
	p.t.Helper()
	for _, kind := range eventKinds() {
		if _, err := p.step(Event{Kind: kind}); err == nil {
			p.t.Errorf("%s after the end was taken", kind)
		}
	}
}

// eventKinds are the events that the transitions know.
func eventKinds() []EventKind {
	var out []EventKind
	seen := map[EventKind]bool{}
	for _, t := range Transitions() {
		if !seen[t.On] {
			seen[t.On] = true
			out = append(out, t.On)
		}
	}
	return out
}

func TestWalksKeepEveryInvariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(t, name) }
		newPlayer(t, walkConfig(pick)).walk(pick)
	})
}
