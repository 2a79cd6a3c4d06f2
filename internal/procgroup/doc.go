// Package procgroup runs a command as a process group whose end can be proved, also
// by somebody who did not start it (tickets.md, T-14).
//
//	Start ──▶ held ──Release──▶ running ──▶ leader ended ──Reap──▶ whole group gone
//	            │                                             ▲
//	            └── the starter dies: it never runs           │
//	                                                          │
//	End(Identity), by anybody on the same boot ───────────────┘
//
// A held command does nothing yet, so that its identity can be made durable first: one
// that nobody knows of can't be running. Reap keeps the leader unreaped until nothing
// of its group is left, so that the group's number stays its own.
//
// # What belongs to a group
//
// Every process that is in the group of the leader, and every process that inherited
// the leader's mark, an environment variable, wherever it went: a daemon that made a
// session of its own is found too. One that leaves the group and clears its
// environment is not; who runs such commands needs a container around the worker.
//
// It works on Linux, where /proc tells of other processes; elsewhere Start answers
// ErrUnsupported.
package procgroup
