// Package schema holds the published JSON Schemas (draft 2020-12) of the
// documents of pluginapi, one a file. They are generated from its Go types; a
// test keeps them true.
//
//	pluginapi's types and comments ── go generate ─▶ *.json
package schema

import (
	"embed"
	"io/fs"
)

//go:generate go run ./internal/generate

//go:embed *.json
var files embed.FS

// Files holds the schemas: "hook-input.json", "decision.json", ….
func Files() fs.FS { return files }
