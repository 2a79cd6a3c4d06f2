package exit

import (
	"fmt"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

// aboutScope words an error of a ticket scope and its next step; of is false where
// err is about something else.
func aboutScope(kind string, err error, stored *store.Error, hints Hints) (text, next string, of bool) {
	text = err.Error()
	if refused := refusal(err); refused != nil {
		return text, afterRefusal(refused, hints), true
	}
	scope := stored.Key.Kind == store.KindScope
	switch kind {
	case "not_found":
		if scope {
			text = fmt.Sprintf("the ticket scope %q was not found; the first ticket makes it", stored.Key.ID)
			next = hints.Ticket("create", "", "") + ", or see the others: " + hints.Command("ticket scopes", "", "")
		}
	case "corrupt", "regressed", "fenced":
		next = hints.Command("store check", "", "")
	case "unknown_outcome", "unavailable", "not_durable", "conflict":
		if hints.Operation != "" {
			return text, "give the same command again with --operation " + Quote(hints.Operation) + "; it happens at most once", true
		}
	}
	return text, next, scope
}

// afterRefusal is what a person does after a refusal.
func afterRefusal(e *ticket.Error, hints Hints) string {
	if e.Op == (ticket.Create{}).Type() && e.Kind == ticket.InvalidTransition {
		return "" // the text says what to write otherwise; the ticket is not there to be shown
	}
	switch e.Kind {
	case ticket.IdempotencyConflict:
		return "give another --operation, or the command that it was first given for"
	case ticket.ContextBudgetExceeded, ticket.ScopeDenied:
		return hints.Ticket("list", "", "")
	}
	if e.Key == "" || e.Key == hints.Operation {
		return hints.Ticket("list", "", "")
	}
	return hints.Ticket("show", e.Key, "")
}
