// Package meter rewrites a core WebAssembly module so that it can't run for
// long without asking its host: it inserts fuel checks. Bytes in, bytes out; no
// engine, no clock, no goroutine.
//
// # What the rewritten module does
//
//	                guest code                     added by Rewrite
//	function entry ─┐
//	loop header ────┼─▶ fuel -= cost; fuel < 0 ? ──▶ spent() ──▶ host: refill(fuel) ─▶ n
//	memory.fill … ──┘                                  n ≥ 0: fuel = n, go on
//	                                                   n < 0: unreachable (trap)
//
// One unit of fuel is one WebAssembly operator, a few nanoseconds at the most
// except for cache misses. Every entry of a function and every pass over a loop
// header is charged with the operators on the longest way from there to where the
// next pass is charged, or to the end; inner loops pay for themselves. Since code
// goes backwards only through loop headers, no operator runs unpaid. Fuel is an
// upper bound of work, not a measure of it: ways not taken may be longer.
//
// A call of an imported function costs 64 units more, an indirect call, which may
// lead to one, 16: a guest that does nothing but call its host is to ask as soon as
// others.
//
// Operators whose work depends on an operand pay for it before they run: one unit
// for each byte of memory.fill, memory.copy and memory.init, one for each element
// of table.copy and table.init, and for memory.grow one for each byte of the
// memory it ends up with (an engine may move all of it). Filling and copying go
// in pieces of 1 MiB, each paid by itself. The others run whole once the host has
// let them; the size of the module, of the table and of the memory bound them.
//
// # What the host provides
//
// The rewritten module imports one function more than the original, [ImportName]
// of module [ImportModule], of type (i64) -> (i64). Its argument is the fuel that
// is left, always negative: a debt, so that used = granted - left adds up. Its
// result is the new content of the tank: zero or more goes on with that much
// (the debt is forgiven), negative traps the guest with "unreachable". The host
// knows that it refused, and so can name the cause; a host function in Go needs
// no panic to end the guest. The example of [Rewrite] shows it with wazero.
//
// The tank starts empty, so the first function that runs, be it the start
// function or _initialize, asks before it does anything. What a call leaves in
// the tank is used by the next call of the same instance: an instance overruns
// its deadline by one grant at most, plus one of those operators.
//
// # Why the guest can't reach the fuel
//
// The counter is one more global behind the last one and neither exported nor
// imported. Rewrite itself checks every index of the original (types, functions,
// globals, locals) against the original's counts, so no guest code can name what
// was added, whether or not an engine has validated the module before. A module
// that imports anything from [ImportModule] is refused with [ErrReserved].
// For the same reason an
// invalid module doesn't become a valid one: an engine that validates the result
// has validated the original, custom sections apart. So Rewrite may go first,
// which spares the engine hostile lengths and the host a second compilation.
//
// # Why an import, though it shifts indexes
//
// Only a call lets a guest pause and go on. An import in front of the defined
// functions moves their indexes by one, so calls, exports, the start function and
// element segments are re-encoded; each is visited anyway, to be checked. The
// ways around that are worse: a call through a second table needs the reference
// types that we compile without; an exported counter that traps when it is empty
// can't be refilled in mid-call; hiding the call in another host function (or in
// memory.grow) ties the pass to one ABI or one engine. Sections that speak of
// function indexes or code offsets (name, .debug_*, reloc.*, linking,
// metadata.code.*, sourceMappingURL) are dropped; all others are kept.
//
// # What is refused
//
// Anything the pass doesn't know yields [ErrUnsupported] with opcode and offset,
// and the caller runs the original under the engine's own means: reference
// types, threads, exceptions, tail calls, several memories or tables,
// 64-bit memories, extended constant expressions.
package meter
