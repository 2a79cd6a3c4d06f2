package wire

import "github.com/loophost/loophost/pluginapi"

var (
	hookNames         = []string{"point", "session", "loop", "document"}
	startNames        = []string{"objective", "messages"}
	promptNames       = []string{"text"}
	roundNames        = []string{"iteration", "round"}
	answerNames       = []string{"message", "usage"}
	toolResultNames   = []string{"call", "result"}
	roundEndNames     = []string{"iteration", "round", "complete", "message", "results"}
	finalizeNames     = []string{"final_text", "denies"}
	endNames          = []string{"status", "reason_code", "reason"}
	notificationNames = []string{"kind", "text"}

	points = pluginapi.HookPoints()
)

// HookInput is a pluginapi.HookInput whose parts are still text, so that a hook
// pays only for those it looks at.
type HookInput struct {
	Point    pluginapi.HookPoint
	Session  string
	Loop     string
	Document string
}

// HookWalk reads a hook's input from the front, only as far as it is asked:
// which point it is takes the first few bytes.
type HookWalk struct {
	r *Reader
	f Fields
	v HookInput
}

// The places of hookNames.
const (
	hookPoint = iota
	hookSession
	hookLoop
	hookDocument
)

// Reset makes w the walk of a hook's input, which r is at the start of. Its parts are
// checked for syntax only, but for what Decode reads.
func (w *HookWalk) Reset(r *Reader) { *w = HookWalk{r: r, f: r.Fields(hookNames)} }

// Point reads until the point is known. Look at Err afterwards.
func (w *HookWalk) Point() pluginapi.HookPoint {
	for w.v.Point == "" && w.field() {
	}
	if w.v.Point == "" {
		w.r.Fail("missing field point")
	}
	return w.v.Point
}

// All reads the whole input.
func (w *HookWalk) All() *HookInput {
	w.Point()
	for w.field() {
	}
	return &w.v
}

// Err is the error of what was read so far.
func (w *HookWalk) Err() error { return w.r.Err() }

// End checks that nothing but white space follows what was read.
func (w *HookWalk) End() error { return w.r.End() }

// Decode reads the whole input, and the document in it by read, where it stands: what
// it decodes are pieces of the reader's text. false: the document was passed already;
// All has it. Look at End afterwards.
func (w *HookWalk) Decode(read func(*Reader)) bool {
	w.Point()
	if w.f.Has(hookDocument) {
		return false
	}
	for {
		i, ok := w.f.Next()
		if !ok {
			w.r.Fail("missing field document")
			return true
		}
		if i == hookDocument {
			break
		}
		if !w.take(i) {
			return true
		}
	}
	w.r.peek()
	start := w.r.pos
	read(w.r)
	if w.r.err == nil {
		w.v.Document = w.r.s[start:w.r.pos]
	}
	w.All()
	return true
}

func (w *HookWalk) field() bool {
	i, ok := w.f.Next()
	return ok && w.take(i)
}

func (w *HookWalk) take(i int) bool {
	switch i {
	case hookPoint:
		w.v.Point = point(w.r.Text())
	case hookSession:
		w.v.Session = w.r.Raw()
	case hookLoop:
		w.v.Loop = w.r.Raw()
	case hookDocument:
		w.v.Document = w.r.Raw()
	}
	return w.r.Err() == nil
}

// point gives a point or alias the point's constant, which outlives the
// reader's text; a copy of any other text.
func point(s string) pluginapi.HookPoint {
	for _, p := range points {
		if string(p) == s {
			return p
		}
	}
	if p, ok := pluginapi.ParseHookPoint(s); ok {
		return p
	}
	return pluginapi.HookPoint(append([]byte(nil), s...))
}

// StartDoc takes a pluginapi.StartDoc.
func (r *Reader) StartDoc() (v pluginapi.StartDoc) {
	f := r.Fields(startNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Objective = r.Text()
		case 1:
			v.Messages = r.Uint64()
		}
	}
	return v
}

// PromptDoc takes a pluginapi.PromptDoc.
func (r *Reader) PromptDoc() (v pluginapi.PromptDoc) {
	f := r.Fields(promptNames)
	for _, ok := f.Next(); ok; _, ok = f.Next() {
		v.Text = r.Text()
	}
	return v
}

// RoundDoc takes a pluginapi.RoundDoc.
func (r *Reader) RoundDoc() (v pluginapi.RoundDoc) {
	f := r.Fields(roundNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Iteration = r.Uint32()
		case 1:
			v.Round = r.Uint32()
		}
	}
	return v
}

// AnswerDoc takes a pluginapi.AnswerDoc.
func (r *Reader) AnswerDoc() (v pluginapi.AnswerDoc) {
	f := r.Fields(answerNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Message = r.Message()
		case 1:
			v.Usage = optional(r, (*Reader).Usage)
		}
	}
	return v
}

// ToolResultDoc takes a pluginapi.ToolResultDoc.
func (r *Reader) ToolResultDoc() (v pluginapi.ToolResultDoc) {
	f := r.Fields(toolResultNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Call = r.ToolCall()
		case 1:
			v.Result = r.ToolResult()
		}
	}
	return v
}

// RoundEndDoc takes a pluginapi.RoundEndDoc.
func (r *Reader) RoundEndDoc() (v pluginapi.RoundEndDoc) {
	f := r.Fields(roundEndNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Iteration = r.Uint32()
		case 1:
			v.Round = r.Uint32()
		case 2:
			v.Complete = r.Bool()
		case 3:
			v.Message = r.Message()
		case 4:
			v.Results = list(r, (*Reader).ToolResult)
		}
	}
	return v
}

// FinalizeDoc takes a pluginapi.FinalizeDoc.
func (r *Reader) FinalizeDoc() (v pluginapi.FinalizeDoc) {
	f := r.Fields(finalizeNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.FinalText = r.Text()
		case 1:
			v.Denies = r.Uint32()
		}
	}
	return v
}

// EndDoc takes a pluginapi.EndDoc.
func (r *Reader) EndDoc() (v pluginapi.EndDoc) {
	f := r.Fields(endNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Status = r.Text()
		case 1:
			v.ReasonCode = r.Text()
		case 2:
			v.Reason = r.Text()
		}
	}
	return v
}

// NotificationDoc takes a pluginapi.NotificationDoc.
func (r *Reader) NotificationDoc() (v pluginapi.NotificationDoc) {
	f := r.Fields(notificationNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Kind = r.Text()
		case 1:
			v.Text = r.Text()
		}
	}
	return v
}
