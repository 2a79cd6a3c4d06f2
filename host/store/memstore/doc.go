// Package memstore is a store in memory: for tests, for evaluation, and as the
// plain statement of what the storage port promises.
//
//	New() ──▶ Memory (the data) ──Open()──▶ handle ─┐
//	                            ──Open()──▶ handle ─┴─▶ one mutex, one map
//
// A Memory is the data; every Open gives an independent handle onto it, like a
// second process would have, so two owners can meet on one record. The rules are
// those of host/store/ledger; a transaction is one mutex, held: each method is one
// atomic step.
//
// Guarantees: all of the port's, at durability level memory. Leases run by the
// injected clock; an expired lease only permits an Acquire (S-8). Failures:
// everything is gone when the process ends, and when the last handle and the
// Memory are garbage. The whole log of a record stays in memory; of the heads
// only the newest does.
package memstore
