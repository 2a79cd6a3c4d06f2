package guest

import (
	"unicode/utf8"

	"github.com/loophost/loophost/pluginapi"
)

// Continue has no opinion.
func Continue() pluginapi.Decision { return pluginapi.Decision{Action: pluginapi.Continue} }

// Allow says that it is fine, explicitly.
func Allow(reason string) pluginapi.Decision { return decision(pluginapi.Allow, reason) }

// Deny refuses. The reason is for people and for the model.
func Deny(reason string) pluginapi.Decision { return decision(pluginapi.Deny, reason) }

// Ask leaves it to a person.
func Ask(reason string) pluginapi.Decision { return decision(pluginapi.Ask, reason) }

// Stop raises stop: nothing more is admitted.
func Stop(reason string) pluginapi.Decision { return decision(pluginapi.Stop, reason) }

// StopNoProgress raises stop because nothing changes any more.
func StopNoProgress(reason string) pluginapi.Decision {
	d := Stop(reason)
	d.Code = pluginapi.CodeNoProgress
	return d
}

// Abort fails the run.
func Abort(reason string) pluginapi.Decision { return decision(pluginapi.Abort, reason) }

// Mutate puts document, the JSON of the point's document, in place of the one the
// hook was called with. Package wire appends such documents.
func Mutate(document []byte, reason string) pluginapi.Decision {
	d := decision(pluginapi.Mutate, reason)
	d.Document = document
	return d
}

// Inject adds text to the conversation, as a user message.
func Inject(text, reason string) pluginapi.Decision {
	d := decision(pluginapi.Inject, reason)
	d.Text = text
	return d
}

// decision makes a reason valid UTF-8 and cuts it to what a host takes.
func decision(a pluginapi.Action, reason string) pluginapi.Decision {
	if !utf8.ValidString(reason) {
		reason = string([]rune(reason))
	}
	return pluginapi.Decision{Action: a, Reason: clip(reason, pluginapi.MaxDecisionReason)}
}
