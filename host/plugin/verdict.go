package plugin

import (
	"strings"
	"unicode/utf8"

	"github.com/loophost/loophost/pluginapi"
)

// Verdict is what the hooks of one point decided together.
type Verdict struct {
	// Document is the point's document after every rewrite; the input's where nothing was rewritten.
	Document []byte
	Mutated  bool // a rewrite was taken, even one that changes nothing
	// Injected are the texts to add, in order.
	Injected []Injection
	// Stop, if not nil, is the first raised stop.
	Stop *Ruling
	// End, if not nil, ended the chain: abort, deny or ask.
	End *Ruling
	// Records are the journal's entries, in order; empty at observer points.
	Records []Record
}

// Injection is a text that a hook adds to the conversation.
type Injection struct {
	Plugin string
	Text   string
}

// Ruling is a decision with an effect and who made it.
type Ruling struct {
	Plugin string
	Action pluginapi.Action
	Reason string // the hook's, or what the fault was; at most pluginapi.MaxDecisionReason bytes
	Code   string
	Fault  error // the fault that on_error turned into this ruling; nil: the hook's own decision
}

// take adds one decision that the point accepts.
func (v *Verdict) take(plugin string, d pluginapi.Decision, fault error) {
	ruling := &Ruling{Plugin: plugin, Action: d.Action, Reason: d.Reason, Code: d.Code, Fault: fault}
	switch {
	case d.Action == pluginapi.Mutate:
		v.Document, v.Mutated = d.Document, true
	case d.Action == pluginapi.Inject:
		v.Injected = append(v.Injected, Injection{Plugin: plugin, Text: d.Text})
	case d.Action == pluginapi.Stop && v.Stop == nil:
		v.Stop = ruling
	case d.Action.EndsChain():
		v.End = ruling
	}
}

// bounded makes s fit the journal: valid UTF-8, at most pluginapi.MaxDecisionReason bytes.
func bounded(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= pluginapi.MaxDecisionReason {
		return s
	}
	end := pluginapi.MaxDecisionReason
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
