package wasm

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
	stats, err := h.p.call(ctx, &order{
		op: pluginapi.OpHook, input: hookInput(in), limit: h.p.limits.HookTimeout, session: s,
		take: func(output []byte) error { return decode(output, &d, "decision") },
	})
	if err != nil {
		return pluginapi.Decision{}, stats, err
	}
	return d, stats, nil
}

// hookInput encodes all but the document, which is JSON already. It is written by
// hand since it is a good part of a hook call's cost.
func hookInput(in *pluginapi.HookInput) rope {
	b := make([]byte, 0, 512)
	b = appendString(append(b, `{"point":`...), string(in.Point))
	s := &in.Session
	b = appendString(append(b, `,"session":{"id":`...), s.ID)
	b = appendString(append(b, `,"execution_id":`...), s.ExecutionID)
	b = appendString(append(b, `,"generation":`...), s.Generation)
	b = strconv.AppendUint(append(b, `,"revision":`...), s.Revision, 10)
	l := &in.Loop
	b = appendString(append(b, `},"loop":{"status":`...), l.Status)
	for _, n := range [...]struct {
		name  string
		value uint32
	}{
		{`,"max_iterations":`, l.MaxIterations},
		{`,"max_total_rounds":`, l.MaxTotalRounds},
		{`,"iterations_started":`, l.IterationsStarted},
		{`,"iterations_completed":`, l.IterationsCompleted},
		{`,"rounds_started":`, l.RoundsStarted},
	} {
		b = strconv.AppendUint(append(b, n.name...), uint64(n.value), 10)
	}
	b = append(b, `},"document":`...)
	if len(in.Document) == 0 {
		return newRope(append(b, "null}"...), nil, nil)
	}
	return newRope(b, [][]byte{in.Document}, closing)
}

var closing = []byte{'}'}

// appendString appends s as JSON; what isn't UTF-8 is replaced.
func appendString(b []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(b, s)
	if err != nil { // invalid UTF-8, the only possible one
		quoted, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\ufffd"))
	}
	return quoted
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
