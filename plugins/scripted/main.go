// Command scripted is a provider that plays a script instead of asking a model,
// and the tool count_words, so that a first run needs no key and no network.
// Without a script it plays the demo.
package main

import (
	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
)

func init() { guest.Serve(newPlugin()) }

func main() {}

func newPlugin() guest.Plugin {
	p := player{config: guest.Cached[script]{Decode: decodeConfig}, sleep: sleep}
	return guest.Plugin{Provider: p.complete, Tool: tool}
}

func tool(c *guest.ToolCall) (pluginapi.ToolOutput, error) {
	if c.Name() != "count_words" {
		return pluginapi.ToolOutput{}, &pluginapi.Failure{
			Kind: pluginapi.FailInvalidRequest, Message: "this plugin has the tool count_words only, not " + c.Name(),
		}
	}
	return countWords(c.Arguments()), nil
}
