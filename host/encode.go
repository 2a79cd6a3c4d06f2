package host

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// What a commit carries is encoded by hand, since encoding/json was about a fifth of
// what the loop took of a round's processor time. The bytes are those that encoding/json would write, so
// that a log looks the same whoever wrote it; what is rare is left to it.

// object appends one JSON object, member by member. The zero value is not usable;
// openObject makes one.
type object struct {
	b   []byte
	err error // the first one
}

func openObject(b []byte) object { return object{b: append(b, '{')} }

func (o *object) close() ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	return append(o.b, '}'), nil
}

// name begins a member; names need no escapes.
func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *object) text(name, value string) {
	o.name(name)
	o.quote(value)
}

// textIf leaves an empty value out.
func (o *object) textIf(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

func (o *object) number(name string, value uint64) {
	o.name(name)
	o.b = strconv.AppendUint(o.b, value, 10)
}

// numberIf leaves a zero out.
func (o *object) numberIf(name string, value uint32) {
	if value != 0 {
		o.number(name, uint64(value))
	}
}

func (o *object) signed(name string, value int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, value, 10)
}

func (o *object) time(name string, t time.Time) {
	o.name(name)
	o.b = append(o.b, '"')
	b, err := t.AppendText(o.b)
	if err != nil {
		o.fail(err)
		return
	}
	o.b = append(b, '"')
}

// other leaves a value to encoding/json.
func (o *object) other(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		o.fail(err)
		return
	}
	o.raw(name, data)
}

func (o *object) raw(name string, data []byte) {
	o.name(name)
	o.b = append(o.b, data...)
}

// nest takes the result of an append function for a value.
func (o *object) nest(name string, value func([]byte) ([]byte, error)) {
	o.name(name)
	b, err := value(o.b)
	if err != nil {
		o.fail(err)
		return
	}
	o.b = b
}

func (o *object) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// quote appends a JSON string. One with anything to escape goes to encoding/json.
func (o *object) quote(s string) {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			data, err := json.Marshal(s)
			if err != nil {
				o.fail(err)
			}
			o.b = append(o.b, data...)
			return
		}
	}
	o.b = append(append(append(o.b, '"'), s...), '"')
}

// appendEntry encodes e; message, not nil, is the JSON of its message.
func appendEntry(b []byte, e *Entry, message []byte) ([]byte, error) {
	o := openObject(b)
	o.text("type", string(e.Type))
	o.time("time", e.Time)
	o.text("execution_id", e.ExecutionID)
	o.text("generation", e.Generation)
	o.numberIf("iteration", e.Iteration)
	o.numberIf("round", e.Round)
	switch {
	case e.Message == nil:
	case message != nil:
		o.raw("message", message)
	default:
		o.nest("message", func(b []byte) ([]byte, error) { return appendMessage(b, e.Message) })
	}
	if e.Hook != nil {
		o.nest("hook", func(b []byte) ([]byte, error) { return appendRecord(b, e.Hook) })
	}
	if e.Checkpoint != nil {
		o.nest("checkpoint", func(b []byte) ([]byte, error) { return appendCheckpoint(b, e.Checkpoint) })
	}
	if e.KV != nil {
		o.other("kv", e.KV)
	}
	if e.Started != nil {
		o.other("started", e.Started)
	}
	if e.Forked != nil {
		o.other("forked", e.Forked)
	}
	return o.close()
}

func appendMessage(b []byte, m *pluginapi.Message) ([]byte, error) {
	o := openObject(b)
	o.text("role", string(m.Role))
	o.textIf("text", m.Text)
	o.textIf("origin", m.Origin)
	o.textIf("reasoning", m.Reasoning)
	if len(m.ToolCalls) > 0 {
		o.other("tool_calls", m.ToolCalls)
	}
	if r := m.Result; r != nil {
		o.nest("result", func(b []byte) ([]byte, error) {
			o := openObject(b)
			o.text("call_id", r.CallID)
			o.text("name", r.Name)
			o.text("status", string(r.Status))
			o.text("text", r.Text)
			return o.close()
		})
	}
	return o.close()
}

func appendRecord(b []byte, r *plugin.Record) ([]byte, error) {
	o := openObject(b)
	o.text("point", string(r.Point))
	o.text("plugin", r.Plugin)
	o.text("digest", r.Digest)
	o.text("input_sha256", r.InputSHA256)
	o.text("action", string(r.Action))
	o.textIf("reason", r.Reason)
	o.textIf("code", r.Code)
	o.textIf("fault", r.Fault)
	o.signed("duration_us", r.DurationUS)
	o.signed("bytes_in", r.BytesIn)
	o.signed("bytes_out", r.BytesOut)
	o.signed("peak_memory", r.PeakMemory)
	if len(r.Grants) > 0 {
		o.other("grants", r.Grants)
	}
	return o.close()
}

func appendCheckpoint(b []byte, c *CheckpointInfo) ([]byte, error) {
	o := openObject(b)
	o.text("name", c.Name)
	o.number("loop_revision", c.LoopRevision)
	o.text("status", string(c.Status))
	o.textIf("reason_code", string(c.ReasonCode))
	o.text("runtime_status", string(c.RuntimeStatus))
	o.number("iterations_started", uint64(c.IterationsStarted))
	o.number("iterations_completed", uint64(c.IterationsCompleted))
	o.number("rounds_started", uint64(c.RoundsStarted))
	return o.close()
}

func appendHead(b []byte, h *Head) ([]byte, error) {
	o := openObject(b)
	o.signed("schema", int64(h.Schema))
	o.time("created", h.Created)
	if h.Loop == nil {
		o.raw("loop", null)
	} else {
		o.nest("loop", func(b []byte) ([]byte, error) { return appendState(b, h.Loop) })
	}
	o.nest("runtime", func(b []byte) ([]byte, error) {
		o := openObject(b)
		o.text("status", string(h.Runtime.Status))
		o.text("execution_id", h.Runtime.ExecutionID)
		return o.close()
	})
	if h.Run == nil {
		o.raw("run", null)
	} else {
		o.nest("run", func(b []byte) ([]byte, error) { return appendRun(b, h.Run) })
	}
	if len(h.Once) > 0 {
		o.other("once", h.Once)
	}
	if h.Forked != nil {
		o.other("forked", h.Forked)
	}
	return o.close()
}

var null = []byte("null")

func appendState(b []byte, s *loop.State) ([]byte, error) {
	o := openObject(b)
	o.number("schema_version", uint64(s.SchemaVersion))
	o.text("generation", s.Generation)
	o.number("revision", s.Revision)
	o.text("owner_execution_id", s.OwnerExecutionID)
	o.text("objective", s.Objective)
	o.number("max_iterations", uint64(s.MaxIterations))
	o.number("max_total_rounds", uint64(s.MaxTotalRounds))
	o.number("iterations_started", uint64(s.IterationsStarted))
	o.number("iterations_completed", uint64(s.IterationsCompleted))
	o.number("rounds_started", uint64(s.RoundsStarted))
	o.text("status", string(s.Status))
	o.text("reason_code", string(s.ReasonCode))
	o.text("reason", s.Reason)
	return o.close()
}

func appendRun(b []byte, r *RunInfo) ([]byte, error) {
	o := openObject(b)
	o.text("provider", r.Provider)
	o.text("provider_digest", r.ProviderDigest)
	o.text("model", r.Model)
	o.name("demo")
	o.b = strconv.AppendBool(o.b, r.Demo)
	o.textIf("once_key", r.OnceKey)
	o.time("started", r.Started)
	if r.Usage == nil {
		o.raw("usage", null)
	} else {
		o.other("usage", r.Usage)
	}
	o.number("final_seq", r.FinalSeq)
	return o.close()
}
