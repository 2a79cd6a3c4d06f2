package pluginapi

// ToolInput is what a tool plugin is called with.
type ToolInput struct {
	Session SessionInfo `json:"session"`
	Call    ToolCall    `json:"call"`
}

// ToolOutput is a tool's answer. An error here is a result for the model, not
// a failure of the run.
type ToolOutput struct {
	Text    string `json:"text"`
	IsError bool   `json:"is_error,omitempty"`
}
