package guest

import (
	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// HookCall is one call of a hook. Its input is read from the front, only as far
// as it is asked. What its methods decode is the caller's to keep.
type HookCall struct {
	Call
	walk wire.HookWalk
}

// Point is where in the loop the hook runs.
func (c *HookCall) Point() pluginapi.HookPoint { return c.walk.Point() }

// Document is the JSON of the point's document.
func (c *HookCall) Document() (pluginapi.Raw, error) {
	in, err := c.input()
	return pluginapi.Raw(in.Document), err
}

// Session names the session and the run.
func (c *HookCall) Session() (pluginapi.SessionInfo, error) {
	in, err := c.input()
	if err != nil {
		return pluginapi.SessionInfo{}, err
	}
	return part(in.Session, "session", (*wire.Reader).SessionInfo)
}

// Loop is the loop's state.
func (c *HookCall) Loop() (pluginapi.LoopInfo, error) {
	in, err := c.input()
	if err != nil {
		return pluginapi.LoopInfo{}, err
	}
	return part(in.Loop, "loop", (*wire.Reader).LoopInfo)
}

// input reads the whole input. The texts in it live until the hook returns.
func (c *HookCall) input() (*wire.HookInput, error) {
	in := c.walk.All()
	return in, c.r.check(c.walk.End())
}

// Start is the document of session_start.
func (c *HookCall) Start() (pluginapi.StartDoc, error) {
	return document(c, pluginapi.SessionStart, (*wire.Reader).StartDoc)
}

// Prompt is the document of before_prompt.
func (c *HookCall) Prompt() (pluginapi.PromptDoc, error) {
	return document(c, pluginapi.BeforePrompt, (*wire.Reader).PromptDoc)
}

// Round is the document of before_round.
func (c *HookCall) Round() (pluginapi.RoundDoc, error) {
	return document(c, pluginapi.BeforeRound, (*wire.Reader).RoundDoc)
}

// Request is the document of before_provider.
func (c *HookCall) Request() (pluginapi.ProviderRequest, error) {
	return document(c, pluginapi.BeforeProvider, (*wire.Reader).ProviderRequest)
}

// Answer is the document of after_provider.
func (c *HookCall) Answer() (pluginapi.AnswerDoc, error) {
	return document(c, pluginapi.AfterProvider, (*wire.Reader).AnswerDoc)
}

// ToolCall is the document of before_tool.
func (c *HookCall) ToolCall() (pluginapi.ToolCall, error) {
	return document(c, pluginapi.BeforeTool, (*wire.Reader).ToolCall)
}

// ToolResult is the document of after_tool.
func (c *HookCall) ToolResult() (pluginapi.ToolResultDoc, error) {
	return document(c, pluginapi.AfterTool, (*wire.Reader).ToolResultDoc)
}

// RoundEnd is the document of after_round.
func (c *HookCall) RoundEnd() (pluginapi.RoundEndDoc, error) {
	return document(c, pluginapi.AfterRound, (*wire.Reader).RoundEndDoc)
}

// Finalize is the document of before_finalize.
func (c *HookCall) Finalize() (pluginapi.FinalizeDoc, error) {
	return document(c, pluginapi.BeforeFinalize, (*wire.Reader).FinalizeDoc)
}

// End is the document of session_end.
func (c *HookCall) End() (pluginapi.EndDoc, error) {
	return document(c, pluginapi.SessionEnd, (*wire.Reader).EndDoc)
}

// Notification is the document of notification.
func (c *HookCall) Notification() (pluginapi.NotificationDoc, error) {
	return document(c, pluginapi.Notification, (*wire.Reader).NotificationDoc)
}

// document decodes the point's document, which must be that of want. The first time it
// does so in place; the buffer is the plugin's then, which may keep what was decoded.
func document[T any](c *HookCall, want pluginapi.HookPoint, read func(*wire.Reader) T) (T, error) {
	var none T
	if at := c.Point(); at != want {
		return none, failure(pluginapi.FailInternal, "the hook asked for the document of "+string(want)+" at "+string(at))
	}
	var v T
	if !c.walk.Decode(func(rd *wire.Reader) { v = read(rd) }) {
		in, err := c.input()
		if err != nil {
			return none, err
		}
		return part(in.Document, "document", read)
	}
	c.r.given = true
	if err := c.r.check(c.walk.End()); err != nil {
		return none, err
	}
	return v, nil
}

// part decodes one part of the input from a copy of its own, so that what is
// decoded outlives the call's buffers.
func part[T any](text, name string, read func(*wire.Reader) T) (T, error) {
	rd := wire.NewReader(string([]byte(text)))
	v := read(rd)
	if err := rd.End(); err != nil {
		var none T
		return none, failure(pluginapi.FailInvalidRequest, "the call's "+name+" is malformed: "+err.Error())
	}
	return v, nil
}
