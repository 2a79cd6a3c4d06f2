package settings

import (
	"path/filepath"
	"strings"
)

// PluginRef names a plugin: a bundled one, or a file.
type PluginRef struct {
	Arg  string // as a person wrote it
	Path string // absolute; "": the bundled plugin Arg
}

// Bundled reports whether the plugin travels inside the binary.
func (p PluginRef) Bundled() bool { return p.Path == "" }

func (p PluginRef) same(q PluginRef) bool {
	if p.Bundled() || q.Bundled() {
		return p.Arg == q.Arg && p.Path == q.Path
	}
	return p.Path == q.Path
}

func contains(refs []PluginRef, p PluginRef) bool {
	for _, q := range refs {
		if p.same(q) {
			return true
		}
	}
	return false
}

// IsPath reports whether a plugin argument is a path and not the name of a
// bundled plugin: it has a separator or ends in .wasm.
func IsPath(arg string) bool {
	return strings.ContainsAny(arg, `/\`) || strings.HasSuffix(arg, ".wasm")
}

// ref reads a plugin argument; resolve makes its path absolute.
func ref(arg string, resolve func(string) string) PluginRef {
	if !IsPath(arg) {
		return PluginRef{Arg: arg}
	}
	return PluginRef{Arg: arg, Path: resolve(arg)}
}

func refs(args []string, resolve func(string) string) []PluginRef {
	var out []PluginRef
	for _, a := range args {
		if p := ref(a, resolve); !contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil { // the working directory is gone: opening the path will say so
		return path
	}
	return abs
}

// Plugin reads a plugin argument of the command line.
func Plugin(arg string) PluginRef { return ref(arg, absolute) }
