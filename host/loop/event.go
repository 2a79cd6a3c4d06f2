package loop

// EventKind is what can happen to a running loop.
type EventKind string

// The events. The driver sends them one at a time, in the order they happened.
const (
	EvStart EventKind = "start" // begin; once

	// The answers of effects.
	EvPrepared         EventKind = "prepared"          // the before-hooks let the admission pass
	EvAnswered         EventKind = "answered"          // the provider answered; ToolCalls says whether with tool calls
	EvProviderFailed   EventKind = "provider_failed"   // after its retries
	EvToolsGuarded     EventKind = "tools_guarded"     // the before-tool hooks decided on every call
	EvToolsDone        EventKind = "tools_done"        // every call has its result
	EvVerified         EventKind = "verified"          // the verifier ran; Passed says how
	EvVerifierFailed   EventKind = "verifier_failed"   // it could not run
	EvReviewed         EventKind = "reviewed"          // the after-round hooks ran
	EvFinalizePassed   EventKind = "finalize_passed"   // the before-finalize hooks passed
	EvFinalizeDenied   EventKind = "finalize_denied"   // one of them denied
	EvHookAborted      EventKind = "hook_aborted"      // a hook aborted, or its fault did
	EvHookDenied       EventKind = "hook_denied"       // a hook denied the prompt or the provider call
	EvHostFailed       EventKind = "host_failed"       // the host could not carry out an effect
	EvInterrupted      EventKind = "interrupted"       // the effect was cut off by EffectInterrupt or EffectHurry
	EvCheckpointDone   EventKind = "checkpoint_done"   // durable
	EvCheckpointFailed EventKind = "checkpoint_failed" // a checkpoint failure in the sense of L-19
	EvSettled          EventKind = "settled"           // the failed state was written over the checkpoint that failed
	EvSettleFailed     EventKind = "settle_failed"     // that write failed too: the durable state is unknown

	// What comes from outside, at any time.
	EvStop        EventKind = "stop"         // admit nothing more
	EvBudgetSpent EventKind = "budget_spent" // a budget other than the rounds is spent: the next admission is refused
	EvWallTime    EventKind = "wall_time"    // like stop, and the ending is budget_exhausted
	EvExpire      EventKind = "expire"       // what a stop or wall_time lets drain took too long: interrupt it, start nothing more
	EvCancel      EventKind = "cancel"       // end now
	EvFenced      EventKind = "fenced"       // another owner holds the session (L-21)

	// EvAuto drives the phases that wait for nothing; only the machine itself sends it.
	EvAuto EventKind = "auto"
)

// Event is one thing that happened.
type Event struct {
	Kind      EventKind
	ToolCalls bool       // EvAnswered
	Passed    bool       // EvVerified
	Code      ReasonCode // EvStop, EvWallTime, EvCancel, EvBudgetSpent; "" takes operator_stop, wall_time, operator_cancel, tokens
	Reason    string     // for a person
}
