package ticket

import "strings"

// Kind says how a command or a document was refused. It is itself an error, so
// that errors.Is(err, ticket.ScopeDenied) works; its text is part of the contract.
type Kind string

// The kinds of refusals. Each says what the caller does next.
const (
	// ScopeDenied: the principal may not do that, or a proof does not fit. Stop.
	ScopeDenied Kind = "scope_denied"
	// RevisionConflict: the state moved since it was read. Reread and decide anew.
	RevisionConflict Kind = "revision_conflict"
	// IdempotencyConflict: the operation id was used for something else. Choose another.
	IdempotencyConflict Kind = "idempotency_conflict"
	// InvalidTransition: the ticket or the assignment is in no state for that. Stop.
	InvalidTransition Kind = "invalid_transition"
	// ResourceBlocked: something else must happen first, and the text says what. Retry later.
	ResourceBlocked Kind = "resource_blocked"
	// AuthorityUnavailable: the proof or the authority is not there (yet). Get it, or ask a person.
	AuthorityUnavailable Kind = "authority_unavailable"
	// ContextBudgetExceeded: a document is over its size. Make it smaller.
	ContextBudgetExceeded Kind = "context_budget_exceeded"
)

// Kinds lists all of them; the list is the caller's own.
func Kinds() []Kind {
	return []Kind{ScopeDenied, RevisionConflict, IdempotencyConflict, InvalidTransition, ResourceBlocked, AuthorityUnavailable, ContextBudgetExceeded}
}

// Error is the kind's word.
func (k Kind) Error() string { return string(k) }

// Error is a refusal: which operation, on what, how, and why.
type Error struct {
	Op     string // the request's type, or "decode"
	Key    string // the ticket, assignment or document; may be empty
	Kind   Kind
	Detail string // what was found, and what to do
	Err    error  // the cause; may be nil
}

// Error renders all of it on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Key != "" {
		b.WriteString(" " + e.Key)
	}
	b.WriteString(": " + string(e.Kind))
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
