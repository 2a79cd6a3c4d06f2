// Package plugin is how the host sees hooks, providers and tools, whatever
// runs them: a WebAssembly module, a process, or Go code of the embedding
// program. A host can't tell which one answered, except by Info.Isolation.
//
// The sub-packages load plugins: wasm/ under wazero. Chain runs the hooks of a
// point in order and applies the decision table of pluginapi.
package plugin
