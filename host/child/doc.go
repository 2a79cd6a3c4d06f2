// Package child runs the child sessions that do assignments of tickets, and proves
// that they stopped.
//
// A Task is one claimed assignment. Its steps are those of the life cycle of
// tickets.md, in its write order; each is durable before the next begins:
//
//	Prepare   ensure the child session, claim its actor, admit the run
//	Track     watch the coordinator: without it the run is cancelled (T-11)
//	Execute   run the agent once, join it, write the stop receipt, publish the stop
//	Save      the child's final status
//	Checkpoint  take the result from canonical storage only, and submit it
//	Finish    end the actor, give the session back
//
// Run does all of them. A child is either an in-process task, whose agent is a counted
// loop of package host, or a process child, whose agent is a command of the operator's
// that answers on its standard output (Linux only). Both leave an ordinary session.
//
// # What proves a stop
//
// An in-process task was joined: its receipt names the task's instance, a UUID that was
// made for this one execution. A process child was reaped with its whole group: its
// receipt names the process. A worker that died proves nothing by being silent; Recover
// proves a stop in its place only on the machine and in the boot where the worker, or
// the process group, can be seen to be gone. Otherwise the assignment waits for a
// person (T-15).
//
// # Fencing
//
// A run is the execution that holds the child session's fence: the run's id is the
// execution's. A worker that was paused while another one recovered its child finds
// the fence gone and can write nothing there; what it still reports about the run is
// judged against canonical storage.
package child
