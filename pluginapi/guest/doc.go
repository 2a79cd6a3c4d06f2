// Package guest is the WebAssembly side of pluginapi for the standard Go
// toolchain: it reads a call's input, runs the plugin's function and writes its
// answer. A plugin is a main package:
//
//	package main
//
//	import (
//		"github.com/loophost/loophost/pluginapi"
//		"github.com/loophost/loophost/pluginapi/guest"
//	)
//
//	func init() { guest.Serve(guest.Plugin{Hook: decide}) }
//
//	func main() {}
//
//	func decide(c *guest.HookCall) (pluginapi.Decision, error) {
//		answer, err := c.RoundEnd()
//		if err != nil {
//			return pluginapi.Decision{}, err
//		}
//		if answer.Message.Text == "done" {
//			return guest.Stop("the model says it is done"), nil
//		}
//		return guest.Continue(), nil
//	}
//
// It is built with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o plugin.wasm
//
// Serve belongs in init: a module built like this is a library, whose
// initialisation runs and whose main never does. This is the one place where
// the process-wide registration that Go code better avoids is how the platform
// works.
//
//	host                           guest
//	 │ lh1_call(op, in_len)      ▶ │ Serve's plugin
//	 │ ◀ input_read                │ decoded by package wire, as far as it is asked
//	 │ ◀ host_call, log, deadline  │ Config, KVGet, KVPut, Log, Deadline
//	 │ ◀ output_write              │ the answer; a provider streams here
//	 │ ◀ status                    │
//
// A function's error becomes the call's Failure: a *pluginapi.Failure as it is,
// any other with the kind internal. A panic ends the instance, as a trap does;
// the host never uses it again. Package-level state lives as long as the
// instance, about which a pooled plugin knows nothing: what must last belongs in
// KVPut.
//
// The package also builds for every other platform, where Serve does nothing,
// so that handlers have plain Go tests: see package guesttest.
package guest
