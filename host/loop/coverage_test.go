package loop

import (
	"slices"
	"testing"
)

// Every row of the machine is taken, from each of its phases, by the scenarios
// or by playing small loops in every way there is; the latter keeps every
// invariant in every situation. A row that nothing takes is dead or untested.
func TestEveryTransitionIsTaken(t *testing.T) {
	covered := map[row]int{}
	for _, path := range scenarioFiles(t) {
		playScenario(t, path, covered)
	}
	if n := exploreAll(t, covered); n < 10_000 {
		t.Errorf("only %d situations were reached", n)
	}

	for i := range transitions {
		tr := &transitions[i]
		for _, from := range tr.From {
			if covered[row{tr, from}] == 0 {
				t.Errorf("never taken: from %s on %s if %q to %q (%s)", from, tr.On, tr.If.Name, tr.To, tr.Rule)
			}
		}
	}
	for r := range covered {
		if !slices.Contains(r.transition.From, r.from) {
			t.Errorf("taken from %s, which the row of %s does not name", r.from, r.transition.On)
		}
	}
}

func TestTransitionsHandsOutACopy(t *testing.T) {
	rows := Transitions()
	want := transitions[0].From[0]
	rows[0].From[0] = Done
	rows[0].On = EvStop
	if got := Transitions()[0]; got.From[0] != want || got.On != EvStart {
		t.Errorf("a caller changed the machine: its first row is now from %s on %s", got.From[0], got.On)
		transitions[0].From[0] = want
	}
}
