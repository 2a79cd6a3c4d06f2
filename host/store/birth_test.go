package store

import (
	"math"
	"testing"
	"time"
)

func TestABirthIsWrittenInItsLayout(t *testing.T) {
	for _, b := range []Birth{
		1, 9, -1, math.MinInt64, math.MaxInt64, 1_000_000_000, 1_764_590_000_120_000_000, 1_764_590_000_123_456_789,
		BirthAt(time.Date(2000, 2, 29, 23, 59, 59, 999_999_999, time.UTC), 0),
	} {
		if got, want := b.String(), b.Time().Format(BirthLayout); got != want {
			t.Errorf("birth %d: got %s, want %s", int64(b), got, want)
		}
	}
}
