package ticket

import (
	"fmt"
	"slices"
)

// ActivationStatus is how a child's actor stands.
type ActivationStatus string

// The statuses of an activation.
const (
	ActorReserved  ActivationStatus = "reserved" // claimed; nothing runs yet
	ActorRunning   ActivationStatus = "running"  // until the result is published (T-10)
	ActorSucceeded ActivationStatus = "succeeded"
	ActorFailed    ActivationStatus = "failed"
	ActorCancelled ActivationStatus = "cancelled"
)

func (s ActivationStatus) over() bool {
	return s == ActorSucceeded || s == ActorFailed || s == ActorCancelled
}

// Activation says who may run a child's actor (life cycle, rows 3 and 11). It is a
// value: its methods give the one to be stored, conditional on the one that was read.
// The zero value is an actor that nobody claimed. Times are nanoseconds since the
// Unix epoch, by the clock of whoever asks.
type Activation struct {
	ID         string           `json:"activation_id"` // of what is to be done, such as a dispatch key; 1–256 bytes
	Attempt    uint64           `json:"attempt"`       // 1 at first; each claim after an expired one adds one
	RunID      string           `json:"run_id"`        // 1–256 bytes
	LeaseOwner string           `json:"lease_owner"`   // 1–256 bytes
	LeaseEpoch uint64           `json:"lease_epoch"`   // 1 at first; rises with Attempt
	LeaseUntil int64            `json:"lease_until"`   // from this instant on others may claim it
	Status     ActivationStatus `json:"status"`
}

// ActorClaim asks for an actor. Two claims are identical if all of it is equal.
type ActorClaim struct {
	ActivationID string // 1–256 bytes
	RunID        string // 1–256 bytes
	Owner        string // 1–256 bytes
}

// ActorLease is what a claim gave. It holds while all of it equals the activation.
type ActorLease struct {
	Owner string
	RunID string
	Epoch uint64
}

// Lease is the lease of the newest claim.
func (a Activation) Lease() ActorLease { return ActorLease{a.LeaseOwner, a.RunID, a.LeaseEpoch} }

// Live reports whether the newest claim keeps others out.
func (a Activation) Live(now int64) bool { return !a.Status.over() && now < a.LeaseUntil }

// Claim is a claimed by c until an instant. An identical claim replays: a as it is.
// One after an expired one is another attempt under a higher epoch, also by the same
// owner: what it did since is not known. Errors: ResourceBlocked while another claim
// is live, InvalidTransition when the actor is over or until is past, ScopeDenied for
// another activation or a bad id.
func (a Activation) Claim(c ActorClaim, now, until int64) (Activation, error) {
	refuse := actorError("claim", c.ActivationID)
	switch identical := a.ID == c.ActivationID && a.RunID == c.RunID && a.LeaseOwner == c.Owner; {
	case !validID(c.ActivationID) || !validID(c.RunID) || !validID(c.Owner):
		return Activation{}, refuse(ScopeDenied, "the activation, the run and the owner need 1 to %d bytes each", MaxIDBytes)
	case a.Status != "" && a.ID != c.ActivationID:
		return Activation{}, refuse(ScopeDenied, "the actor is that of %q", a.ID)
	case identical && (a.Status.over() || a.Live(now)):
		return a, nil
	case a.Status != "" && a.Live(now):
		return Activation{}, refuse(ResourceBlocked, "%q holds the actor for the run %q; wait for the end of its lease", a.LeaseOwner, a.RunID)
	case until <= now:
		return Activation{}, refuse(InvalidTransition, "the lease would be over when it begins")
	}
	to := ActorReserved
	if a.Status != "" {
		var ok bool
		if to, ok = next(activationMoves, a.Status, onClaim, ifExpired); !ok {
			return Activation{}, refuse(InvalidTransition, "the actor is %s", a.Status)
		}
	}
	return Activation{
		ID: c.ActivationID, Attempt: a.Attempt + 1, RunID: c.RunID, LeaseOwner: c.Owner, LeaseEpoch: a.LeaseEpoch + 1, LeaseUntil: until, Status: to,
	}, nil
}

// Renew keeps others out until a later instant; an earlier one changes nothing.
// Errors: ScopeDenied for a lease that is another's by now, ResourceBlocked for one
// that ran out (claim anew), InvalidTransition when the actor is over.
func (a Activation) Renew(l ActorLease, now, until int64) (Activation, error) {
	switch err := a.held("renew", l); {
	case err != nil:
		return Activation{}, err
	case a.Status.over():
		return Activation{}, actorError("renew", a.ID)(InvalidTransition, "the actor is %s", a.Status)
	case !a.Live(now):
		return Activation{}, actorError("renew", a.ID)(ResourceBlocked, "the lease ran out; claim the actor anew")
	}
	a.LeaseUntil = max(a.LeaseUntil, until)
	return a, nil
}

// Run is a at work; one that is at work already stays as it is. Errors: those of Renew.
func (a Activation) Run(l ActorLease, now int64) (Activation, error) {
	if _, err := a.Renew(l, now, now); err != nil {
		return Activation{}, err
	}
	if a.Status == ActorRunning {
		return a, nil
	}
	return a.move("run", onRun)
}

// Finish is a at its end; one that ended so already stays as it is. It needs no live
// lease, only that nobody claimed the actor since. State.ActorOutcome gives the
// status. Errors: ScopeDenied for a lease that is another's by now, InvalidTransition
// for another end, or success of what never ran.
func (a Activation) Finish(l ActorLease, status ActivationStatus) (Activation, error) {
	if err := a.held("finish", l); err != nil {
		return Activation{}, err
	}
	on, ok := map[ActivationStatus]string{ActorSucceeded: onSucceed, ActorFailed: onFail, ActorCancelled: onCancel}[status]
	switch {
	case !ok:
		return Activation{}, actorError("finish", a.ID)(InvalidTransition, "%q is no end", status)
	case a.Status == status:
		return a, nil
	}
	return a.move("finish", on)
}

func (a Activation) move(op, on string) (Activation, error) {
	to, ok := next(activationMoves, a.Status, on, "")
	if !ok {
		return Activation{}, actorError(op, a.ID)(InvalidTransition, "the actor is %s; that needs %s", a.Status, either(sources(activationMoves, on)))
	}
	a.Status = to
	return a, nil
}

// held refuses a lease that is not the newest claim's.
func (a Activation) held(op string, l ActorLease) error {
	if a.Status == "" || l != a.Lease() {
		return actorError(op, a.ID)(ScopeDenied, "the lease of %q at epoch %d is not the newest, which is that of %q at %d", l.Owner, l.Epoch, a.LeaseOwner, a.LeaseEpoch)
	}
	return nil
}

func actorError(op, key string) func(kind Kind, format string, args ...any) error {
	return func(kind Kind, format string, args ...any) error {
		return &Error{Op: "actor " + op, Key: key, Kind: kind, Detail: fmt.Sprintf(format, args...)}
	}
}

// Validate checks an activation that was read; the zero value is one. Error: ScopeDenied.
func (a Activation) Validate() error {
	why := ""
	switch {
	case a == Activation{}:
	case !validID(a.ID) || !validID(a.RunID) || !validID(a.LeaseOwner):
		why = "activation_id, run_id and lease_owner need 1 to 256 bytes each"
	case a.Attempt == 0 || a.LeaseEpoch == 0:
		why = "attempt and lease_epoch begin at 1"
	case !slices.Contains(activationStatuses, a.Status):
		why = fmt.Sprintf("status %q is unknown", a.Status)
	}
	if why == "" {
		return nil
	}
	return actorError("validate", a.ID)(ScopeDenied, "%s", why)
}

// ActorOutcome is how the actor of an assignment finishes: succeeded once its result
// is published, also as stale; failed or cancelled as the attempt is. Errors:
// AuthorityUnavailable while the actor stays running (T-10), ScopeDenied where there
// is no such assignment.
func (s *State) ActorOutcome(assignment string) (ActivationStatus, error) {
	a, ok := s.assignments.Get(assignment)
	if !ok {
		return "", actorError("outcome", assignment)(ScopeDenied, "there is no such assignment in this scope")
	}
	_, submitted := s.submissions.Get(assignment)
	switch {
	case submitted:
		return ActorSucceeded, nil
	case a.quiet() && a.State == Failed:
		return ActorFailed, nil
	case a.quiet() && a.State == AssignmentCancelled:
		return ActorCancelled, nil
	default:
		return "", actorError("outcome", assignment)(AuthorityUnavailable, "the attempt is %s and its result is not published; the actor goes on", a.State)
	}
}
