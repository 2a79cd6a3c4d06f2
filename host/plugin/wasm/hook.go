package wasm

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

// hooks is a plugin as plugin.Hook.
type hooks struct{ p *Plugin }

// Info names the plugin.
func (h hooks) Info() plugin.Info { return h.p.info }

// Points are the manifest's subscriptions.
func (h hooks) Points() []pluginapi.HookDecl { return slices.Clone(h.p.manifest.Hooks) }

// Run asks for a decision. It decodes strictly and does not judge: whether the
// point accepts the decision is the chain's to say.
func (h hooks) Run(ctx context.Context, s plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, plugin.CallStats, error) {
	var d pluginapi.Decision
	input, err := hookInput(in)
	if err != nil {
		return d, plugin.CallStats{}, err
	}
	stats, err := h.p.call(ctx, &order{
		op: pluginapi.OpHook, input: input, limit: h.p.limits.HookTimeout, session: s,
		take: func(output []byte) error { return decode(output, &d, "decision") },
	})
	if err != nil {
		return pluginapi.Decision{}, stats, err
	}
	return d, stats, nil
}

// hookInput encodes all but the document, which is JSON already.
func hookInput(in *pluginapi.HookInput) (rope, error) {
	head, err := openObject(struct {
		Point   pluginapi.HookPoint   `json:"point"`
		Session pluginapi.SessionInfo `json:"session"`
		Loop    pluginapi.LoopInfo    `json:"loop"`
	}{in.Point, in.Session, in.Loop}, "document")
	if err != nil {
		return rope{}, err
	}
	document := []byte(in.Document)
	if len(document) == 0 {
		document = []byte("null")
	}
	return newRope(head, [][]byte{document}, []byte{'}'}), nil
}

// openObject is the JSON of v, an object with members, left open behind the name
// of one more member.
func openObject(v any, last string) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b[len(b)-1] = ','
	b = append(b, '"')
	b = append(b, last...)
	return append(b, '"', ':'), nil
}

func decode(output []byte, v any, what string) error {
	if err := strictjson.Unmarshal(output, v); err != nil {
		return malformed(what, err)
	}
	return nil
}
