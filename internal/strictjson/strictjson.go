// Package strictjson decodes documents that others wrote: guests, plugins,
// files. What a document says must mean one thing only, so it refuses what
// encoding/json forgives: unknown and duplicate names, names in another case,
// bytes after the document, invalid UTF-8.
package strictjson

import (
	"github.com/go-json-experiment/json"
)

// Unmarshal decodes the one JSON value in data into v, a pointer. Members of
// structs are named as by encoding/json's tags. An error says what was found and
// where, and leaves v in part written. It copies what it keeps of data.
func Unmarshal(data []byte, v any) error {
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true))
}
