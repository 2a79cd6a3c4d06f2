package main

import (
	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// document is the document of the hook's point without secrets.
func (x *scrubber) document(c *guest.HookCall) ([]byte, error) {
	switch c.Point() {
	case pluginapi.BeforePrompt:
		d, err := c.Prompt()
		d.Text = x.text(d.Text)
		return wire.AppendPromptDoc(nil, &d), err
	case pluginapi.BeforeProvider:
		d, err := c.Request()
		d.System = x.text(d.System)
		for i := range d.Messages {
			x.message(&d.Messages[i])
		}
		return wire.AppendProviderRequest(nil, &d), err
	case pluginapi.AfterProvider:
		d, err := c.Answer()
		x.message(&d.Message)
		return wire.AppendAnswerDoc(nil, &d), err
	case pluginapi.AfterTool:
		d, err := c.ToolResult()
		d.Result.Text = x.text(d.Result.Text)
		return wire.AppendToolResultDoc(nil, &d), err
	}
	return nil, &pluginapi.Failure{Kind: pluginapi.FailInvalidRequest, Message: "redact has nothing to do at " + string(c.Point())}
}

func (x *scrubber) message(m *pluginapi.Message) {
	m.Text = x.text(m.Text)
	m.Reasoning = x.text(m.Reasoning)
	for i := range m.ToolCalls {
		m.ToolCalls[i].Arguments = x.json(m.ToolCalls[i].Arguments)
	}
	if m.Result != nil {
		m.Result.Text = x.text(m.Result.Text)
	}
}

// json takes secrets out of the strings of a JSON value; names of members stay.
// The value was read as part of a document, so it is well formed.
func (x *scrubber) json(raw pluginapi.Raw) pluginapi.Raw {
	if len(raw) == 0 {
		return raw
	}
	return x.value(nil, wire.NewReader(string(raw)))
}

func (x *scrubber) value(dst []byte, r *wire.Reader) []byte {
	switch r.Kind() {
	case wire.KindText:
		return wire.AppendText(dst, x.text(r.Text()))
	case wire.KindObject:
		dst = append(dst, '{')
		r.Object()
		comma := false
		for name, ok := r.Key(); ok; name, ok = r.Key() {
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			dst = append(wire.AppendText(dst, name), ':')
			dst = x.value(dst, r)
		}
		return append(dst, '}')
	case wire.KindArray:
		dst = append(dst, '[')
		r.Array()
		comma := false
		for r.Elem() {
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			dst = x.value(dst, r)
		}
		return append(dst, ']')
	}
	return append(dst, r.Raw()...)
}
