package pluginapi

// ABIMajor is the major version of the WebAssembly ABI. The guest's entry point
// and the host's import module carry it in their names.
const ABIMajor = 1

// Names of the WebAssembly ABI: core wasm, WASI preview 1 reactor, i32 only.
const (
	// ExportCall is the guest's entry point: lh1_call(op, in_len i32) -> status i32. It never re-enters.
	ExportCall = "lh1_call"
	// ExportMemory is the guest's memory.
	ExportMemory = "memory"
	// ExportInitialize is the reactor's optional start function.
	ExportInitialize = "_initialize"
	// ImportModule is the host module that a guest imports from.
	ImportModule = "lh1"

	// input_read(ptr, len, off i32) -> n i32: copies at most len bytes of the call's input from off.
	ImportInputRead = "input_read"
	// output_write(ptr, len i32): appends to the call's output; a provider streams through it.
	ImportOutputWrite = "output_write"
	// error_write(ptr, len i32): appends to the call's Failure document, at most 64 KiB.
	ImportErrorWrite = "error_write"
	// log(level, ptr, len i32): one log line; levels are LogDebug … LogError.
	ImportLog = "log"
	// host_call(op, ptr, len i32) -> reply_len i32: a HostOp with its request document; negative: a HostStatus.
	ImportHostCall = "host_call"
	// reply_read(ptr, len, off i32) -> n i32: copies the reply of the last host_call.
	ImportReplyRead = "reply_read"
	// deadline_ms() -> i32: milliseconds left for this call, at least 0; -1: no deadline.
	ImportDeadline = "deadline_ms"

	// ManifestSection is the custom section that holds the Manifest.
	ManifestSection = "loophost.manifest"
	// ManifestFile is the manifest's name when it lies beside the module or executable.
	ManifestFile = "plugin.json"
)

// Op is what a call asks of a plugin.
type Op uint32

// The operations. A plugin answers StatusUnsupported to any other.
const (
	OpHook     Op = 1 // in: HookInput; out: Decision
	OpProvider Op = 2 // in: ProviderRequest; out: Chunks, each a line of JSON
	OpTool     Op = 3 // in: ToolInput; out: ToolOutput
)

// String is the operation's word.
func (o Op) String() string {
	switch o {
	case OpHook:
		return "hook"
	case OpProvider:
		return "provider"
	case OpTool:
		return "tool"
	}
	return "unknown"
}

// Status is how a call ended, as lh1_call returns it.
type Status int32

// The statuses. Any other value is a fault of the plugin.
const (
	StatusOK          Status = 0 // the output document is complete
	StatusError       Status = 1 // the error document is a Failure
	StatusUnsupported Status = 2 // the plugin does not know the op
)

// HostOp is a request from guest to host, through host_call.
type HostOp uint32

// The host operations. Each works only where it was granted.
const (
	// HostConfigGet replies with the plugin's configuration, a JSON object; the
	// request is empty. It needs no grant: the operator gave the configuration to
	// this plugin.
	HostConfigGet HostOp = 1
	// HostKVGet asks for the key that the request's bytes are; it replies with the value.
	HostKVGet HostOp = 2
	// HostKVPut stores; the request is the key, a NUL byte, the value. An empty
	// value deletes. It commits with its call's result or not at all.
	HostKVPut HostOp = 3
)

// HostStatus is a negative reply_len of host_call.
type HostStatus int32

// The failures of a host call.
const (
	HostUnsupported HostStatus = -1 // the host does not know the op
	HostDenied      HostStatus = -2 // not granted
	HostNotFound    HostStatus = -3 // no such key
	HostInvalid     HostStatus = -4 // the request is malformed
	HostTooLarge    HostStatus = -5 // key, value or entry count over its limit
)

// Log levels of the log import.
const (
	LogDebug int32 = 0
	LogInfo  int32 = 1
	LogWarn  int32 = 2
	LogError int32 = 3
)

// Limits of one call and of a plugin, with the defaults a host applies where
// neither manifest nor operator says otherwise. Each breach is a typed fault.
const (
	MaxModuleBytes     = 32 << 20
	MaxMemoryPages     = 1024 // of 64 KiB
	MaxOutputBytes     = 16 << 20
	MaxErrorBytes      = 64 << 10
	MaxLogBytes        = 64 << 10
	MaxHostCalls       = 1000
	MaxKVEntries       = 256
	MaxKVKeyBytes      = 256
	MaxKVValueBytes    = 64 << 10
	MaxManifestBytes   = 256 << 10
	HookTimeoutMS      = 5_000
	ToolTimeoutMS      = 120_000
	ProviderSilenceMS  = 120_000 // without a chunk; a provider has no other limit of its own
	MaxCompileSeconds  = 60
	MaxDecisionReason  = 4096 // bytes
	MaxToolNameBytes   = 64
	MaxPluginNameBytes = 64
)
