package loader

import (
	"runtime/debug"
	"testing"
)

// percent is the collector's setting.
func percent() int {
	p := debug.SetGCPercent(usual)
	debug.SetGCPercent(p)
	return p
}

func TestTheCollectorWaitsUntilItIsToResume(t *testing.T) {
	before := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(before)
	resume := collectLess()
	if got := percent(); got != patient {
		t.Errorf("meanwhile: got %d, want %d", got, patient)
	}
	again := collectLess()
	again()
	if got := percent(); got != patient {
		t.Errorf("after a second one within the first: got %d, want %d", got, patient)
	}
	resume()
	if got := percent(); got != usual {
		t.Errorf("afterwards: got %d, want %d", got, usual)
	}
	debug.SetGCPercent(70)
	resume()
	if got := percent(); got != 70 {
		t.Errorf("after it was ended twice: got %d, want 70", got)
	}
}

func TestWhatAnOperatorSetStands(t *testing.T) {
	before := debug.SetGCPercent(50)
	defer debug.SetGCPercent(before)
	resume := collectLess()
	if got := percent(); got != 50 {
		t.Errorf("meanwhile: got %d, want 50", got)
	}
	resume()
	if got := percent(); got != 50 {
		t.Errorf("afterwards: got %d, want 50", got)
	}
}
