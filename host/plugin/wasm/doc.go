// Package wasm loads plugins that are WebAssembly modules and runs them under
// wazero. It is the only package that knows wazero.
//
//	Load ─▶ size, digest pin ─▶ manifest ─▶ imports and exports ─▶ configuration
//	         │ once per digest:  count ─▶ validate ─▶ meter ─▶ compile ─▶ cache on disk
//	         │ or from there:    outline, machine code
//	         ▼
//	Plugin ─▶ lease an instance ─▶ guest goroutine: lh1_call ─▶ imports of lh1
//	  ▲              │                                              │
//	  └── caller: waits for the answer, its deadline, its context ◀─┘
//
// # What holds
//
//   - A guest gets what its manifest requests and the operator grants; without
//     that it sees no file, no clock, no randomness, no environment.
//   - Every range that a guest names is checked, every amount is capped, every
//     byte that crosses is copied before the import returns.
//   - The guest runs on a goroutine of its own. The caller waits for it no longer
//     than the call's limit and a short grace; what the caller lent to the call
//     (input, key-value store, chunk receiver) is not touched after that.
//   - Foreign code never runs without a bound: it is metered (package meter), and
//     where it can't be, compiled so that the end of a context closes it. That
//     holds for start functions as well.
//   - An instance that trapped, exited, overran a limit or answered against the
//     contract is never used again. Two that did not even return switch the
//     plugin off.
//
// # How it fails
//
// Everything that a plugin does against its contract is a *plugin.Fault with a
// kind; its own typed error is a *pluginapi.Failure; the end of the caller's
// context is that context's error. Nothing is told by an error's text.
package wasm
