// Package dispatch hands the assignments of a ticket scope to workers, on one machine
// or on many, and does them.
//
//	            start, enqueue                lease                    Prepare … Finish
//	Coordinator ──────────────▶ store's queue ─────▶ Worker ─────────▶ package child
//	     ▲  one of a scope                            any number           │
//	     │  accept, give up, fail                     recover what dead    │
//	     │                                            workers left here    ▼
//	     └───────────────────────── the scope: every fact is one commit ───┘
//
// The queue only hints at what is to be done: it delivers at least once, and what it
// loses is enqueued again. Who runs an assignment is decided by the fence of its child
// session and by one command of the scope; who coordinates, by the scope's authority.
//
// # What happens when something dies
//
//	a worker          its child's lease runs out; the coordinator gives the attempt up
//	                  (outcome_unknown); a worker on the same machine proves the stop
//	                  and publishes what is there; then the ticket is retried as its
//	                  contract says (T-15)
//	the coordinator   its lease runs out; another worker takes the role, the epoch
//	                  rises, and nothing else changes (T-2)
//	a machine         its attempts stay outcome_unknown until a person confirms that
//	                  they stopped: nobody else can see it
//	the queue         what waits in it is enqueued again from the scope
//
// A worker that was paused and wakes finds its child's fence gone or its permit taken:
// its run is cancelled, and what it still proves is kept, a late result as stale (T-8).
package dispatch
