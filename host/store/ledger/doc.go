// Package ledger has the rules of one record, and a whole store over any storage
// engine with transactions.
//
//	store.Store ◀── Store: reads, asks the rules, puts ──▶ Engine (yours: transactions)
//	                          │
//	                          ▼
//	             State, Settled: the rules as pure values
//
// State says which commit applies, what a commit id that comes twice gets, who may
// become the owner, which signal is kept; it reads no clock and does no I/O. An
// Engine brings what a storage engine has: bytes that change in one atomic, durable
// step. Over makes the port of them. A backend that can't run a function inside its
// transaction (a server with scripts, a journal on a disk) implements the port itself.
//
// Errors are *store.Error, in the port's order of precedence.
package ledger
