// Package store is the storage port: what the host core asks of a backend.
//
// A record is a small head document plus an append-only log, both opaque
// bytes. It changes only by conditional commits:
//
//	        Create                 Acquire                Commit (head', entries…)
//	absent ────────▶ unowned ─────────────────▶ owned ──────────────────▶ owned, revision + 1
//	                   ▲                          │
//	                   └────────── Release ───────┘          Delete: a tombstone stays (S-12)
//
// The port knows nothing of loops, tickets or receipts. A backend knows
// records, fences and durability; the conformance suite proves that it does.
//
// # Who may write
//
// A fence is the quadruple (birth, generation, owner, run). Acquire mints a new
// generation and puts its fence on the record; a commit applies only while its
// fence equals the record's and the revision it builds on equals the record's
// (S-2). An owner that was paused while somebody else acquired finds another
// fence there and is refused, however late it wakes. Leases and clocks only
// decide when an Acquire may be tried (S-8); they never decide who may write.
//
// # What an error means
//
// Every method returns nil, a context error, or an *Error whose Kind is one of
// the sentinels of errors.go. ErrUnknownOutcome says that a commit may or may
// not have been applied; Resolve settles it. Any other error of Commit says
// that the caller must not count on the commit, and still not that it was not
// written: the host reads back (L-20).
package store
