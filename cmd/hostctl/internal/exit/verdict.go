package exit

import (
	"context"
	"errors"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

// Verdict is how a command ended.
type Verdict struct {
	Code    Code
	Outcome Outcome
	// Error is nil where the ending is no error: everything that a run can end
	// with by its own rules but failed and cancelled.
	Error *Problem
}

// Problem is an error for scripts and for people.
type Problem struct {
	// Kind is one word: a reason code of the loop, a kind of store error, "usage",
	// "plugin", "not_approved", "busy", "fenced", "recovery_unsupported", "child_session",
	// "not_running", "interrupted", a kind of package ticket's refusals or "error".
	Kind    string `json:"kind"`
	Message string `json:"message"` // what happened and what to do next
	Next    string `json:"-"`       // what to do next alone; part of Message in JSON
}

// storeKinds are the words of the store's errors and what they mean for the ending.
var storeKinds = []struct {
	err     error
	kind    string
	outcome Outcome
}{
	{store.ErrInvalidID, "invalid_id", OutcomeUsageError},
	{store.ErrTooLarge, "too_large", OutcomeError},
	{store.ErrNotFound, "not_found", OutcomeError},
	{store.ErrCommitIDReused, "commit_id_reused", OutcomeStoreError},
	{store.ErrConflict, "conflict", OutcomeStoreError},
	{store.ErrBusy, "busy", OutcomeBusy},
	{store.ErrExists, "exists", OutcomeError},
	{store.ErrCorrupt, "corrupt", OutcomeStoreError},
	{store.ErrRegressed, "regressed", OutcomeStoreError},
	{store.ErrNotDurable, "not_durable", OutcomeStoreError},
	{store.ErrUnknownOutcome, "unknown_outcome", OutcomeStoreError},
	{store.ErrUnavailable, "unavailable", OutcomeStoreError},
	{store.ErrUnsupported, "unsupported", OutcomeStoreError},
}

// Of maps what a run, or any other verb, ended with. It looks at values only,
// never at texts. Fencing comes first: nothing that failed besides it matters
// any more (L-17, L-21).
func Of(res host.Result, err error, hints Hints) Verdict {
	if err == nil {
		return ofResult(res, hints)
	}
	kind, outcome := classify(err)
	v := Verdict{Code: CodeOf(outcome), Outcome: outcome, Error: problem(kind, res.SessionID, err, hints)}
	if kind == "interrupted" {
		v.Code = Interrupted
	}
	return v
}

func ofResult(res host.Result, hints Hints) Verdict {
	var o Outcome
	switch res.Outcome() {
	case loop.ResultCompleted:
		o = OutcomeCompleted
	case loop.ResultGoalMet:
		o = OutcomeGoalMet
	case loop.ResultGoalUnmet:
		o = OutcomeGoalUnmet
	case loop.ResultStopped:
		o = OutcomeStopped
	case loop.ResultBudgetExhausted:
		o = OutcomeBudgetExhausted
	case loop.ResultCancelled:
		o = OutcomeCancelled
	case loop.ResultFailed:
		o = OutcomeFailed
	case loop.ResultRecoveryUnsupported:
		o = OutcomeRecoveryUnsupported
	default: // a run that reports no ending at all: nothing is known to be durable
		return Verdict{Code: StoreError, Outcome: OutcomeStoreError, Error: &Problem{Kind: "unknown_outcome", Message: "the run reported no ending; look at the session before anything else"}}
	}
	v := Verdict{Code: CodeOf(o), Outcome: o}
	switch o {
	case OutcomeCancelled, OutcomeFailed, OutcomeRecoveryUnsupported:
		v.Error = ended(res, o, hints)
	}
	return v
}

func classify(err error) (kind string, outcome Outcome) {
	var (
		usage      *UsageError
		bounds     *loop.BoundsError
		notOK      *NotApprovedError
		plug       *PluginError
		check      *CheckError
		recovery   *host.RecoveryError
		checkpoint *host.CheckpointError
		failed     *host.FailedError
		mismatch   *host.MismatchError
	)
	switch {
	case host.IsFenced(err):
		return "fenced", OutcomeFenced
	case errors.As(err, &usage):
		return "usage", OutcomeUsageError
	case errors.Is(err, host.ErrExport): // before the state: what an export holds is not stored
		return "bad_export", OutcomeError
	case errors.Is(err, loop.ErrState): // before bounds: a stored state may break them
		return "unusable_state", OutcomeStoreError
	case errors.As(err, &bounds):
		return "bounds", OutcomeUsageError
	case errors.As(err, &notOK):
		return "not_approved", OutcomeFailed
	case errors.As(err, &plug):
		return "plugin", OutcomeFailed
	case errors.As(err, &recovery):
		return "recovery_unsupported", OutcomeRecoveryUnsupported
	case errors.As(err, &checkpoint):
		if checkpoint.Unknown {
			return "checkpoint", OutcomeStoreError
		}
		return "checkpoint", OutcomeFailed
	case errors.Is(err, host.ErrCancelled):
		return "cancelled", OutcomeCancelled
	case errors.As(err, &failed):
		return string(failed.Code), OutcomeFailed
	case errors.Is(err, host.ErrChild):
		return "child_session", OutcomeError
	case errors.Is(err, host.ErrNotRunning):
		return "not_running", OutcomeError
	case errors.As(err, &mismatch):
		return "mismatch", OutcomeError
	case errors.As(err, &check):
		if check.Damaged {
			return "corrupt", OutcomeStoreError
		}
		return "conformance", OutcomeError
	}
	if refused := refusal(err); refused != nil {
		return string(refused.Kind), OutcomeError
	}
	// A store error's own kind, not that of its cause: a record whose id can't be
	// read is corrupt.
	own := err
	if stored, ok := errors.AsType[*store.Error](err); ok && stored.Kind != nil {
		own = stored.Kind
	}
	for _, k := range storeKinds {
		if errors.Is(own, k.err) {
			return k.kind, k.outcome
		}
	}
	if errors.Is(err, ErrInterrupted) || errors.Is(err, context.Canceled) {
		return "interrupted", OutcomeError
	}
	return "error", OutcomeError
}

// refusal is what package ticket refused, nil where err is another's: also where the
// store is damaged and a refusal says in what.
func refusal(err error) *ticket.Error {
	refused, ok := errors.AsType[*ticket.Error](err)
	if !ok {
		return nil
	}
	if stored, ok := errors.AsType[*store.Error](err); ok && errors.Is(stored, refused) {
		return nil
	}
	return refused
}
