package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

// provider is a plugin as plugin.Provider.
type provider struct{ p *Plugin }

// Info names the plugin.
func (pr provider) Info() plugin.Info { return pr.p.info }

// Complete makes one attempt; emit runs on the caller's goroutine, and the guest
// waits while it does.
func (pr provider) Complete(ctx context.Context, s plugin.Session, req *plugin.Request, emit func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
	input, err := providerInput(req)
	if err != nil {
		return nil, err
	}
	a := answer{emit: emit}
	_, err = pr.p.call(ctx, &order{
		op: pluginapi.OpProvider, input: input, limit: pr.p.limits.ProviderSilence, session: s,
		chunk: a.lines,
		take:  func([]byte) error { return a.whole() },
	})
	if err != nil {
		return nil, err
	}
	return a.result(), nil
}

// providerInput encodes all but the messages, and those only where the host
// hasn't.
func providerInput(req *plugin.Request) (rope, error) {
	tools := req.Tools
	if tools == nil {
		tools = []pluginapi.ToolSpec{}
	}
	head, err := openObject(struct {
		Call      pluginapi.CallInfo   `json:"call"`
		Model     string               `json:"model"`
		System    string               `json:"system"`
		MaxTokens uint32               `json:"max_tokens"`
		Options   pluginapi.Raw        `json:"options,omitempty"`
		Tools     []pluginapi.ToolSpec `json:"tools"`
	}{req.Call, req.Model, req.System, req.MaxTokens, req.Options, tools}, "messages")
	if err != nil {
		return rope{}, err
	}
	messages := req.Encoded
	if messages == nil && len(req.Messages) > 0 {
		messages = make([][]byte, len(req.Messages))
		for i := range req.Messages {
			if messages[i], err = json.Marshal(&req.Messages[i]); err != nil {
				return rope{}, err
			}
		}
	}
	if len(messages) != len(req.Messages) {
		return rope{}, errors.New("provider request: Encoded is not in step with Messages")
	}
	head = append(head, '[')
	if req.EncodedBytes > 0 && len(req.Encoded) > 0 {
		return ropeOf(head, messages, []byte("]}"), req.EncodedBytes), nil
	}
	return newRope(head, messages, []byte("]}")), nil
}

// answer puts a provider's chunks together.
type answer struct {
	emit            func(pluginapi.Chunk) error
	text, reasoning strings.Builder
	calls           []pluginapi.ToolCall
	usage           *pluginapi.Usage
	finish          pluginapi.Finish // "": no result chunk yet
}

// lines takes one or more lines; the last one may lack its end.
func (a *answer) lines(b []byte) error {
	for len(b) > 0 {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte{'\n'})
		if err := a.add(line); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) add(line []byte) error {
	var c pluginapi.Chunk
	if err := strictjson.Unmarshal(line, &c); err != nil {
		return malformed("chunk", err)
	}
	if a.finish != "" {
		return breachf(plugin.FaultMalformed, "a %s chunk after the result", c.Type)
	}
	if err := checkChunk(&c); err != nil {
		return err
	}
	switch c.Type {
	case pluginapi.ChunkText:
		a.text.WriteString(c.Text)
	case pluginapi.ChunkReasoning:
		a.reasoning.WriteString(c.Text)
	case pluginapi.ChunkToolCall:
		for _, have := range a.calls {
			if have.ID == c.ToolCall.ID {
				return breachf(plugin.FaultMalformed, "two tool calls have the id %q", have.ID)
			}
		}
		a.calls = append(a.calls, *c.ToolCall)
	case pluginapi.ChunkUsage:
		a.usage = c.Usage
	case pluginapi.ChunkResult:
		a.finish = c.Finish
	}
	return a.emit(c)
}

// checkChunk: a chunk has its type's field, and no other.
func checkChunk(c *pluginapi.Chunk) error {
	var text, call, usage, finish bool
	switch c.Type {
	case pluginapi.ChunkText, pluginapi.ChunkReasoning:
		text = true
	case pluginapi.ChunkToolCall:
		call = true
	case pluginapi.ChunkUsage:
		usage = true
	case pluginapi.ChunkResult:
		finish = true
	default:
		return breachf(plugin.FaultMalformed, "unknown chunk type %q", c.Type)
	}
	switch {
	case !text && c.Text != "", call != (c.ToolCall != nil), usage != (c.Usage != nil), finish != (c.Finish != ""):
		return breachf(plugin.FaultMalformed, "a %s chunk must have the field of its type and no other", c.Type)
	case finish && c.Finish != pluginapi.FinishStop && c.Finish != pluginapi.FinishToolCalls && c.Finish != pluginapi.FinishLength:
		return breachf(plugin.FaultMalformed, "unknown finish reason %q", c.Finish)
	case call && (c.ToolCall.ID == "" || c.ToolCall.Name == ""):
		return breachf(plugin.FaultMalformed, "a tool call needs an id and a name")
	case call && !bytes.HasPrefix(c.ToolCall.Arguments, []byte{'{'}):
		return breachf(plugin.FaultMalformed, "the arguments of tool call %q are not a JSON object", c.ToolCall.ID)
	}
	return nil
}

// whole is nil for an answer with its result chunk. A stream that ended early is
// the model's peer's doing more often than the plugin's, and worth another
// attempt, so it is a typed failure.
func (a *answer) whole() error {
	if a.finish == "" {
		return &pluginapi.Failure{Kind: pluginapi.FailProtocol, Message: "the answer ended without a result chunk"}
	}
	return nil
}

func (a *answer) result() *pluginapi.ProviderResult {
	return &pluginapi.ProviderResult{
		Message: pluginapi.Message{Role: pluginapi.RoleAssistant, Text: a.text.String(), Reasoning: a.reasoning.String(), ToolCalls: a.calls},
		Usage:   a.usage,
		Finish:  a.finish,
	}
}
