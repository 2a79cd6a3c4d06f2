package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// Birth is the instant a record was created, in nanoseconds since the Unix
// epoch, UTC. It never changes; a re-created record's birth is at least 1 ns
// later than the tombstone of the one before it (S-12). The zero value means
// "no record".
type Birth int64

// BirthLayout is the JSON form of a birth: RFC 3339, UTC, nine fraction digits.
const BirthLayout = "2006-01-02T15:04:05.000000000Z"

// BirthAt is the birth of a record created at t, or 1 ns after tombstone if
// the clock has not passed it.
func BirthAt(t time.Time, tombstone Birth) Birth {
	b := Birth(t.UnixNano())
	if b <= tombstone {
		b = tombstone + 1
	}
	return b
}

// Time is b as a time in UTC.
func (b Birth) Time() time.Time { return time.Unix(0, int64(b)).UTC() }

// String is the JSON form without quotes, or "" for the zero value.
func (b Birth) String() string {
	if b == 0 {
		return ""
	}
	// Two are made for each commit. RFC3339 is a layout that package time is quick
	// with; it ends with Z, whose place the fraction takes.
	var room [len(BirthLayout)]byte
	t := b.Time()
	text := t.AppendFormat(room[:0], time.RFC3339)
	text = append(text[:len(text)-1], ".000000000Z"...)
	for i, left := len(text)-2, t.Nanosecond(); left > 0; i, left = i-1, left/10 {
		text[i] += byte(left % 10)
	}
	return string(text)
}

// MarshalJSON writes the layout of BirthLayout, or "" for the zero value.
func (b Birth) MarshalJSON() ([]byte, error) { return json.Marshal(b.String()) }

// UnmarshalJSON accepts exactly what MarshalJSON writes.
func (b *Birth) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("birth: %w", err)
	}
	if s == "" {
		*b = 0
		return nil
	}
	t, err := time.Parse(BirthLayout, s)
	if err != nil {
		return fmt.Errorf("birth: %w", err)
	}
	*b = Birth(t.UnixNano())
	return nil
}
