// Package sqlite is a storage backend in one SQLite file: the complete example of
// the guide for backend implementers, and a working store.
//
//	record   one row per record: its state (JSON), its head, a checksum of both
//	entry    one row per log entry, with its checksum
//	settled  one row per revision: its chain, and what became of the commit
//	grave    the births that must not come back
//
// It is an engine of host/store/ledger, which has the rules. Every change is one
// transaction that begins with the write lock (BEGIN IMMEDIATE) and ends with one
// flush of the write-ahead log (synchronous=FULL), so that check and write are one
// step (S-1, S-2) and an acknowledged commit survives a loss of power (S-5). Several
// processes may open the same file.
package sqlite
