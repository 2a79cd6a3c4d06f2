// Package conformance proves that a storage backend keeps the promises of the
// storage port (package host/store), and that the counted loop keeps its own
// promises on top of that backend.
//
// It is one table of cases, run in two ways:
//
//	                 ┌─ Run(t, harness)            subtests, from any repository's go test
//	Harness ─▶ Cases ┤
//	                 └─ Check(ctx, harness, opts)  a Report, without package testing
//
// A backend joins by writing a Harness: a few lines that open independent
// handles onto the same data. The suite knows the port and never a backend.
//
// # What a case is
//
// A Case has a stable id that begins with the rule it proves ("S-2/stale-generation"),
// one sentence, the abilities it needs, and a function that returns an error
// saying what was expected and what came. Each case works on a kind of record
// of its own, so cases don't see one another's data, and a store that already
// holds records can be checked: what a case made is deleted after it (the
// tombstones stay).
//
// The rules are those of the storage port (S-1 to S-13), of the loop (M-1 to M-6), and
// of a store's work queue, where it offers one: one holder, delivered
// again, fenced tokens, order, ids, waiting, durability, limits, contexts.
//
// # Tickets
//
// The profile tickets runs a supervisor's scope, its children and the proofs that they
// stopped (T-1 to T-15) on the store: packages host/ticket, scope and child as they
// are. Each row of the stop-receipt matrix (M-4) is a case. A proof is corrupted in the
// child's own record, by an owner of it; after each refusal the scope's bytes,
// process_stopped and the submissions are what they were, read through another handle.
//
// # What a result means
//
// A case passes, fails, or is skipped with a reason. A skipped case of the
// core profile makes the result partial, and so does a profile of which nothing was
// executed; a run in which nothing at all was executed is a failure. The report holds the environment and the seed, and the same seed
// gives the same operations in the same order; only names and times differ.
//
// # Faults
//
// Faulty wraps any store. It records calls and fails the ones that a predicate
// chooses, before or after they reached the store, with a definite error or
// with an unknown outcome. So every backend gets the fault cases for free.
//
// # Killed processes
//
// A harness that can start a process which calls ServeOwner (Spawner) gets the
// cases about real processes too: owners that are stopped and continued (M-6), and
// the kill matrix (M-5). There a process tells of each store call and each answer
// before it goes on, and is killed before, after or during its first call, its
// second, and so on, until a run comes to its end. What is left is compared with
// what the process saw acknowledged, byte for byte, and then the next owners start.
// A ticket's life is killed so too, at every write of it (M-4): with a local task, and
// with a process child, of which nothing may survive the proof of its stop.
//
// # Failover
//
// The profile cluster is for a backend whose data is served by one node at a time. Its
// harness ends that node, so that another takes over (Failover): what enough replicas
// acknowledged is whole after it, with fences, commit ids, leases, signals and
// tombstones. Where the harness can let the heir miss something first (LossyFailover),
// the loss must be noticed, and nothing may be built on it (S-6, S-2, L-19).
package conformance
