package wire

import "github.com/loophost/loophost/pluginapi"

var toolInputNames = []string{"session", "call"}

// ToolInput takes a pluginapi.ToolInput.
func (r *Reader) ToolInput() (v pluginapi.ToolInput) {
	f := r.Fields(toolInputNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Session = r.SessionInfo()
		case 1:
			v.Call = r.ToolCall()
		}
	}
	return v
}
