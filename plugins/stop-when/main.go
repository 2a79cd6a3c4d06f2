// Command stop-when is an after-round hook that raises stop when a pattern
// appears in the answer or in a tool result, or when nothing has changed for a
// number of rounds.
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
	doc, err := c.RoundEnd()
	if err != nil {
		return pluginapi.Decision{}, err
	}
	if where, ok := s.appears(&doc); ok {
		return guest.Stop("the pattern " + s.pattern.String() + " appears in " + where), nil
	}
	if s.unchangedRounds == 0 {
		return guest.Continue(), nil
	}
	return h.unchanged(c, s, &doc)
}
