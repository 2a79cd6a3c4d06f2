// Command redact is a hook that takes secrets out of prompts, tool results and
// answers, before they are stored or sent.
package main

import (
	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
)

func init() { guest.Serve(newPlugin()) }

func main() {}

func newPlugin() guest.Plugin {
	h := hook{config: guest.Cached[settings]{Decode: decodeConfig}}
	return guest.Plugin{Hook: h.decide}
}

type hook struct {
	config guest.Cached[settings]
}

func (h *hook) decide(c *guest.HookCall) (pluginapi.Decision, error) {
	s, err := h.config.Get(c.Call)
	if err != nil {
		return pluginapi.Decision{}, &pluginapi.Failure{Kind: pluginapi.FailInvalidRequest, Message: err.Error()}
	}
	if c.Point() == pluginapi.BeforeProvider && !s.beforeProvider {
		return guest.Continue(), nil
	}
	scrub := scrubber{rules: s.rules}
	document, err := scrub.document(c)
	if err != nil {
		return pluginapi.Decision{}, err
	}
	if scrub.total == 0 {
		return guest.Continue(), nil
	}
	return guest.Mutate(document, scrub.summary()), nil
}
