// Package wire reads and writes the documents of pluginapi without reflection,
// encoding/json or fmt, so that a WebAssembly guest stays small and a call stays
// cheap. It has no build tag: it is tested and fuzzed against encoding/json
// natively.
//
// Reading is by pull. A Reader walks a JSON text and hands out pieces of it
// without copying; Fields walks an object of known names.
//
//	r := wire.NewReader(text)
//	f := r.Fields(names)          // names := []string{"pattern", "limit"}
//	for i, ok := f.Next(); ok; i, ok = f.Next() {
//		switch i {
//		case 0:
//			pattern = r.Text()
//		case 1:
//			limit = r.Uint32()
//		}
//	}
//	err := r.End()
//
// The first error sticks: after it every read gives a zero value and every walk
// ends, so one look at End or Err is enough.
//
// It is strict. Unknown and duplicate fields of a known document, bytes after
// it, invalid UTF-8, control characters in strings and nesting deeper than
// MaxDepth are errors. A lone surrogate escape reads as U+FFFD, as it does in
// encoding/json, so that guest and host never read the same string differently.
// A value taken with Raw is checked for syntax and UTF-8, not for duplicate names.
//
// Writing is by appending to a byte slice. Strings are written as valid UTF-8,
// whatever they hold; embedded raw values lose their insignificant white space,
// so every document is one line.
package wire
