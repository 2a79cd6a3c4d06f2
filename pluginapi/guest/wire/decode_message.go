package wire

import "github.com/loophost/loophost/pluginapi"

var (
	messageNames = []string{"role", "text", "origin", "reasoning", "tool_calls", "result"}
	callNames    = []string{"id", "name", "arguments"}
	resultNames  = []string{"call_id", "name", "status", "text"}
	usageNames   = []string{"input_tokens", "output_tokens"}
)

// Message takes a pluginapi.Message.
func (r *Reader) Message() (v pluginapi.Message) {
	f := r.Fields(messageNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Role = pluginapi.Role(r.Text())
		case 1:
			v.Text = r.Text()
		case 2:
			v.Origin = r.Text()
		case 3:
			v.Reasoning = r.Text()
		case 4:
			v.ToolCalls = list(r, (*Reader).ToolCall)
		case 5:
			v.Result = optional(r, (*Reader).ToolResult)
		}
	}
	return v
}

// ToolCall takes a pluginapi.ToolCall.
func (r *Reader) ToolCall() (v pluginapi.ToolCall) {
	f := r.Fields(callNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.ID = r.Text()
		case 1:
			v.Name = r.Text()
		case 2:
			v.Arguments = r.raw()
		}
	}
	return v
}

// ToolResult takes a pluginapi.ToolResult.
func (r *Reader) ToolResult() (v pluginapi.ToolResult) {
	f := r.Fields(resultNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.CallID = r.Text()
		case 1:
			v.Name = r.Text()
		case 2:
			v.Status = pluginapi.ResultStatus(r.Text())
		case 3:
			v.Text = r.Text()
		}
	}
	return v
}

// Usage takes a pluginapi.Usage.
func (r *Reader) Usage() (v pluginapi.Usage) {
	f := r.Fields(usageNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.InputTokens = optional(r, (*Reader).Uint64)
		case 1:
			v.OutputTokens = optional(r, (*Reader).Uint64)
		}
	}
	return v
}

// list takes an array, or a null for none.
func list[T any](r *Reader, elem func(*Reader) T) (vs []T) {
	if r.Null() || !r.Array() {
		return nil
	}
	vs = []T{}
	for r.Elem() {
		vs = append(vs, elem(r))
	}
	return vs
}

// optional takes a value, or a null for none.
func optional[T any](r *Reader, value func(*Reader) T) *T {
	if r.Null() {
		return nil
	}
	v := value(r)
	return &v
}
