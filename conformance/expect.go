package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/loophost/loophost/host/store"
)

// failf is a failed expectation.
func failf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// wantKind checks that err is a *store.Error of one of the kinds, and of no
// kind that precedes them.
func wantKind(what string, err error, kinds ...error) error {
	var words []string
	for _, k := range kinds {
		words = append(words, k.Error())
	}
	want := strings.Join(words, " or ")
	if err == nil {
		return failf("%s: want %s, got success", what, want)
	}
	var se *store.Error
	if !errors.As(err, &se) {
		return failf("%s: want a *store.Error that is %s, got %T: %v", what, want, err, err)
	}
	got := store.KindOf(err)
	for _, k := range kinds {
		if errors.Is(got, k) {
			return nil
		}
	}
	return failf("%s: want %s, got %v", what, want, err)
}

// asError is err's *store.Error, or an empty one.
func asError(err error) *store.Error {
	var se *store.Error
	if errors.As(err, &se) {
		return se
	}
	return &store.Error{}
}

// wantOK checks that an operation succeeded.
func wantOK(what string, err error) error {
	if err != nil {
		return failf("%s: want success, got %v", what, err)
	}
	return nil
}

// wantEqual compares two comparable values.
func wantEqual[T comparable](what string, got, want T) error {
	if got != want {
		return failf("%s: want %v, got %v", what, want, got)
	}
	return nil
}

// wantBytes compares bytes; the message stays short.
func wantBytes(what string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	return failf("%s: want %s, got %s", what, brief(want), brief(got))
}

func brief(b []byte) string {
	const most = 80
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return fmt.Sprintf("%q", b)
}

// wantAck compares two acks of one commit. Signals are left out: they are
// what is pending now, not part of what the commit was.
func wantAck(what string, got, want store.Ack) error {
	return errors.Join(
		wantEqual(what+": mark", got.Mark, want.Mark),
		wantEqual(what+": log length", got.LogLength, want.LogLength),
		wantEqual(what+": durability", got.Durability, want.Durability),
	)
}
