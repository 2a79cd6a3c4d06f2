package wire

import (
	"strconv"

	"github.com/loophost/loophost/pluginapi"
)

// AppendDecision appends a hook's answer.
func AppendDecision(dst []byte, v *pluginapi.Decision) []byte {
	o := newObject(dst)
	o.text("action", string(v.Action))
	o.maybe("reason", v.Reason)
	o.maybe("code", v.Code)
	if len(v.Document) > 0 {
		o.raw("document", v.Document)
	}
	o.maybe("text", v.Text)
	return o.end()
}

// AppendToolOutput appends a tool's answer.
func AppendToolOutput(dst []byte, v *pluginapi.ToolOutput) []byte {
	o := newObject(dst)
	o.text("text", v.Text)
	o.flag("is_error", v.IsError)
	return o.end()
}

// AppendFailure appends a typed error.
func AppendFailure(dst []byte, v *pluginapi.Failure) []byte {
	o := newObject(dst)
	o.text("kind", string(v.Kind))
	o.text("message", v.Message)
	if v.RetryAfterMS != 0 {
		o.key("retry_after_ms")
		o.dst = strconv.AppendInt(o.dst, v.RetryAfterMS, 10)
	}
	return o.end()
}

// AppendChunk appends one piece of a provider's answer, without the line's end.
func AppendChunk(dst []byte, v *pluginapi.Chunk) []byte {
	o := newObject(dst)
	o.text("type", string(v.Type))
	o.maybe("text", v.Text)
	if v.ToolCall != nil {
		o.key("tool_call")
		o.dst = AppendToolCall(o.dst, v.ToolCall)
	}
	if v.Usage != nil {
		o.key("usage")
		o.dst = AppendUsage(o.dst, v.Usage)
	}
	o.maybe("finish", string(v.Finish))
	return o.end()
}
