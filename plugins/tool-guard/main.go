// Command tool-guard is a before-tool hook that allows, denies, asks about or
// rewrites tool calls by rules. The first rule that matches decides.
package main

import (
	"strconv"
	"unsafe"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

func init() { guest.Serve(newPlugin()) }

func main() {}

func newPlugin() guest.Plugin {
	h := hook{config: guest.Cached[policy]{Decode: decodeConfig}}
	return guest.Plugin{Hook: h.decide}
}

type hook struct {
	config guest.Cached[policy]
}

func (h *hook) decide(c *guest.HookCall) (pluginapi.Decision, error) {
	p, err := h.config.Get(c.Call)
	if err != nil {
		return pluginapi.Decision{}, &pluginapi.Failure{Kind: pluginapi.FailInvalidRequest, Message: err.Error()}
	}
	call, err := c.ToolCall()
	if err != nil {
		return pluginapi.Decision{}, err
	}
	return p.judge(&call), nil
}

// judge decides about one call. Arguments that two readers could understand
// differently are denied whatever the rules say.
func (p policy) judge(call *pluginapi.ToolCall) pluginapi.Decision {
	args, err := readMembers(unsafe.String(unsafe.SliceData(call.Arguments), len(call.Arguments)))
	if err != nil {
		return guest.Deny("tool-guard: the arguments can't be judged: " + err.Error())
	}
	for i := range p.rules {
		if r := &p.rules[i]; r.matches(call.Name, args) {
			return r.decision(i+1, call, args)
		}
	}
	if p.denyByDefault {
		return guest.Deny("tool-guard: no rule allows this call of " + call.Name)
	}
	return guest.Continue()
}

// decision is what the rule with this number, from 1, makes of a call.
func (r *rule) decision(number int, call *pluginapi.ToolCall, args []member) pluginapi.Decision {
	reason := r.reason
	if reason == "" {
		reason = "tool-guard: rule " + strconv.Itoa(number) + " says " + string(r.action)
	}
	switch r.action {
	case pluginapi.Allow:
		return guest.Allow(reason)
	case pluginapi.Ask:
		return guest.Ask(reason)
	case pluginapi.Mutate:
		changed := pluginapi.ToolCall{ID: call.ID, Name: call.Name, Arguments: overwrite(args, r.set)}
		return guest.Mutate(wire.AppendToolCall(nil, &changed), reason)
	}
	return guest.Deny(reason)
}
