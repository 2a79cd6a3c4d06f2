package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

const (
	attempts = 50 // of a ticket that may be disturbed as often as it likes
	// Every hopeless-th ticket asks for something that the program never gives. A
	// provider, which answers whatever it is asked, may.
	hopeless = 25
)

// agentScript is the program of a process child. It notes which session it runs for,
// leaves a grandchild behind, takes a while, and answers, or fails where it is told to.
const agentScript = `#!/bin/sh
echo "$LOOPHOST_ASSIGNMENT $$" >>"$1/$LOOPHOST_SESSION"
sleep 600 &
sleep "$(($$ % 3 + 1)).5"
if grep -q 'Fail it'; then
  echo 'told to fail' >&2
  exit 3
fi
echo "did $LOOPHOST_TICKET"
`

// id is the n-th ticket's.
func id(n int) string { return fmt.Sprintf("t%03d", n) }

// doomed tickets have no result of a program.
func doomed(n int) bool { return n%hopeless == hopeless-1 }

// batch is a tickets file: each ticket but the first ones depends on some before it,
// none on one that is doomed.
func batch(n int, random *rand.Rand) []byte {
	var b bytes.Buffer
	b.WriteString("tickets:\n")
	for i := range n {
		objective, most := "Do it.", attempts
		if doomed(i) {
			objective, most = "Fail it.", 2
		}
		fmt.Fprintf(&b, "  - id: %s\n    title: Ticket %d\n    objective: %s\n    acceptance: [it is done]\n    max-attempts: %d\n", id(i), i, objective, most)
		on := map[int]bool{}
		for range random.IntN(3) {
			if i > 8 {
				if before := i - 1 - random.IntN(min(i, 40)); !doomed(before) {
					on[before] = true
				}
			}
		}
		if len(on) > 0 {
			b.WriteString("    depends-on: [")
			sep := ""
			for j := range n {
				if on[j] {
					b.WriteString(sep + id(j))
					sep = ", "
				}
			}
			b.WriteString("]\n")
		}
	}
	return b.Bytes()
}
