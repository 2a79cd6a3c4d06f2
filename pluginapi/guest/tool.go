package guest

import (
	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// ToolCall is one call of a tool. Its strings live until the function returns;
// a plugin that keeps one clones it.
type ToolCall struct {
	Call
	input pluginapi.ToolInput
}

// Session names the session and the run.
func (c *ToolCall) Session() pluginapi.SessionInfo { return c.input.Session }

// Name is the tool's name.
func (c *ToolCall) Name() string { return c.input.Call.Name }

// ID is the call's id.
func (c *ToolCall) ID() string { return c.input.Call.ID }

// Arguments reads the call's arguments; an absent value or a null reads as {}.
func (c *ToolCall) Arguments() *wire.Reader {
	if a := string(c.input.Call.Arguments); a == "" || a == "null" {
		return wire.NewReader("{}")
	}
	return wire.NewReader(string(c.input.Call.Arguments))
}

// Answer is a tool's good answer.
func Answer(text string) pluginapi.ToolOutput { return pluginapi.ToolOutput{Text: text} }

// Refuse is an answer that tells the model what went wrong and what to do instead.
func Refuse(text string) pluginapi.ToolOutput { return pluginapi.ToolOutput{Text: text, IsError: true} }
