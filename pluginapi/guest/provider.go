package guest

import (
	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// ProviderCall is one request to a provider and the stream of its answer. The
// request is read from the front, only as far as it is asked. Its strings live
// until the function returns.
//
// Each of Text, Reasoning, ToolCall and Usage hands one piece to the host at
// once. Finish ends the answer; what comes after it is an error.
type ProviderCall struct {
	Call
	walk     *wire.RequestWalk
	finished bool
}

// Info is which call this is. It reads only the front of the request.
func (c *ProviderCall) Info() (pluginapi.CallInfo, error) {
	v := c.walk.Call()
	return v, c.r.check(c.walk.Err())
}

// Head is the request without its messages, which stay unread.
func (c *ProviderCall) Head() (*pluginapi.ProviderRequest, error) {
	v := c.walk.Head()
	return v, c.r.check(c.walk.Err())
}

// Request is the whole request.
func (c *ProviderCall) Request() (*pluginapi.ProviderRequest, error) {
	v := c.walk.All()
	return v, c.r.check(c.walk.End())
}

// Text streams a piece of the answer. An empty one is not sent.
func (c *ProviderCall) Text(piece string) error {
	if piece == "" {
		return nil
	}
	return c.emit(&pluginapi.Chunk{Type: pluginapi.ChunkText, Text: piece})
}

// Reasoning streams a piece of the reasoning. An empty one is not sent.
func (c *ProviderCall) Reasoning(piece string) error {
	if piece == "" {
		return nil
	}
	return c.emit(&pluginapi.Chunk{Type: pluginapi.ChunkReasoning, Text: piece})
}

// ToolCall asks for a tool. The call is whole: arguments are never streamed in parts.
func (c *ProviderCall) ToolCall(call pluginapi.ToolCall) error {
	return c.emit(&pluginapi.Chunk{Type: pluginapi.ChunkToolCall, ToolCall: &call})
}

// Usage tells the token counts so far; the last one counts.
func (c *ProviderCall) Usage(u pluginapi.Usage) error {
	return c.emit(&pluginapi.Chunk{Type: pluginapi.ChunkUsage, Usage: &u})
}

// Finish ends the answer.
func (c *ProviderCall) Finish(why pluginapi.Finish) error {
	err := c.emit(&pluginapi.Chunk{Type: pluginapi.ChunkResult, Finish: why})
	c.finished = true
	return err
}

func (c *ProviderCall) emit(v *pluginapi.Chunk) error {
	if c.finished {
		return failure(pluginapi.FailInternal, "the provider wrote a "+string(v.Type)+" chunk after its result")
	}
	c.r.out = append(wire.AppendChunk(c.r.out[:0], v), '\n')
	c.r.host.OutputWrite(c.r.out)
	return nil
}
