//go:build unix

package main

import (
	"slices"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
)

// TestASecondRunUnpacksNothing keeps cold starts fast: what the cache has of a
// bundled plugin is found by its digest, and its manifest lies beside it.
func TestASecondRunUnpacksNothing(t *testing.T) {
	c := newCommander(t)
	run := func(session string) []string {
		c.unpacked = nil
		c.want(t, exit.OK, "run", "--provider", "demo", "--hook", "redact", "--session", session, "--quiet", "--config", "", "Try it")
		slices.Sort(c.unpacked)
		return c.unpacked
	}
	if got, want := run("first"), []string{"redact", "scripted"}; !slices.Equal(got, want) {
		t.Errorf("with an empty cache: %q was unpacked, want %q", got, want)
	}
	if got := run("second"); len(got) > 0 {
		t.Errorf("with a warm cache: %q was unpacked, want nothing", got)
	}
}
