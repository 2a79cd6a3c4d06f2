package plugin

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

// checkRewrite checks the document that a hook wants to put in before's place.
// It must decode strictly into the point's own type, and what names a tool call
// must stay as it is, so that every call keeps exactly one result (L-9).
//
//	before_prompt    a text that is not empty
//	before_provider  call stays: the host counts calls; messages and tools are well formed
//	after_provider   an assistant's answer that is not empty; usage stays: budgets are counted from it
//	before_tool      id stays
//	after_tool       call, call_id and name stay; the status may change between ok and error only:
//	                 not_started and unknown say what happened to the outside world (L-26)
//
// The error wraps ErrDocument where before itself is not the point's document.
func checkRewrite(point pluginapi.HookPoint, before, after []byte) error {
	switch point {
	case pluginapi.BeforePrompt:
		return rewrite(point, before, after, checkPrompt)
	case pluginapi.BeforeProvider:
		return rewrite(point, before, after, checkRequest)
	case pluginapi.AfterProvider:
		return rewrite(point, before, after, checkAnswer)
	case pluginapi.BeforeTool:
		return rewrite(point, before, after, checkCall)
	case pluginapi.AfterTool:
		return rewrite(point, before, after, checkResult)
	}
	return fmt.Errorf("%s has no document that a hook may rewrite", point)
}

// flaw is what is wrong with a rewrite; the zero value: nothing.
type flaw struct{ field, problem string }

func rewrite[T any](point pluginapi.HookPoint, before, after []byte, check func(before, after *T) flaw) error {
	var old, changed T
	if err := strictjson.Unmarshal(before, &old); err != nil {
		return fmt.Errorf("hook point %s: %w: %w", point, ErrDocument, err)
	}
	if err := strictjson.Unmarshal(after, &changed); err != nil {
		return fmt.Errorf("the rewritten document of %s: %w", point, err)
	}
	if f := check(&old, &changed); f != (flaw{}) {
		return &pluginapi.InvalidError{Document: "the rewritten document of " + string(point), Field: f.field, Problem: f.problem}
	}
	return nil
}

func checkPrompt(_, after *pluginapi.PromptDoc) flaw {
	if after.Text == "" {
		return flaw{"text", "empty; deny the prompt instead"}
	}
	return flaw{}
}

func checkRequest(before, after *pluginapi.ProviderRequest) flaw {
	if after.Call != before.Call {
		return flaw{"call", "changed; it is the host's count and must stay"}
	}
	names := map[string]bool{}
	for i, t := range after.Tools {
		where := fmt.Sprintf("tools[%d]", i)
		if err := t.Validate(); err != nil {
			return flaw{where, err.Error()}
		}
		if names[t.Name] {
			return flaw{where + ".name", fmt.Sprintf("%q is listed twice", t.Name)}
		}
		names[t.Name] = true
	}
	if len(after.Messages) == 0 {
		return flaw{"messages", "empty; a request needs at least one message"}
	}
	for i := range after.Messages {
		if f := checkMessage(&after.Messages[i], fmt.Sprintf("messages[%d]", i)); f != (flaw{}) {
			return f
		}
	}
	return flaw{}
}

func checkAnswer(before, after *pluginapi.AnswerDoc) flaw {
	m := &after.Message
	switch {
	case m.Role != pluginapi.RoleAssistant:
		return flaw{"message.role", fmt.Sprintf("%q; an answer is the assistant's", m.Role)}
	case m.Text == "" && len(m.ToolCalls) == 0:
		return flaw{"message", "neither text nor tool calls; an answer needs one of them"}
	case !sameUsage(before.Usage, after.Usage):
		return flaw{"usage", "changed; budgets are counted from it and it must stay"}
	}
	return checkMessage(m, "message")
}

func checkCall(before, after *pluginapi.ToolCall) flaw {
	if after.ID != before.ID {
		return flaw{"id", fmt.Sprintf("%q, was %q; it must stay", after.ID, before.ID)}
	}
	return checkToolCall(after, "")
}

func checkResult(before, after *pluginapi.ToolResultDoc) flaw {
	was, is := before.Result, after.Result
	switch {
	case before.Call.ID != after.Call.ID, before.Call.Name != after.Call.Name, !sameJSON(before.Call.Arguments, after.Call.Arguments):
		return flaw{"call", "changed; only the result may change after a tool ran"}
	case was.CallID != is.CallID:
		return flaw{"result.call_id", fmt.Sprintf("%q, was %q; it must stay", is.CallID, was.CallID)}
	case was.Name != is.Name:
		return flaw{"result.name", fmt.Sprintf("%q, was %q; it must stay", is.Name, was.Name)}
	case was.Status != is.Status && (!isOutcome(was.Status) || !isOutcome(is.Status)):
		return flaw{"result.status", fmt.Sprintf("%q, was %q; only ok and error may change into each other", is.Status, was.Status)}
	}
	return flaw{}
}

// checkMessage checks that a message holds what its role uses and nothing else.
func checkMessage(m *pluginapi.Message, where string) flaw {
	switch m.Role {
	case pluginapi.RoleUser, pluginapi.RoleAssistant, pluginapi.RoleTool:
	default:
		return flaw{where + ".role", fmt.Sprintf("%q; want user, assistant or tool", m.Role)}
	}
	switch {
	case m.Role != pluginapi.RoleUser && m.Origin != "":
		return flaw{where + ".origin", "only a user's message has one"}
	case m.Role != pluginapi.RoleAssistant && m.Reasoning != "":
		return flaw{where + ".reasoning", "only the assistant's message has it"}
	case m.Role != pluginapi.RoleAssistant && len(m.ToolCalls) > 0:
		return flaw{where + ".tool_calls", "only the assistant's message has them"}
	case m.Role != pluginapi.RoleTool && m.Result != nil:
		return flaw{where + ".result", "only a tool's message has one"}
	case m.Role == pluginapi.RoleTool && m.Text != "":
		return flaw{where + ".text", "a tool's message has its text in its result"}
	}
	ids := map[string]bool{}
	for i := range m.ToolCalls {
		call, at := &m.ToolCalls[i], fmt.Sprintf("%s.tool_calls[%d]", where, i)
		if f := checkToolCall(call, at+"."); f != (flaw{}) {
			return f
		}
		if ids[call.ID] {
			return flaw{at + ".id", fmt.Sprintf("%q is used twice", call.ID)}
		}
		ids[call.ID] = true
	}
	if m.Role == pluginapi.RoleTool {
		return checkToolMessage(m.Result, where+".result")
	}
	return flaw{}
}

func checkToolCall(c *pluginapi.ToolCall, prefix string) flaw {
	switch {
	case c.ID == "":
		return flaw{prefix + "id", "empty"}
	case c.Name == "":
		return flaw{prefix + "name", "empty"}
	case !bytes.HasPrefix(bytes.TrimLeft(c.Arguments, " \t\r\n"), []byte("{")):
		return flaw{prefix + "arguments", "want a JSON object"}
	}
	return flaw{}
}

func checkToolMessage(r *pluginapi.ToolResult, where string) flaw {
	switch {
	case r == nil:
		return flaw{where, "a tool's message needs one"}
	case r.CallID == "":
		return flaw{where + ".call_id", "empty"}
	case !isOutcome(r.Status) && r.Status != pluginapi.ResultNotStarted && r.Status != pluginapi.ResultUnknown:
		return flaw{where + ".status", fmt.Sprintf("%q; want ok, error, not_started or unknown", r.Status)}
	}
	return flaw{}
}

// isOutcome reports whether the tool ran to its end.
func isOutcome(s pluginapi.ResultStatus) bool {
	return s == pluginapi.ResultOK || s == pluginapi.ResultError
}

func sameUsage(a, b *pluginapi.Usage) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameCount(a.InputTokens, b.InputTokens) && sameCount(a.OutputTokens, b.OutputTokens)
}

func sameCount(a, b *uint64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// sameJSON compares values, not bytes: a guest that decodes and encodes a
// document again orders and spaces it in its own way.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	exact := jsontext.CanonicalizeRawInts(false) // as floating point, 2^53+1 would equal 2^53
	return x.Canonicalize(exact) == nil && y.Canonicalize(exact) == nil && bytes.Equal(x, y)
}
