package plugin

import (
	"github.com/loophost/loophost/pluginapi"
)

// Verdict is what the hooks of one point decided together.
type Verdict struct {
	// Document is the point's document after every rewrite; the input's where nothing was rewritten.
	Document []byte
	Mutated  bool
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
	Reason string
	Code   string
	Fault  error // the fault that on_error turned into this ruling; nil: the hook's own decision
}
