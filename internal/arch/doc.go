// Package arch holds the test that keeps the import table true: arrows point
// down only. It has no other code.
//
//	cmd/hostctl ─▶ backends, conformance, host ─▶ host/plugin ─▶ pluginapi
//	conformance ─▶ host                host ─▶ host/loop, host/store
//	                      host/ticket/scope ─▶ host/ticket, host/store
package arch
