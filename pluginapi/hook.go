package pluginapi

// HookPoint is a place in the loop where hooks run.
type HookPoint string

// The hook points, in the order of a run.
const (
	SessionStart     HookPoint = "session_start"
	BeforePrompt     HookPoint = "before_prompt"
	BeforeRound      HookPoint = "before_round"
	BeforeProvider   HookPoint = "before_provider"
	AfterProvider    HookPoint = "after_provider"
	BeforeTool       HookPoint = "before_tool"
	AfterTool        HookPoint = "after_tool"
	BeforeCompaction HookPoint = "before_compaction"
	AfterCompaction  HookPoint = "after_compaction"
	AfterRound       HookPoint = "after_round"
	BeforeFinalize   HookPoint = "before_finalize"
	SessionEnd       HookPoint = "session_end"
	Notification     HookPoint = "notification"
)

// HookPoints lists all points, in the order of a run.
func HookPoints() []HookPoint {
	return []HookPoint{
		SessionStart, BeforePrompt, BeforeRound, BeforeProvider, AfterProvider, BeforeTool, AfterTool,
		BeforeCompaction, AfterCompaction, AfterRound, BeforeFinalize, SessionEnd, Notification,
	}
}

// aliases are the names that hooks of other agents use.
var aliases = map[string]HookPoint{
	"PreToolUse": BeforeTool, "PostToolUse": AfterTool, "UserPromptSubmit": BeforePrompt, "Stop": BeforeFinalize,
	"SessionStart": SessionStart, "SessionEnd": SessionEnd, "PreCompact": BeforeCompaction, "Notification": Notification,
}

// ParseHookPoint reads a point's name or one of its known aliases.
func ParseHookPoint(name string) (HookPoint, bool) {
	if p, ok := aliases[name]; ok {
		return p, true
	}
	for _, p := range HookPoints() {
		if string(p) == name {
			return p, true
		}
	}
	return "", false
}

// Action is what a hook decides.
type Action string

// The actions.
const (
	Continue Action = "continue" // no opinion
	Allow    Action = "allow"    // fine, explicitly
	Deny     Action = "deny"     // not this
	Ask      Action = "ask"      // a person decides; with nobody to ask, a deny that says so
	Mutate   Action = "mutate"   // use Document instead
	Inject   Action = "inject"   // add Text to the conversation
	Stop     Action = "stop"     // raise stop: admit nothing more
	Abort    Action = "abort"    // fail the run
)

// Decision is a hook's answer.
type Decision struct {
	Action Action `json:"action"`
	// Reason is for people and, with deny, for the model; at most 4,096 bytes. Required with deny, ask, stop, abort.
	Reason string `json:"reason,omitempty"`
	// Code refines a stop: "" or CodeNoProgress.
	Code string `json:"code,omitempty"`
	// Document is the rewritten document of the point, with mutate only.
	Document Raw `json:"document,omitempty"`
	// Text is what inject adds, as a user message.
	Text string `json:"text,omitempty"`
}

// CodeNoProgress is the reason code of a stop because nothing changes any more.
const CodeNoProgress = "no_progress"

// accepts is the decision table: which actions make sense at a point. Observer points are not listed.
var accepts = map[HookPoint][]Action{
	SessionStart:     {Continue, Inject, Stop, Abort},
	BeforePrompt:     {Continue, Allow, Deny, Mutate, Inject, Stop, Abort},
	BeforeRound:      {Continue, Inject, Stop, Abort},
	BeforeProvider:   {Continue, Allow, Deny, Mutate, Inject, Stop, Abort},
	AfterProvider:    {Continue, Mutate, Inject, Stop, Abort},
	BeforeTool:       {Continue, Allow, Deny, Ask, Mutate, Inject, Stop, Abort},
	AfterTool:        {Continue, Mutate, Inject, Stop, Abort},
	BeforeCompaction: {Continue, Inject, Stop, Abort},
	AfterRound:       {Continue, Inject, Stop, Abort},
	BeforeFinalize:   {Continue, Allow, Deny, Stop, Abort},
}

// Accepts reports whether point p accepts action a; any other answer is a fault
// of the hook. An observer point accepts only continue, and ignores it.
func (p HookPoint) Accepts(a Action) bool {
	if p.Observer() {
		return a == Continue
	}
	for _, x := range accepts[p] {
		if x == a {
			return true
		}
	}
	return false
}

// Observer reports whether p only watches: all hooks run, decisions and faults change nothing.
func (p HookPoint) Observer() bool {
	return p == SessionEnd || p == Notification || p == AfterCompaction
}

// MayMutate reports whether the point has a document that a hook can rewrite.
func (p HookPoint) MayMutate() bool { return p.Accepts(Mutate) }

// EndsChain reports whether action a keeps the later hooks of the point from running.
func (a Action) EndsChain() bool { return a == Abort || a == Deny || a == Ask }

// DefaultOnError is what a fault does where the manifest does not say: a hook
// that may mutate and any before_finalize hook aborts; other gates deny; the rest
// continue with a recorded warning (allow).
func DefaultOnError(p HookPoint, mutates bool) OnError {
	switch {
	case p.Observer():
		return OnErrorAllow
	case mutates, p == BeforeFinalize:
		return OnErrorAbort
	case p == BeforeTool, p == BeforePrompt, p == BeforeProvider:
		return OnErrorDeny
	}
	return OnErrorAllow
}

// HookInput is what a hook is called with.
type HookInput struct {
	Point   HookPoint   `json:"point"`
	Session SessionInfo `json:"session"`
	Loop    LoopInfo    `json:"loop"`
	// Document is the point's own: PromptDoc, ProviderRequest, AnswerDoc, ToolCall,
	// ToolResultDoc, RoundDoc, RoundEndDoc, FinalizeDoc, StartDoc, EndDoc or NotificationDoc.
	Document Raw `json:"document"`
}

// SessionInfo names the session and the run.
type SessionInfo struct {
	ID          string `json:"id"`
	ExecutionID string `json:"execution_id"`
	Generation  string `json:"generation"`
	Revision    uint64 `json:"revision"` // of the record, as last acknowledged
}

// LoopInfo is the loop's state as the host has it in memory.
type LoopInfo struct {
	Status              string `json:"status"`
	MaxIterations       uint32 `json:"max_iterations"`
	MaxTotalRounds      uint32 `json:"max_total_rounds"`
	IterationsStarted   uint32 `json:"iterations_started"`
	IterationsCompleted uint32 `json:"iterations_completed"`
	RoundsStarted       uint32 `json:"rounds_started"`
}

// StartDoc is the document of session_start.
type StartDoc struct {
	Objective string `json:"objective"`
	Messages  uint64 `json:"messages"` // already in the session
}

// PromptDoc is the document of before_prompt.
type PromptDoc struct {
	Text string `json:"text"`
}

// RoundDoc is the document of before_round: what would be admitted.
type RoundDoc struct {
	Iteration uint32 `json:"iteration"` // from 1
	Round     uint32 `json:"round"`     // of the loop, from 1
}

// AnswerDoc is the document of after_provider.
type AnswerDoc struct {
	Message Message `json:"message"`
	Usage   *Usage  `json:"usage"`
}

// ToolResultDoc is the document of after_tool. A mutate may change Result only.
type ToolResultDoc struct {
	Call   ToolCall   `json:"call"`
	Result ToolResult `json:"result"`
}

// RoundEndDoc is the document of after_round.
type RoundEndDoc struct {
	Iteration uint32       `json:"iteration"`
	Round     uint32       `json:"round"`
	Complete  bool         `json:"complete"` // the answer had no tool calls: the iteration is complete
	Message   Message      `json:"message"`
	Results   []ToolResult `json:"results"`
}

// FinalizeDoc is the document of before_finalize.
type FinalizeDoc struct {
	FinalText string `json:"final_text"`
	Denies    uint32 `json:"denies"` // so far, in a row
}

// EndDoc is the document of session_end.
type EndDoc struct {
	Status     string `json:"status"`
	ReasonCode string `json:"reason_code"`
	Reason     string `json:"reason"`
}

// NotificationDoc is the document of notification.
type NotificationDoc struct {
	Kind string `json:"kind"` // "ask", "retry", "fault", …
	Text string `json:"text"`
}
