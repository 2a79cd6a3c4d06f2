package wire

import "github.com/loophost/loophost/pluginapi"

// The indexes of requestNames.
const (
	reqCall = iota
	reqModel
	reqSystem
	reqMaxTokens
	reqOptions
	reqTools
	reqMessages
)

var (
	requestNames  = []string{"call", "model", "system", "max_tokens", "options", "tools", "messages"}
	callInfoNames = []string{"ordinal", "iteration", "round", "attempt"}
	specNames     = []string{"name", "description", "input_schema", "read_only", "idempotent"}
)

// CallInfo takes a pluginapi.CallInfo.
func (r *Reader) CallInfo() (v pluginapi.CallInfo) {
	f := r.Fields(callInfoNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Ordinal = r.Uint64()
		case 1:
			v.Iteration = r.Uint32()
		case 2:
			v.Round = r.Uint32()
		case 3:
			v.Attempt = r.Uint32()
		}
	}
	return v
}

// ToolSpec takes a pluginapi.ToolSpec.
func (r *Reader) ToolSpec() (v pluginapi.ToolSpec) {
	f := r.Fields(specNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Name = r.Text()
		case 1:
			v.Description = r.Text()
		case 2:
			v.InputSchema = r.raw()
		case 3:
			v.ReadOnly = r.Bool()
		case 4:
			v.Idempotent = r.Bool()
		}
	}
	return v
}

// ProviderRequest takes a whole pluginapi.ProviderRequest. Messages must be its
// last field.
func (r *Reader) ProviderRequest() pluginapi.ProviderRequest {
	w := r.RequestWalk()
	v := w.All()
	return *v
}

// RequestWalk reads a provider request from the front, only as far as it is
// asked: Call usually needs the first hundred bytes, Head all but the messages.
type RequestWalk struct {
	r *Reader
	f Fields
	v pluginapi.ProviderRequest
	// atMessages: the walk has come to the messages, which are not read yet.
	atMessages bool
	done       bool
}

// RequestWalk starts to read a provider request.
func (r *Reader) RequestWalk() *RequestWalk {
	return &RequestWalk{r: r, f: r.Fields(requestNames)}
}

// Call reads until the call's numbers are known. Look at Err afterwards.
func (w *RequestWalk) Call() pluginapi.CallInfo {
	for !w.f.Has(reqCall) && w.field() {
	}
	return w.v.Call
}

// Head reads all but the messages; Messages of what it gives is nil.
func (w *RequestWalk) Head() *pluginapi.ProviderRequest {
	for w.field() {
	}
	return &w.v
}

// All reads the whole request and checks its end.
func (w *RequestWalk) All() *pluginapi.ProviderRequest {
	w.Head()
	if w.atMessages {
		w.v.Messages = list(w.r, (*Reader).Message)
		w.atMessages = false
		if _, more := w.f.Next(); more {
			w.r.Fail("a field after messages, which come last")
		}
		w.done = true
	}
	return &w.v
}

// Err is the error of what was read so far.
func (w *RequestWalk) Err() error { return w.r.Err() }

// field reads the next field that isn't messages; false when there is none.
func (w *RequestWalk) field() bool {
	if w.atMessages || w.done {
		return false
	}
	i, ok := w.f.Next()
	if !ok {
		w.done = true
		return false
	}
	switch i {
	case reqCall:
		w.v.Call = w.r.CallInfo()
	case reqModel:
		w.v.Model = w.r.Text()
	case reqSystem:
		w.v.System = w.r.Text()
	case reqMaxTokens:
		w.v.MaxTokens = w.r.Uint32()
	case reqOptions:
		w.v.Options = w.r.raw()
	case reqTools:
		w.v.Tools = list(w.r, (*Reader).ToolSpec)
	case reqMessages:
		w.atMessages = true
		return false
	}
	return w.r.Err() == nil
}

// End checks that the request is whole: nothing but white space follows what was read.
func (w *RequestWalk) End() error { return w.r.End() }
