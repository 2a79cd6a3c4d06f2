// Package loop is the pure state machine of the counted loop: repeat an
// objective at most K times, with at most R provider calls in all.
//
// Events go in, effects come out; there is no goroutine, clock, file or socket.
// The driver (package host) carries out the effects one at a time and reports
// what happened. Everything that decides how a loop ends is here and can be
// listed: Transitions.
//
//	start                    admission                 round
//	┌────┐ checkpoint ┌────┐ hooks  ┌─────────┐ commit ┌───────┐
//	│idle│ ─────────▶ │gate│ ─────▶ │preparing│ ─────▶ │calling│
//	└────┘            └─┬──┘        └─────────┘        └──┬─┬──┘
//	                    │  ▲                     answer   │ │ tool calls
//	    all K complete  │  └──────────────────────────────┘ ▼
//	    ▼               │         ▲      results         tools: durable
//	before-finalize     │ stop,   └───────────────────── before they run
//	hooks ──▶ boundary  │ budget
//	          checkpoint ◀┘
//	            │
//	            ▼
//	          final mirror ──▶ Complete event
//
// # Guarantees
//
// A provider is called only after its admission is durable (L-6). Counters grow
// with the attempt, not with its success (L-19). A Complete event comes once,
// after the final mirror is acknowledged, or never (L-15). Cancel wins over
// everything until then; it never wins over fencing or a failed checkpoint (L-17).
// Once the drain of a stop or of the wall time has expired, nothing more is started.
//
// docs/loop-diagram.md shows every row; Diagram writes it.
//
// # Failures
//
// A failed checkpoint makes memory failed and asks the driver to write that over
// whatever the store holds (L-19, L-20). Another owner's commit ends the run
// without a further write (L-21). A stored state that can't be read is an error
// that wraps ErrState; nothing runs on it.
package loop
