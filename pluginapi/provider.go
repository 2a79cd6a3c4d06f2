package pluginapi

// Role is who a message is from.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of the conversation. The fields that a role does not
// use are zero and absent from its JSON.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text,omitempty"`
	// Origin names who wrote a user message that isn't the objective: "hook:NAME", "finalize".
	Origin    string      `json:"origin,omitempty"`
	Reasoning string      `json:"reasoning,omitempty"`  // assistant
	ToolCalls []ToolCall  `json:"tool_calls,omitempty"` // assistant
	Result    *ToolResult `json:"result,omitempty"`     // tool
}

// ToolCall is a model's wish to run a tool.
type ToolCall struct {
	ID   string `json:"id"` // unique within the session
	Name string `json:"name"`
	// Arguments is a JSON object. A provider that can't parse what the model wrote fails with "protocol".
	Arguments Raw `json:"arguments"`
}

// ResultStatus says what became of a tool call (L-9).
type ResultStatus string

// The result statuses.
const (
	ResultOK         ResultStatus = "ok"
	ResultError      ResultStatus = "error"       // it ran and failed, was denied, or does not exist
	ResultNotStarted ResultStatus = "not_started" // it never ran
	ResultUnknown    ResultStatus = "unknown"     // it may have had effects; it is never repeated (L-26)
)

// ToolResult answers one tool call.
type ToolResult struct {
	CallID string       `json:"call_id"`
	Name   string       `json:"name"`
	Status ResultStatus `json:"status"`
	Text   string       `json:"text"`
}

// Usage counts tokens. An absent count is unknown, never zero.
type Usage struct {
	InputTokens  *uint64 `json:"input_tokens"`
	OutputTokens *uint64 `json:"output_tokens"`
}

// ProviderRequest asks a provider for one answer. Messages is the last field of
// its JSON, so that a guest that needs only the rest can stop reading there.
type ProviderRequest struct {
	Call      CallInfo   `json:"call"`
	Model     string     `json:"model"`
	System    string     `json:"system"`
	MaxTokens uint32     `json:"max_tokens"` // of the answer; 0: the provider's own
	Options   Raw        `json:"options,omitempty"`
	Tools     []ToolSpec `json:"tools"`
	Messages  []Message  `json:"messages"`
}

// CallInfo numbers a provider call.
type CallInfo struct {
	Ordinal   uint64 `json:"ordinal"` // of this execution, from 1; a retry is a call of its own
	Iteration uint32 `json:"iteration"`
	Round     uint32 `json:"round"`
	Attempt   uint32 `json:"attempt"` // of this round, from 1
}

// ChunkType is what a Chunk carries.
type ChunkType string

// The chunk types.
const (
	ChunkText      ChunkType = "text"      // Text: a piece of the answer
	ChunkReasoning ChunkType = "reasoning" // Text: a piece of the reasoning
	ChunkToolCall  ChunkType = "tool_call" // ToolCall: one whole call
	ChunkUsage     ChunkType = "usage"     // Usage: so far; the last one counts
	ChunkResult    ChunkType = "result"    // Finish: the end; nothing comes after it
)

// Chunk is one piece of a provider's streamed answer; in its JSON form, one
// line. A stream without a final result chunk is not complete.
type Chunk struct {
	Type     ChunkType `json:"type"`
	Text     string    `json:"text,omitempty"`
	ToolCall *ToolCall `json:"tool_call,omitempty"`
	Usage    *Usage    `json:"usage,omitempty"`
	Finish   Finish    `json:"finish,omitempty"`
}

// Finish says why a provider ended its answer.
type Finish string

// The finish reasons.
const (
	FinishStop      Finish = "stop"
	FinishToolCalls Finish = "tool_calls"
	FinishLength    Finish = "length" // cut by the length limit: never a completed iteration
)

// ProviderResult is a whole answer.
type ProviderResult struct {
	Message Message `json:"message"`
	Usage   *Usage  `json:"usage"` // nil: unknown
	Finish  Finish  `json:"finish"`
}
