package host

import (
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/internal/jsonobject"
	"github.com/loophost/loophost/pluginapi"
)

// What a commit carries is encoded by hand, since encoding/json was about a fifth of
// what the loop took of a round's processor time. The bytes are those that it would
// write, so that a log looks the same whoever wrote it.

// appendEntry encodes e; message, not nil, is the JSON of its message.
func appendEntry(b []byte, e *Entry, message []byte) ([]byte, error) {
	o := jsonobject.Open(b)
	o.Text("type", string(e.Type))
	o.Time("time", e.Time)
	o.Text("execution_id", e.ExecutionID)
	o.Text("generation", e.Generation)
	o.NumberIf("iteration", uint64(e.Iteration))
	o.NumberIf("round", uint64(e.Round))
	switch {
	case e.Message == nil:
	case message != nil:
		o.Raw("message", message)
	default:
		o.Nest("message", func(b []byte) ([]byte, error) { return appendMessage(b, e.Message) })
	}
	if e.Hook != nil {
		o.Nest("hook", func(b []byte) ([]byte, error) { return appendRecord(b, e.Hook) })
	}
	if e.Checkpoint != nil {
		o.Nest("checkpoint", func(b []byte) ([]byte, error) { return appendCheckpoint(b, e.Checkpoint) })
	}
	if e.KV != nil {
		o.Other("kv", e.KV)
	}
	if e.Started != nil {
		o.Other("started", e.Started)
	}
	if e.Forked != nil {
		o.Other("forked", e.Forked)
	}
	return o.Close()
}

// encodeMessage is appendMessage with room for what most messages need.
func encodeMessage(m *pluginapi.Message) ([]byte, error) {
	const names = 96 // of members, roles and origins
	size := names + len(m.Text) + len(m.Reasoning)
	if m.Result != nil {
		size += names + len(m.Result.Text)
	}
	return appendMessage(make([]byte, 0, size), m)
}

func appendMessage(b []byte, m *pluginapi.Message) ([]byte, error) {
	o := jsonobject.Open(b)
	o.Text("role", string(m.Role))
	o.TextIf("text", m.Text)
	o.TextIf("origin", m.Origin)
	o.TextIf("reasoning", m.Reasoning)
	if len(m.ToolCalls) > 0 {
		o.Other("tool_calls", m.ToolCalls)
	}
	if r := m.Result; r != nil {
		o.Nest("result", func(b []byte) ([]byte, error) {
			o := jsonobject.Open(b)
			o.Text("call_id", r.CallID)
			o.Text("name", r.Name)
			o.Text("status", string(r.Status))
			o.Text("text", r.Text)
			return o.Close()
		})
	}
	return o.Close()
}

func appendRecord(b []byte, r *plugin.Record) ([]byte, error) {
	o := jsonobject.Open(b)
	o.Text("point", string(r.Point))
	o.Text("plugin", r.Plugin)
	o.Text("digest", r.Digest)
	o.Text("input_sha256", r.InputSHA256)
	o.Text("action", string(r.Action))
	o.TextIf("reason", r.Reason)
	o.TextIf("code", r.Code)
	o.TextIf("fault", r.Fault)
	o.Signed("duration_us", r.DurationUS)
	o.Signed("bytes_in", r.BytesIn)
	o.Signed("bytes_out", r.BytesOut)
	o.Signed("peak_memory", r.PeakMemory)
	if len(r.Grants) > 0 {
		o.Other("grants", r.Grants)
	}
	return o.Close()
}

func appendCheckpoint(b []byte, c *CheckpointInfo) ([]byte, error) {
	o := jsonobject.Open(b)
	o.Text("name", c.Name)
	o.Number("loop_revision", c.LoopRevision)
	o.Text("status", string(c.Status))
	o.TextIf("reason_code", string(c.ReasonCode))
	o.Text("runtime_status", string(c.RuntimeStatus))
	o.Number("iterations_started", uint64(c.IterationsStarted))
	o.Number("iterations_completed", uint64(c.IterationsCompleted))
	o.Number("rounds_started", uint64(c.RoundsStarted))
	return o.Close()
}

func appendHead(b []byte, h *Head) ([]byte, error) {
	o := jsonobject.Open(b)
	o.Signed("schema", int64(h.Schema))
	o.Time("created", h.Created)
	if h.Loop == nil {
		o.Raw("loop", null)
	} else {
		o.Nest("loop", func(b []byte) ([]byte, error) { return appendState(b, h.Loop) })
	}
	o.Nest("runtime", func(b []byte) ([]byte, error) {
		o := jsonobject.Open(b)
		o.Text("status", string(h.Runtime.Status))
		o.Text("execution_id", h.Runtime.ExecutionID)
		return o.Close()
	})
	if h.Run == nil {
		o.Raw("run", null)
	} else {
		o.Nest("run", func(b []byte) ([]byte, error) { return appendRun(b, h.Run) })
	}
	if len(h.Once) > 0 {
		o.Other("once", h.Once)
	}
	if h.Forked != nil {
		o.Other("forked", h.Forked)
	}
	if h.Child != nil {
		o.Other("child", h.Child)
	}
	return o.Close()
}

var null = []byte("null")

func appendState(b []byte, s *loop.State) ([]byte, error) {
	o := jsonobject.Open(b)
	o.Number("schema_version", uint64(s.SchemaVersion))
	o.Text("generation", s.Generation)
	o.Number("revision", s.Revision)
	o.Text("owner_execution_id", s.OwnerExecutionID)
	o.Text("objective", s.Objective)
	o.Number("max_iterations", uint64(s.MaxIterations))
	o.Number("max_total_rounds", uint64(s.MaxTotalRounds))
	o.Number("iterations_started", uint64(s.IterationsStarted))
	o.Number("iterations_completed", uint64(s.IterationsCompleted))
	o.Number("rounds_started", uint64(s.RoundsStarted))
	o.Text("status", string(s.Status))
	o.Text("reason_code", string(s.ReasonCode))
	o.Text("reason", s.Reason)
	return o.Close()
}

func appendRun(b []byte, r *RunInfo) ([]byte, error) {
	o := jsonobject.Open(b)
	o.Text("provider", r.Provider)
	o.Text("provider_digest", r.ProviderDigest)
	o.Text("model", r.Model)
	o.Bool("demo", r.Demo)
	o.TextIf("once_key", r.OnceKey)
	o.Time("started", r.Started)
	if r.Usage == nil {
		o.Raw("usage", null)
	} else {
		o.Other("usage", r.Usage)
	}
	o.Number("final_seq", r.FinalSeq)
	return o.Close()
}
