//go:build !wasip1

package guest

// Serve does nothing outside a WebAssembly module. Tests call the plugin
// through package guesttest.
func Serve(Plugin) {}
