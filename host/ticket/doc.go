// Package ticket is the pure rules of tickets, of handing them to child sessions,
// and of the proof that a child stopped.
//
// A command goes in; events, a receipt and a new state come out. There is no
// goroutine, clock, file or socket. Whoever stores the events stores the scope.
//
//	             Decide                    Apply
//	Command ──────────────▶ Decision ──────────────▶ State'
//	(operation id,          events + receipt         (immutable; shares
//	 principal, request)    or an *Error             nearly all with State)
//
// # Three facts that are never taken for one another
//
//	stopped    the task was joined, or the process group reaped:  JudgeStop, Stop
//	submitted  the result was read from canonical storage:        JudgeResult, Submit
//	accepted   somebody with the authority said yes:              Accept
//
// A display status, a lease, a pid file or a UUID in metadata proves none of them.
// What storage holds of a child is judged here too, so that no caller weighs a proof
// by itself: Child in; the stop to publish, then the result to publish, or an *Error.
//
// # Guarantees
//
// The same operation again gives the receipt stored the first time, before any
// other check (T-1). A refusal changes nothing. A worker's permit ends with its
// epoch, its contract, its generation or its stop (T-5). A late result is kept as
// stale and changes nothing else (T-8). A new attempt starts only after the stop of
// the one before is proved (T-15). No input decodes into a principal (T-4).
//
// docs/ticket-diagram.md shows every move of a ticket, of an assignment and of an
// actor; Diagram writes it.
package ticket
