//go:build !wasip1

package pluginapi

import "encoding/json"

// Raw is a JSON value that is passed on as it is. It is json.RawMessage,
// except in a WebAssembly guest, where importing encoding/json would make every
// module a quarter larger.
type Raw = json.RawMessage
