// Package bench measures a thing beside its floor: the least work that could do
// the same. The two run turn by turn in one process, so that a busy machine slows
// both, and what is reported is their ratio.
//
//	turn 1: ours ─▶ floor   turn 2: floor ─▶ ours   turn 3: ours ─▶ floor   …
//	x-floor = median over the turns of (time of ours ÷ time of floor)
package bench

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// Side is one of the two things that are compared: it does steps steps. An error
// ends the benchmark.
type Side func(steps int) error

// Against measures ours beside floor. One iteration of the benchmark is one turn
// of steps steps on each side, so -benchtime 15x means fifteen turns. It reports
// x-floor (below 1 is faster than the floor), µs/step and floor-µs/step (medians),
// and procs (GOMAXPROCS).
func Against(b *testing.B, steps int, ours, floor Side) {
	b.Helper()
	Turns(b, steps, nil, ours, floor)
}

// Turns is Against with a function that prepares each turn, in time that is not
// counted. nil: nothing is to be prepared.
func Turns(b *testing.B, steps int, prepare func() error, ours, floor Side) {
	b.Helper()
	ready := func() {
		b.Helper()
		if prepare == nil {
			return
		}
		if err := prepare(); err != nil {
			b.Fatal(err)
		}
	}
	ready()
	timed(b, max(1, steps/10), ours) // what happens once is not the question
	timed(b, max(1, steps/10), floor)
	var mine, theirs, ratios []float64
	for turn := 0; b.Loop(); turn++ {
		ready()
		var o, f time.Duration
		if turn%2 == 0 {
			o = timed(b, steps, ours)
			f = timed(b, steps, floor)
		} else {
			f = timed(b, steps, floor)
			o = timed(b, steps, ours)
		}
		mine, theirs = append(mine, perStep(o, steps)), append(theirs, perStep(f, steps))
		ratios = append(ratios, float64(o)/float64(f))
	}
	b.ReportMetric(0, "ns/op") // of a turn of both: it says nothing
	b.ReportMetric(Median(ratios), "x-floor")
	b.ReportMetric(Median(mine), "µs/step")
	b.ReportMetric(Median(theirs), "floor-µs/step")
	b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "procs")
}

func perStep(d time.Duration, steps int) float64 {
	return float64(d) / float64(time.Microsecond) / float64(steps)
}

func timed(b *testing.B, steps int, s Side) time.Duration {
	b.Helper()
	start := time.Now()
	if err := s(steps); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// Workers is a Side that n workers do at once. Each has its own Side and does
// its share of the steps, at least one.
func Workers(each []Side) Side {
	return func(steps int) error {
		var group sync.WaitGroup
		errs := make([]error, len(each))
		for i, side := range each {
			group.Go(func() { errs[i] = side(max(1, steps/len(each))) })
		}
		group.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// Median is the middle of the values, 0 of none. It sorts them.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
