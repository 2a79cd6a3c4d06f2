package loop

import "testing"

// situation is what decides about the future of a run: two runs in the same
// situation go on in the same ways. Revisions and texts are left out.
type situation struct {
	cfg                                     Config
	phase                                   Phase
	status                                  Status
	runtime                                 RuntimeStatus
	started, completed, rounds, denies      uint32
	cancel, halt, spent, expired            bool
	haltStatus                              Status
	complete, cutOff, pendingDeny, verified bool
	fenced, failing, durable                bool
	pending                                 EffectKind
	checkpoint                              Checkpoint
	cutShort                                bool
}

func (p *player) situation() situation {
	m := p.m
	s := situation{
		cfg: p.cfg, phase: m.phase, status: m.state.Status, runtime: m.runtime.Status,
		started: m.state.IterationsStarted, completed: m.state.IterationsCompleted, rounds: m.state.RoundsStarted, denies: m.denies,
		cancel: m.cancel != nil, halt: m.halt != nil, spent: m.spent != nil, expired: m.expired, haltStatus: m.haltStatus,
		complete: m.complete, cutOff: m.cutOff, pendingDeny: m.pendingDeny, verified: m.verified,
		fenced: m.fenced, failing: m.failing, durable: m.durable, cutShort: p.cutShort,
	}
	if p.pending != nil {
		s.pending, s.checkpoint = p.pending.Kind, p.pending.Checkpoint
	}
	return s
}

// fork is a player that goes on from here on its own.
func (p *player) fork() *player {
	q, m := *p, *p.m
	q.m, q.rows = &m, nil
	q.listen()
	return &q
}

// possible are all events that may come next.
func (p *player) possible() []Event {
	evs := p.legalAnswers()
	if p.m.Phase() == Idle {
		return evs
	}
	evs = append(evs, Event{Kind: EvStop}, Event{Kind: EvWallTime}, Event{Kind: EvBudgetSpent}, Event{Kind: EvCancel}, Event{Kind: EvFenced})
	if p.m.StopRaised() {
		evs = append(evs, Event{Kind: EvExpire})
	}
	return evs
}

// explore plays every run of a small loop there is: from every situation that
// can be reached, every event that may come. It says how many situations there are.
func explore(t *testing.T, cfg Config, covered map[row]int) int {
	t.Helper()
	first := newPlayer(t, cfg)
	first.covered = covered
	seen := map[situation]bool{first.situation(): true}
	for todo := []*player{first}; len(todo) > 0; {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, ev := range p.refusals() {
			if _, err := p.step(ev); err == nil {
				t.Fatalf("%s was taken in %+v", ev.Kind, p.situation())
			}
		}
		for _, ev := range p.possible() {
			q := p.fork()
			q.must(ev)
			if t.Failed() {
				t.Fatalf("broken by %s in %+v", ev.Kind, p.situation())
			}
			if s := q.situation(); !seen[s] && q.m.Phase() != Done {
				seen[s] = true
				todo = append(todo, q)
			}
		}
	}
	return len(seen)
}

// refusals are the events that nobody may send now: the answers of other effects.
func (p *player) refusals() []Event {
	possible := map[EventKind]bool{}
	for _, ev := range p.possible() {
		possible[ev.Kind] = true
	}
	var out []Event
	for _, kind := range eventKinds() {
		// After a stop the machine does not keep account of whether it asked for the interruption.
		if kind == EvInterrupted && p.m.StopRaised() {
			continue
		}
		if !possible[kind] && !isSignal(kind) {
			out = append(out, Event{Kind: kind})
		}
	}
	return out
}

// exploreAll plays all small loops: with every subscription, one and two
// iterations, rounds that just fit and one more.
func exploreAll(t *testing.T, covered map[row]int) int {
	t.Helper()
	n := 0
	for _, subscribed := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		for _, bounds := range [][2]int64{{1, 2}, {2, 2}} {
			n += explore(t, testConfig(bounds[0], bounds[1], subscribed[0], subscribed[1]), covered)
		}
	}
	return n
}
