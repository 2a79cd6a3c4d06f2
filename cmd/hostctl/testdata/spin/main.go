// Command spin is a tool that computes until it has counted far enough: a tool
// call that takes a while, for tests. It is built by the scripts.
package main

import (
	"strconv"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
)

func init() { guest.Serve(guest.Plugin{Tool: spin}) }

func main() {}

// steps keep a call busy for a second or so.
const steps = 400_000_000

func spin(*guest.ToolCall) (pluginapi.ToolOutput, error) {
	x := uint64(1)
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return pluginapi.ToolOutput{Text: "spun to " + strconv.FormatUint(x, 10)}, nil
}
