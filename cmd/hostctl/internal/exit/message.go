package exit

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
)

// Hints words the commands that a message tells a person to run next.
type Hints struct {
	Store     string // the store's URL where --store named it; "": the default one or the environment's
	Scope     string // the ticket scope where --scope named it; "": the default one or the environment's
	Operation string // the id of the operation that was tried; "": none
}

// Command is hostctl VERB for session id, then the rest of its arguments.
func (h Hints) Command(verb, id, rest string) string {
	s := "hostctl " + verb
	if h.Store != "" {
		s += " --store " + Quote(h.Store)
	}
	if rest != "" {
		s += " " + rest
	}
	if strings.HasPrefix(id, "-") {
		s += " --"
	}
	if id != "" {
		s += " " + Quote(id)
	}
	return s
}

// Ticket is hostctl ticket VERB for a ticket or assignment, then the rest of its arguments.
func (h Hints) Ticket(verb, id, rest string) string {
	if h.Scope != "" {
		rest = strings.TrimSpace("--scope=" + Quote(h.Scope) + " " + rest)
	}
	return h.Command("ticket "+verb, id, rest)
}

// Worker is the command that does the tickets of the scope, its agent left out.
func (h Hints) Worker() string {
	rest := ""
	if h.Scope != "" {
		rest = "--scope=" + Quote(h.Scope)
	}
	return h.Command("worker", "", strings.TrimSpace(rest+" --exec COMMAND"))
}

// Again is the command that runs another loop in session id.
func (h Hints) Again(id, flags string) string {
	return h.Command("run", "", strings.TrimSpace("--resume="+Quote(id)+" "+flags)) + " PROMPT"
}

// problem words err for people, with the next step where there is one.
func problem(kind, session string, err error, hints Hints) *Problem {
	text, next := say(kind, session, err, hints)
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

func say(kind, session string, err error, hints Hints) (text, next string) {
	var (
		recovery *host.RecoveryError
		check    *CheckError
		stored   = &store.Error{}
	)
	text = err.Error()
	if errors.As(err, &stored) && session == "" && stored.Key.Kind == store.KindSession {
		session = stored.Key.ID
	}
	if text, next, of := aboutScope(kind, err, stored, hints); of {
		return text, next
	}
	switch kind {
	case "busy":
		text = fmt.Sprintf("session %q is busy: %s is live", session, Holder(stored.Holder))
		next = "follow it with: " + hints.Command("session events", session, "--follow")
	case "fenced":
		text = fmt.Sprintf("session %q was taken over by another owner; this run writes nothing more", session)
		if !stored.Fence.IsZero() {
			text = fmt.Sprintf("session %q was taken over by %s (execution %s); this run writes nothing more", session, stored.Fence.Owner, stored.Fence.Run)
		}
		next = hints.Command("session show", session, "")
	case "recovery_unsupported":
		if errors.As(err, &recovery) {
			session = recovery.Session
		}
		next = hints.recovery(session)
	case "not_found":
		if stored.Key != (store.Key{}) {
			text = fmt.Sprintf("%s %q was not found", stored.Key.Kind, stored.Key.ID)
		}
		next = hints.Command("session list", "", "")
	case "exists":
		text = fmt.Sprintf("session %q exists already", session)
		next = "choose another id, or delete it first: " + hints.Command("session delete", session, "")
	case "not_running":
		text = fmt.Sprintf("session %q has no live run", session)
		next = hints.Command("session show", session, "")
	case "child_session":
		next = hints.Command("session fork", session, "")
	case "cancelled":
		text = fmt.Sprintf("session %q was cancelled", session)
	case "corrupt", "regressed", "unusable_state":
		if !errors.As(err, &check) { // a check found it: that was the command
			next = hints.Command("store check", "", "")
		}
	case "checkpoint", "unknown_outcome", "unavailable":
		// A store that could not be opened has nothing to show.
		if session != "" && (kind == "checkpoint" || stored.Key != (store.Key{})) {
			next = hints.Command("session show", session, "")
		}
	case "interrupted":
		text = ErrInterrupted.Error()
	}
	return text, next
}

// ended words an ending that was reported without an error: a loop that ended
// earlier and is reported again.
func ended(res host.Result, o Outcome, hints Hints) *Problem {
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
		p.Next = hints.recovery(res.SessionID)
		p.Message += "; next: " + p.Next
	}
	return p
}

func (h Hints) recovery(id string) string {
	return h.Again(id, "--new-loop") + ", or: " + h.Command("session fork", id, "")
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

// Quote makes an argument safe to paste into a shell. What could steer the
// terminal on the way is written as escapes, which need bash, zsh or ksh.
func Quote(arg string) string {
	if term.Field(arg) != arg {
		return escaped(arg)
	}
	if arg != "" && strings.Trim(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@+") == "" && arg[0] != '-' {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// escaped is arg as $'…', with everything but printable ASCII as bytes.
func escaped(arg string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(arg) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c) // octal ends after three digits, hexadecimal with the next other letter
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
