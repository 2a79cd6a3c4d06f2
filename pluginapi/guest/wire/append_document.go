package wire

import "github.com/loophost/loophost/pluginapi"

// AppendPromptDoc appends the document of before_prompt.
func AppendPromptDoc(dst []byte, v *pluginapi.PromptDoc) []byte {
	o := newObject(dst)
	o.text("text", v.Text)
	return o.end()
}

// AppendAnswerDoc appends the document of after_provider.
func AppendAnswerDoc(dst []byte, v *pluginapi.AnswerDoc) []byte {
	o := newObject(dst)
	o.key("message")
	o.dst = AppendMessage(o.dst, &v.Message)
	o.key("usage")
	o.dst = AppendUsage(o.dst, v.Usage)
	return o.end()
}

// AppendToolResultDoc appends the document of after_tool.
func AppendToolResultDoc(dst []byte, v *pluginapi.ToolResultDoc) []byte {
	o := newObject(dst)
	o.key("call")
	o.dst = AppendToolCall(o.dst, &v.Call)
	o.key("result")
	o.dst = AppendToolResult(o.dst, &v.Result)
	return o.end()
}

// AppendProviderRequest appends the document of before_provider.
func AppendProviderRequest(dst []byte, v *pluginapi.ProviderRequest) []byte {
	o := newObject(dst)
	o.key("call")
	o.dst = appendCallInfo(o.dst, &v.Call)
	o.text("model", v.Model)
	o.text("system", v.System)
	o.number("max_tokens", uint64(v.MaxTokens))
	if len(v.Options) > 0 {
		o.raw("options", v.Options)
	}
	array(&o, "tools", v.Tools, appendToolSpec)
	array(&o, "messages", v.Messages, AppendMessage)
	return o.end()
}

func appendCallInfo(dst []byte, v *pluginapi.CallInfo) []byte {
	o := newObject(dst)
	o.number("ordinal", v.Ordinal)
	o.number("iteration", uint64(v.Iteration))
	o.number("round", uint64(v.Round))
	o.number("attempt", uint64(v.Attempt))
	return o.end()
}

func appendToolSpec(dst []byte, v *pluginapi.ToolSpec) []byte {
	o := newObject(dst)
	o.text("name", v.Name)
	o.text("description", v.Description)
	o.raw("input_schema", v.InputSchema)
	o.flag("read_only", v.ReadOnly)
	o.flag("idempotent", v.Idempotent)
	return o.end()
}

// AppendMessage appends one message of the conversation.
func AppendMessage(dst []byte, v *pluginapi.Message) []byte {
	o := newObject(dst)
	o.text("role", string(v.Role))
	o.maybe("text", v.Text)
	o.maybe("origin", v.Origin)
	o.maybe("reasoning", v.Reasoning)
	if len(v.ToolCalls) > 0 {
		array(&o, "tool_calls", v.ToolCalls, AppendToolCall)
	}
	if v.Result != nil {
		o.key("result")
		o.dst = AppendToolResult(o.dst, v.Result)
	}
	return o.end()
}

// AppendToolCall appends a tool call: the document of before_tool. Absent arguments become {}.
func AppendToolCall(dst []byte, v *pluginapi.ToolCall) []byte {
	o := newObject(dst)
	o.text("id", v.ID)
	o.text("name", v.Name)
	args := v.Arguments
	if len(args) == 0 {
		args = pluginapi.Raw("{}")
	}
	o.raw("arguments", args)
	return o.end()
}

// AppendToolResult appends the answer to a tool call.
func AppendToolResult(dst []byte, v *pluginapi.ToolResult) []byte {
	o := newObject(dst)
	o.text("call_id", v.CallID)
	o.text("name", v.Name)
	o.text("status", string(v.Status))
	o.text("text", v.Text)
	return o.end()
}

// AppendUsage appends token counts; nil is null, and so is an unknown count.
func AppendUsage(dst []byte, v *pluginapi.Usage) []byte {
	if v == nil {
		return append(dst, "null"...)
	}
	o := newObject(dst)
	o.count("input_tokens", v.InputTokens)
	o.count("output_tokens", v.OutputTokens)
	return o.end()
}

func (o *object) count(name string, v *uint64) {
	if v == nil {
		o.raw(name, nil)
		return
	}
	o.number(name, *v)
}
