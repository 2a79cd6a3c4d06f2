package wasm

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// tools is a plugin as plugin.Tool.
type tools struct{ p *Plugin }

// Info names the plugin.
func (t tools) Info() plugin.Info { return t.p.info }

// Specs are the manifest's tools.
func (t tools) Specs() []pluginapi.ToolSpec { return slices.Clone(t.p.manifest.Tools) }

// Call runs one tool.
func (t tools) Call(ctx context.Context, s plugin.Session, call pluginapi.ToolCall) (pluginapi.ToolOutput, plugin.CallStats, error) {
	var out pluginapi.ToolOutput
	doc, err := json.Marshal(pluginapi.ToolInput{Session: s.Info, Call: call})
	if err != nil {
		return out, plugin.CallStats{}, err
	}
	stats, err := t.p.call(ctx, &order{
		op: pluginapi.OpTool, input: newRope(doc, nil, nil), limit: t.p.limits.ToolTimeout, session: s,
		take: func(output []byte) error { return decode(output, &out, "tool output") },
	})
	if err != nil {
		return pluginapi.ToolOutput{}, stats, err
	}
	return out, stats, nil
}
