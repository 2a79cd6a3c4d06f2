package guesttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
)

// ErrUnsupported: the plugin has no function for the operation.
var ErrUnsupported = errors.New("the plugin does not support the operation")

// Hook runs p's hook at a point with its document, which is encoded as JSON,
// and checks that the point accepts the decision. A Failure of the plugin is
// the error, as *pluginapi.Failure.
func (h *Host) Hook(p guest.Plugin, point pluginapi.HookPoint, document any) (pluginapi.Decision, error) {
	doc, err := json.Marshal(document)
	if err != nil {
		return pluginapi.Decision{}, fmt.Errorf("guesttest: the document: %w", err)
	}
	in := pluginapi.HookInput{
		Point: point,
		Session: pluginapi.SessionInfo{
			ID: "0190a000-0000-7000-8000-000000000001", ExecutionID: "0190a000-0000-7000-8000-000000000002",
			Generation: "0190a000-0000-7000-8000-000000000003", Revision: 7,
		},
		Loop:     pluginapi.LoopInfo{Status: "running", MaxIterations: 2, MaxTotalRounds: 20, IterationsStarted: 1, RoundsStarted: 1},
		Document: doc,
	}
	var d pluginapi.Decision
	if err := h.call(p, pluginapi.OpHook, in, &d); err != nil {
		return pluginapi.Decision{}, err
	}
	return d, d.Validate(point, true)
}

// Tool runs p's tool name with arguments, a JSON text; "" is none.
func (h *Host) Tool(p guest.Plugin, name, arguments string) (pluginapi.ToolOutput, error) {
	in := pluginapi.ToolInput{
		Session: pluginapi.SessionInfo{ID: "0190a000-0000-7000-8000-000000000001"},
		Call:    pluginapi.ToolCall{ID: "call-1", Name: name},
	}
	if arguments != "" {
		in.Call.Arguments = pluginapi.Raw(arguments)
	}
	var o pluginapi.ToolOutput
	err := h.call(p, pluginapi.OpTool, in, &o)
	return o, err
}

// Provider runs p's provider and gives the chunks it streamed, also those before a Failure.
func (h *Host) Provider(p guest.Plugin, req pluginapi.ProviderRequest) ([]pluginapi.Chunk, error) {
	err := h.call(p, pluginapi.OpProvider, req, nil)
	var chunks []pluginapi.Chunk
	for line := range bytes.Lines(h.output) {
		var c pluginapi.Chunk
		if derr := decode(line, &c); derr != nil {
			return chunks, errors.Join(err, derr)
		}
		chunks = append(chunks, c)
	}
	return chunks, err
}

// call makes one call and decodes its answer into out, unless that is nil.
func (h *Host) call(p guest.Plugin, op pluginapi.Op, in, out any) error {
	input, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("guesttest: the input: %w", err)
	}
	h.begin(input)
	switch status := guest.NewRunner(p, h).Call(op, len(input)); status {
	case pluginapi.StatusOK:
		h.KV = h.staged
		if out == nil {
			return nil
		}
		return decode(h.output, out)
	case pluginapi.StatusError:
		var f pluginapi.Failure
		if err := decode(h.failed, &f); err != nil {
			return err
		}
		return &f
	case pluginapi.StatusUnsupported:
		return ErrUnsupported
	default:
		return fmt.Errorf("guesttest: unknown status %d", status)
	}
}

// decode reads exactly one document with no unknown fields.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("guesttest: the plugin's answer %q: %w", b, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("guesttest: the plugin's answer %q: bytes after the document", b)
	}
	return nil
}
