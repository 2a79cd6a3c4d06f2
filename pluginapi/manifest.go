package pluginapi

// APIVersion is the version of the documents in this package.
const APIVersion = 1

// Kind is what a plugin can be; it may be several.
type Kind string

// The kinds.
const (
	KindHook     Kind = "hook"
	KindProvider Kind = "provider"
	KindTool     Kind = "tool"
)

// Capability is something beyond computing that a plugin asks for. It gets what
// its manifest requests and the operator grants.
type Capability string

// The capabilities.
const (
	CapKV        Capability = "kv"        // key-value entries, per plugin and session, durable with the session
	CapClock     Capability = "clock"     // real time and real sleep; otherwise a fixed clock, and sleep returns at once
	CapRandom    Capability = "random"    // real randomness; otherwise a fixed seed
	CapWorkspace Capability = "workspace" // the session's workspace folder, mounted at /workspace
)

// OnError says what a fault of a hook does (trap, timeout, malformed answer, crash).
type OnError string

// The choices. The zero value takes the point's default: see DefaultOnError.
const (
	OnErrorDefault OnError = ""
	OnErrorDeny    OnError = "deny"
	OnErrorAllow   OnError = "allow"
	OnErrorAbort   OnError = "abort"
)

// Lease says how long one instance of a WebAssembly plugin serves.
type Lease string

// The lease modes. The zero value is LeasePooled.
const (
	LeaseFresh   Lease = "fresh"   // a new instance for every call
	LeasePooled  Lease = "pooled"  // any warm instance; keeps no promise about memory between calls
	LeaseSession Lease = "session" // one instance for the life of a session
)

// Manifest describes a plugin. It is static: a host reads it without running
// the plugin, and refuses a plugin that does what its manifest does not say.
type Manifest struct {
	Schema      int    `json:"schema"` // 1
	Name        string `json:"name"`   // 1–64 of a–z, 0–9, '-', '_'
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	// APIMin and APIMax are the first and last APIVersion the plugin speaks.
	APIMin int    `json:"api_min"`
	APIMax int    `json:"api_max"`
	Kinds  []Kind `json:"kinds"`
	// Hooks are the points the plugin subscribes to.
	Hooks []HookDecl `json:"hooks,omitempty"`
	// Tools are the tools it offers.
	Tools []ToolSpec `json:"tools,omitempty"`
	// Capabilities it asks for.
	Capabilities []Capability `json:"capabilities,omitempty"`
	Lease        Lease        `json:"lease,omitempty"`
	Limits       *Limits      `json:"limits,omitempty"`
	// Config is the JSON Schema of its configuration; absent: it takes none.
	Config Raw `json:"config,omitempty"`
}

// HookDecl is one subscription.
type HookDecl struct {
	Point HookPoint `json:"point"`
	// Order places the hook among those of its point: lower first; equal ones keep the operator's order.
	Order   int     `json:"order,omitempty"`
	OnError OnError `json:"on_error,omitempty"`
	// Mutates says that the hook may answer mutate here; a mutate without it is a fault.
	Mutates bool `json:"mutates,omitempty"`
}

// Limits are what a plugin asks for below the host's own; a larger value than the host's has no effect. Zero: the host's.
type Limits struct {
	MemoryPages int   `json:"memory_pages,omitempty"` // of 64 KiB
	OutputBytes int64 `json:"output_bytes,omitempty"` // a call
	TimeoutMS   int64 `json:"timeout_ms,omitempty"`   // a hook or tool call; a provider: the longest silence
}

// ToolSpec describes a tool to the model and to the host.
type ToolSpec struct {
	Name        string `json:"name"` // 1–64 of A–Z, a–z, 0–9, '-', '_'
	Description string `json:"description"`
	InputSchema Raw    `json:"input_schema"` // JSON Schema of the arguments, an object
	ReadOnly    bool   `json:"read_only,omitempty"`
	Idempotent  bool   `json:"idempotent,omitempty"`
}
