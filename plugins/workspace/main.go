// Command workspace is a tool plugin: it reads, writes, edits, lists and searches
// text files in the folder that the operator granted, mounted at /workspace.
package main

import (
	"os"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

func init() { guest.Serve(newPlugin("/workspace")) }

func main() {}

func newPlugin(folder string) guest.Plugin {
	return guest.Plugin{Tool: func(c *guest.ToolCall) (pluginapi.ToolOutput, error) { return call(folder, c) }}
}

// workspace is the granted folder during one call. No path and no link leads out
// of it: os.Root sees to that here, and the host's mount does outside.
type workspace struct {
	root *os.Root
	left func() (ms int64, ok bool) // the time left for the call
}

var tools = map[string]func(*workspace, *wire.Reader) (string, error){
	"read_file":    (*workspace).readFile,
	"write_file":   (*workspace).writeFile,
	"edit_file":    (*workspace).editFile,
	"list_files":   (*workspace).listFiles,
	"search_files": (*workspace).searchFiles,
}

func call(folder string, c *guest.ToolCall) (pluginapi.ToolOutput, error) {
	tool, ok := tools[c.Name()]
	if !ok {
		return pluginapi.ToolOutput{}, &pluginapi.Failure{Kind: pluginapi.FailInvalidRequest, Message: "this plugin has no tool " + c.Name()}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return pluginapi.ToolOutput{}, &pluginapi.Failure{
			Kind:    pluginapi.FailInternal,
			Message: "no workspace folder is mounted (" + cause(err) + "); the operator grants one with --workspace DIR",
		}
	}
	text, err := tool(&workspace{root: root, left: c.Deadline}, c.Arguments())
	if cerr := root.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return guest.Refuse(err.Error()), nil
	}
	return guest.Answer(text), nil
}
