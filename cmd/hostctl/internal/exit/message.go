package exit

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
)

// problem words err for people, with the next step where there is one.
func problem(kind, session string, err error) *Problem {
	text, next := say(kind, session, err)
	p := &Problem{Kind: kind, Message: oneLine(text), Next: next}
	if next != "" {
		p.Message += "; next: " + next
	}
	return p
}

// Headline is the message without the next step.
func (p *Problem) Headline() string {
	return strings.TrimSuffix(p.Message, "; next: "+p.Next)
}

func say(kind, session string, err error) (text, next string) {
	var (
		recovery *host.RecoveryError
		stored   *store.Error
	)
	text = err.Error()
	if errors.As(err, &stored) && session == "" && stored.Key.Kind == store.KindSession {
		session = stored.Key.ID
	}
	id := Quote(session)
	switch kind {
	case "busy":
		if stored != nil {
			text = fmt.Sprintf("session %q is busy: %s is live", session, Holder(stored.Holder))
		}
		next = "follow it with: hostctl session events --follow " + id + " (or session stop, session take-over)"
	case "fenced":
		text = fmt.Sprintf("session %q was taken over by another owner; this run wrote nothing more", session)
		if stored != nil && !stored.Fence.IsZero() {
			text = fmt.Sprintf("session %q was taken over by %s (execution %s); this run wrote nothing more", session, stored.Fence.Owner, stored.Fence.Run)
		}
		next = "hostctl session show " + id
	case "recovery_unsupported":
		if errors.As(err, &recovery) {
			id = Quote(recovery.Session)
		}
		next = recoveryNext(id)
	case "not_found":
		if stored != nil {
			text = fmt.Sprintf("%s %q was not found", stored.Key.Kind, stored.Key.ID)
		}
		next = "hostctl session list"
	case "exists":
		if stored != nil {
			text = fmt.Sprintf("%s %q exists already", stored.Key.Kind, stored.Key.ID)
		}
		next = "choose another id, or delete it first: hostctl session delete " + id
	case "not_running":
		text = "no live run"
		if session != "" {
			text = fmt.Sprintf("session %q has no live run", session)
			next = "hostctl session show " + id
		}
	case "cancelled":
		text = "cancelled"
		if session != "" {
			text = fmt.Sprintf("session %q was cancelled", session)
		}
	case "corrupt", "regressed", "unusable_state":
		next = "hostctl store check"
	case "checkpoint", "unknown_outcome", "unavailable":
		if session != "" {
			next = "hostctl session show " + id
		}
	case "interrupted":
		text = "interrupted"
	}
	return text, next
}

// ended words an ending that was reported without an error: a loop that ended
// earlier and is reported again.
func ended(res host.Result, o Outcome) *Problem {
	kind := string(res.ReasonCode)
	if o != OutcomeFailed || kind == "" {
		kind = string(o)
	}
	text := res.Reason
	if text == "" {
		text = fmt.Sprintf("session %q: %s", res.SessionID, o)
	}
	p := &Problem{Kind: kind, Message: oneLine(text)}
	if o == OutcomeRecoveryUnsupported {
		p.Next = recoveryNext(Quote(res.SessionID))
		p.Message += "; next: " + p.Next
	}
	return p
}

func recoveryNext(id string) string {
	return "hostctl run --resume " + id + " --new-loop PROMPT, or: hostctl session fork " + id
}

// Holder names a live owner for people.
func Holder(h store.Holder) string {
	s := "owner " + h.Fence.Owner
	if h.PID != 0 {
		s += fmt.Sprintf(", pid %d", h.PID)
	}
	if h.Fence.Run != "" {
		s += ", execution " + h.Fence.Run
	}
	if !h.Started.IsZero() {
		s += ", since " + h.Started.UTC().Format(time.RFC3339)
	}
	return s
}

// Quote makes id safe to paste into a shell.
func Quote(id string) string {
	plain := id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") == "" && id[0] != '-'
	if plain {
		return id
	}
	q := "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
	if strings.HasPrefix(id, "-") {
		return "-- " + q
	}
	return q
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
