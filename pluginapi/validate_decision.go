package pluginapi

import (
	"strconv"
	"unicode/utf8"
)

// Validate checks a decision against what point p accepts; mutates is the
// subscription's HookDecl.Mutates. The error is an *InvalidError; a host treats
// it as a fault of the hook. It does not look inside Document, beyond that it
// must be an object.
func (d Decision) Validate(p HookPoint, mutates bool) error {
	return d.check(p, mutates).err("decision")
}

func (d Decision) check(p HookPoint, mutates bool) broken {
	if !p.Accepts(d.Action) {
		return broken{"action", string(p) + " does not accept " + strconv.Quote(string(d.Action)) + "; it accepts " + acceptedAt(p)}
	}
	if d.Action == Mutate && !mutates {
		return broken{"action", "mutate needs \"mutates\": true in the plugin's declaration of " + string(p)}
	}
	if d.Reason == "" && needsReason(d.Action) {
		return broken{"reason", string(d.Action) + " needs a reason"}
	}
	if len(d.Reason) > MaxDecisionReason {
		return broken{"reason", strconv.Itoa(len(d.Reason)) + " bytes; at most " + strconv.Itoa(MaxDecisionReason)}
	}
	if !utf8.ValidString(d.Reason) {
		return broken{"reason", "not valid UTF-8"}
	}
	if d.Code != "" && (d.Action != Stop || d.Code != CodeNoProgress) {
		return broken{"code", strconv.Quote(d.Code) + " with " + string(d.Action) + "; only " + CodeNoProgress + ", with stop"}
	}
	if d.Action == Mutate && !opensObject(d.Document) {
		return broken{"document", "mutate needs the point's document, a JSON object"}
	}
	if d.Action != Mutate && len(d.Document) > 0 {
		return broken{"document", "present with " + string(d.Action) + "; only with mutate"}
	}
	if d.Action == Inject && d.Text == "" {
		return broken{"text", "inject needs a text"}
	}
	if d.Action != Inject && d.Text != "" {
		return broken{"text", "present with " + string(d.Action) + "; only with inject"}
	}
	if !utf8.ValidString(d.Text) {
		return broken{"text", "not valid UTF-8"}
	}
	return broken{}
}

func needsReason(a Action) bool { return a == Deny || a == Ask || a == Stop || a == Abort }

func acceptedAt(p HookPoint) string {
	if p.Observer() {
		return string(Continue)
	}
	list := ""
	for _, a := range accepts[p] {
		if list != "" {
			list += ", "
		}
		list += string(a)
	}
	if list == "" {
		return "nothing: it is no hook point"
	}
	return list
}

// opensObject reports whether raw begins like a JSON object.
func opensObject(raw []byte) bool {
	for _, c := range raw {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '{'
		}
	}
	return false
}
