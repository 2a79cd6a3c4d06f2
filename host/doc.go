// Package host runs bounded agent sessions that nobody has to watch.
//
// A Host drives the pure state machine of package loop over a store: it runs
// provider calls, tools and hooks, commits every step under the session's fence,
// and publishes success only after the store acknowledged it as durable.
//
//	Config ──▶ Host ──Open──▶ Session ──Run──▶ Result
//	             │               │  one execution: one owner, one generation
//	             │               ├─ Stop, Cancel       from any goroutine
//	             │               ├─ Checkpoint         after a failure: store = memory
//	             │               └─ Close              releases the fence
//	             └─ Sessions, Stop, Cancel, TakeOver, Fork, Export, Import, Delete
//
// # Words
//
// A session is a durable conversation. An execution is one owner's run of it and
// has a UUID; its fence has a generation, and a loop started under it keeps that
// generation for life. A round is one admitted provider call and the tool batch it
// asks for.
//
// # Failures
//
// A checkpoint that fails ends the run with a *CheckpointError: no further
// provider call, no Complete event, memory failed, and the failure written over
// whatever the store holds (L-19, L-20). A session that another owner took over
// ends with an error that matches store.ErrFenced and is not written again (L-21).
// A loop whose owner died is never continued: *RecoveryError (L-3).
package host
