// Package scope keeps a ticket scope in a store, over the same port as sessions.
//
// The rules are package ticket's; here a decision becomes durable.
//
//	Do ─▶ decide on the newest known state ─▶ one commit, if the scope is still there
//	 ▲                                          │            │
//	 └── reread what others wrote ◀── conflict ─┘            ▼ acknowledged
//	     (at most four times)                       publish: State, Wait
//
// # What lies where
//
//	scope/<id>               shared (S-2). head: binding, seq, authority, tip, snapshot
//	                         log: entry 1 ◀─ 2 ◀─ 3 … each names the hash of the one before
//	scope-snapshot/<name>    the state at one seq, in parts; written once
//	coordinator/<id>         only a head that says whose; its owner has the coordinator's lease
//	artifact/<sha256>        what a child made; written once
//
// A command is one entry, so the log is as long as the scope is at seq. It costs one
// commit, however large the scope is. Opening reads the newest snapshot and the
// entries behind it; when those are more than the snapshot, a new one is written
// beside the commands, and the one before removed.
//
// # Guarantees
//
// The same operation again gives the stored receipt, and writes nothing (T-1). Many
// handles, processes and machines may write one scope: there is one order, and a
// loser decides anew (T-2). Opening, reading and a refusal change nothing. A failed
// commit leaves the published state as it was; one of unknown outcome is resolved, or
// the handle is read-only until Reopen (T-3). The coordinator's lease only permits an
// attempt; who coordinates is decided by the order of the scope's log, so one that
// was late is refused.
//
// # Failures
//
// Refusals are *ticket.Error, the store's failures *store.Error, and context errors
// keep their identity. store.ErrRegressed says that the store lost what it
// acknowledged to this handle; it writes no more. A snapshot that is lost or damaged
// costs time: the log is whole without it, and Check tells of it.
package scope
