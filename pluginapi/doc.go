// Package pluginapi is the contract between a host and its plugins: the
// documents, the decisions, the ABI numbers. It holds no host logic and imports
// only the standard library; a plugin author imports this package and, for
// WebAssembly, pluginapi/guest.
//
// A plugin is a hook, a provider, a tool, or several of these. It says so in a
// static Manifest that a host reads without running anything. Every document is
// JSON in UTF-8; decoding is strict: an unknown or duplicate field is an error on
// either side.
//
//	host                                       plugin
//	 │  OpHook      HookInput               ▶ │
//	 │ ◀            Decision                  │
//	 │  OpProvider  ProviderRequest         ▶ │
//	 │ ◀            Chunk, one a line …       │  the last one is the result
//	 │  OpTool      ToolInput               ▶ │
//	 │ ◀            ToolOutput                │
//	 │ ◀            Failure (status error)    │
package pluginapi
