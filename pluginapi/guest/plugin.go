package guest

import "github.com/loophost/loophost/pluginapi"

// Plugin is what a module serves. A nil function answers that the operation is
// unsupported.
type Plugin struct {
	Hook     func(*HookCall) (pluginapi.Decision, error)
	Provider func(*ProviderCall) error
	Tool     func(*ToolCall) (pluginapi.ToolOutput, error)
}

// Host is what a guest can ask for during a call: the imports of the ABI, or
// guesttest.Host. Its methods are those of pluginapi's import names.
type Host interface {
	// InputRead copies the input from off into p and gives the number of bytes copied.
	InputRead(p []byte, off int) int
	// OutputWrite appends to the call's output.
	OutputWrite(p []byte)
	// ErrorWrite appends to the call's Failure document.
	ErrorWrite(p []byte)
	// Log writes one line at a level of pluginapi.
	Log(level int32, p []byte)
	// HostCall asks the host; a negative answer is a pluginapi.HostStatus, any other the reply's length.
	HostCall(op pluginapi.HostOp, request []byte) int32
	// ReplyRead copies the reply of the last HostCall from off into p and gives the number of bytes copied.
	ReplyRead(p []byte, off int) int
	// DeadlineMS is the number of milliseconds left, or -1.
	DeadlineMS() int32
}
