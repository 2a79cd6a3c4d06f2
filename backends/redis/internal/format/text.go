package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/loophost/loophost/host/store"
)

// NoFence is the text of a fence that no record can have.
const NoFence = "none"

// Fence is the text by which the server compares fences; "" for no fence. The record
// holds the same text, so equality of bytes is equality of fences (S-2).
func Fence(f store.Fence) string {
	if f.IsZero() {
		return ""
	}
	// JSON replaces what is no UTF-8, so two such fences could look the same.
	if !utf8.ValidString(f.Owner) || !utf8.ValidString(f.Generation) || !utf8.ValidString(f.Run) {
		return NoFence
	}
	b, err := json.Marshal(f)
	if err != nil {
		return NoFence
	}
	return string(b)
}

// ParseFence reads what Fence wrote.
func ParseFence(s string) (f store.Fence, err error) {
	if s == "" {
		return f, nil
	}
	if err := json.Unmarshal([]byte(s), &f); err != nil {
		return store.Fence{}, fmt.Errorf("fence: %w", err)
	}
	if Fence(f) != s {
		return store.Fence{}, errors.New("fence: not as it was written")
	}
	return f, nil
}

// Signal is the text of a signal in the mailbox.
func Signal(s store.Signal) (string, error) {
	s.Time = s.Time.UTC().Round(0)
	b, err := json.Marshal(s)
	return string(b), err
}

// ParseSignal reads what Signal wrote; the kind is that of the field it came from.
func ParseSignal(kind store.SignalKind, text string) (s store.Signal, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return store.Signal{}, fmt.Errorf("signal: %w", err)
	}
	if s.Kind != kind {
		return store.Signal{}, fmt.Errorf("signal: a %q in the place of a %q", s.Kind, kind)
	}
	return s, nil
}

// Birth is the decimal text of a birth.
func Birth(b store.Birth) string { return strconv.FormatInt(int64(b), 10) }

// ParseBirth reads what Birth wrote for a positive birth.
func ParseBirth(s string) (store.Birth, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("birth: %q is not a positive number of nanoseconds", s)
	}
	return store.Birth(n), nil
}

// Number is the decimal text of a revision, a sequence number or a length. The server
// compares these texts, never numbers: a number of its scripts holds 53 bits.
func Number(n uint64) string { return strconv.FormatUint(n, 10) }

// ParseNumber reads what Number wrote.
func ParseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || Number(n) != s {
		return 0, fmt.Errorf("number: %q is not a number", s)
	}
	return n, nil
}
