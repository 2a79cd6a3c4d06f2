package loop

// EffectKind is what the machine asks its driver to do.
type EffectKind string

// The effects. At most one of those that answer is under way at a time; the
// answers are named behind each. All but checkpoint and settle may also answer
// host_failed and, once cut off, interrupted; all may answer fenced.
const (
	EffectCheckpoint   EffectKind = "checkpoint"    // commit state and pending entries → checkpoint_done, checkpoint_failed, fenced
	EffectPrepare      EffectKind = "prepare"       // run the before-hooks of an admission → prepared, hook_aborted, hook_denied
	EffectCallProvider EffectKind = "call_provider" // one round's call with its retries, and the after-provider hooks → answered, provider_failed, hook_aborted
	EffectGuardTools   EffectKind = "guard_tools"   // run the before-tool hooks → tools_guarded, hook_aborted
	EffectRunTools     EffectKind = "run_tools"     // run the batch and the after-tool hooks → tools_done, hook_aborted
	EffectVerify       EffectKind = "verify"        // run the verifier → verified, verifier_failed
	EffectReview       EffectKind = "review"        // run the after-round hooks → reviewed, hook_aborted
	EffectFinalize     EffectKind = "finalize"      // run the before-finalize hooks → finalize_passed, finalize_denied, hook_aborted
	EffectSettle       EffectKind = "settle"        // write memory's state over a failed checkpoint (L-20) → settled, settle_failed, fenced

	// Effects without an answer.
	EffectInject    EffectKind = "inject"    // append Text as a user message to what the next checkpoint carries
	EffectInterrupt EffectKind = "interrupt" // cut off the effect that is under way; it answers, at the latest with interrupted
	EffectHurry     EffectKind = "hurry"     // end the waits between this call's attempts, the present and the later ones (S-13); such a wait answers interrupted
	EffectPublish   EffectKind = "publish"   // emit Publish, in this order with the rest
	EffectEnd       EffectKind = "end"       // the run is over
)

// Checkpoint says what a checkpoint records.
type Checkpoint string

// The checkpoints of a run, as the matrices name them.
const (
	CheckpointStart     Checkpoint = "start"
	CheckpointAdmission Checkpoint = "admission"
	CheckpointTools     Checkpoint = "before_tools"
	CheckpointRoundEnd  Checkpoint = "round_end"
	CheckpointBoundary  Checkpoint = "boundary"
	CheckpointMirror    Checkpoint = "final_mirror"
	CheckpointEnding    Checkpoint = "ending" // failed or cancelled
)

// Publication is an event that the machine decides about; the others are
// projected from log entries or belong to an effect.
type Publication string

// The publications.
const (
	PublishComplete      Publication = "complete"
	PublishCancelled     Publication = "cancelled"
	PublishFailed        Publication = "failed"
	PublishFenced        Publication = "fenced"         // live only
	PublishStopRequested Publication = "stop_requested" // live only
)

// Effect is one thing to do.
type Effect struct {
	Kind         EffectKind
	Checkpoint   Checkpoint  // EffectCheckpoint
	NewIteration bool        // EffectPrepare, and EffectCheckpoint of an admission: the objective is injected
	Text         string      // EffectInject; EffectPublish of stop_requested: the reason
	Publish      Publication // EffectPublish
}
