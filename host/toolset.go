package host

import (
	"bytes"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// toolset is the tools of a run by name, with their compiled argument schemas.
type toolset struct {
	specs  []pluginapi.ToolSpec
	byName map[string]*offeredTool
}

type offeredTool struct {
	tool   plugin.Tool
	spec   pluginapi.ToolSpec
	schema *jsonschema.Schema
}

func newToolset(tools []plugin.Tool) (*toolset, error) {
	t := &toolset{specs: []pluginapi.ToolSpec{}, byName: map[string]*offeredTool{}}
	for _, tool := range tools {
		for _, spec := range tool.Specs() {
			schema, err := compileSchema(spec)
			if err != nil {
				return nil, &plugin.Fault{
					Plugin: tool.Info().Name, Digest: tool.Info().Digest, Kind: plugin.FaultLoad,
					Detail: fmt.Sprintf("the input schema of tool %q is unusable", spec.Name), Err: err,
				}
			}
			t.specs = append(t.specs, spec)
			t.byName[spec.Name] = &offeredTool{tool: tool, spec: spec, schema: schema}
		}
	}
	return t, nil
}

func compileSchema(spec pluginapi.ToolSpec) (*jsonschema.Schema, error) {
	if len(spec.InputSchema) == 0 {
		return nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(spec.InputSchema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nil) // a schema that refers to files or addresses is refused
	const name = "input_schema.json"
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// find looks up a call's tool and checks its arguments. What it answers as
// problem is a result for the model, never the end of the run.
func (t *toolset) find(call pluginapi.ToolCall) (tool *offeredTool, problem string) {
	tool = t.byName[call.Name]
	if tool == nil {
		return nil, fmt.Sprintf("there is no tool named %q", call.Name)
	}
	args, err := jsonschema.UnmarshalJSON(bytes.NewReader(call.Arguments))
	if err != nil {
		return nil, fmt.Sprintf("the arguments are not JSON: %v", err)
	}
	if _, ok := args.(map[string]any); !ok {
		return nil, "the arguments are not a JSON object"
	}
	if tool.schema != nil {
		if err := tool.schema.Validate(args); err != nil {
			return nil, fmt.Sprintf("the arguments do not fit the tool's schema: %v", err)
		}
	}
	return tool, ""
}
