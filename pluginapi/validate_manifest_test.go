package pluginapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loophost/loophost/pluginapi"
)

// goodManifest is valid and uses every field.
func goodManifest() pluginapi.Manifest {
	return pluginapi.Manifest{
		Schema: 1, Name: "guard-1_a", Version: "1.0.0", Description: "d", APIMin: 1, APIMax: 2,
		Kinds: []pluginapi.Kind{pluginapi.KindHook, pluginapi.KindProvider, pluginapi.KindTool},
		Hooks: []pluginapi.HookDecl{
			{Point: pluginapi.BeforeTool, Order: -1, OnError: pluginapi.OnErrorDeny, Mutates: true},
			{Point: pluginapi.AfterRound, OnError: pluginapi.OnErrorAbort},
			{Point: pluginapi.SessionEnd, OnError: pluginapi.OnErrorAllow},
		},
		Tools: []pluginapi.ToolSpec{
			{Name: "Read_file-2", InputSchema: json.RawMessage(`{"type":"object"}`)},
			{Name: "write", InputSchema: json.RawMessage(` {}`)},
		},
		Capabilities: []pluginapi.Capability{pluginapi.CapKV, pluginapi.CapClock, pluginapi.CapRandom, pluginapi.CapWorkspace},
		Lease:        pluginapi.LeaseSession,
		Limits:       &pluginapi.Limits{MemoryPages: 48, OutputBytes: 1, TimeoutMS: 1},
		Config:       json.RawMessage(`{"type":"object"}`),
	}
}

func TestManifestValidate(t *testing.T) {
	cases := []struct {
		name   string
		change func(*pluginapi.Manifest)
		field  string // of the error; "": valid
	}{
		{"the whole manifest is valid", func(*pluginapi.Manifest) {}, ""},
		{"what may be left out is left out", func(m *pluginapi.Manifest) {
			*m = pluginapi.Manifest{Schema: 1, Name: "p", Version: "1", APIMin: 1, APIMax: 1, Kinds: []pluginapi.Kind{pluginapi.KindProvider}}
		}, ""},
		{"the zero value is not valid", func(m *pluginapi.Manifest) { *m = pluginapi.Manifest{} }, "schema"},
		{"another schema", func(m *pluginapi.Manifest) { m.Schema = 2 }, "schema"},
		{"no name", func(m *pluginapi.Manifest) { m.Name = "" }, "name"},
		{"a name of 64 bytes", func(m *pluginapi.Manifest) { m.Name = strings.Repeat("n", 64) }, ""},
		{"a name of 65 bytes", func(m *pluginapi.Manifest) { m.Name = strings.Repeat("n", 65) }, "name"},
		{"a name with upper case", func(m *pluginapi.Manifest) { m.Name = "Guard" }, "name"},
		{"a name with a path", func(m *pluginapi.Manifest) { m.Name = "../guard" }, "name"},
		{"no version", func(m *pluginapi.Manifest) { m.Version = "" }, "version"},
		{"a version of 65 bytes", func(m *pluginapi.Manifest) { m.Version = strings.Repeat("1", 65) }, "version"},
		{"a version that is not UTF-8", func(m *pluginapi.Manifest) { m.Version = "\xff" }, "version"},
		{"a description that is not UTF-8", func(m *pluginapi.Manifest) { m.Description = "\xff" }, "description"},
		{"an API range from 0", func(m *pluginapi.Manifest) { m.APIMin = 0 }, "api_min"},
		{"an API range upside down", func(m *pluginapi.Manifest) { m.APIMin, m.APIMax = 3, 2 }, "api_max"},
		{"an API range above ours", func(m *pluginapi.Manifest) { m.APIMin, m.APIMax = 2, 3 }, "api_min"},
		{"no kinds", func(m *pluginapi.Manifest) { m.Kinds = nil }, "kinds"},
		{"an unknown kind", func(m *pluginapi.Manifest) { m.Kinds[1] = "filter" }, "kinds[1]"},
		{"a kind twice", func(m *pluginapi.Manifest) { m.Kinds[2] = pluginapi.KindHook }, "kinds[2]"},
		{"a hook without hooks", func(m *pluginapi.Manifest) { m.Hooks = nil }, "hooks"},
		{"hooks without the kind", func(m *pluginapi.Manifest) { m.Kinds = []pluginapi.Kind{pluginapi.KindTool} }, "hooks"},
		{"a tool without tools", func(m *pluginapi.Manifest) { m.Tools = nil }, "tools"},
		{"tools without the kind", func(m *pluginapi.Manifest) { m.Kinds = []pluginapi.Kind{pluginapi.KindHook} }, "tools"},
		{"an unknown point", func(m *pluginapi.Manifest) { m.Hooks[1].Point = "midnight" }, "hooks[1].point"},
		{"a point twice", func(m *pluginapi.Manifest) { m.Hooks[1] = m.Hooks[0] }, "hooks[1].point"},
		{"an unknown on_error", func(m *pluginapi.Manifest) { m.Hooks[0].OnError = "retry" }, "hooks[0].on_error"},
		{"on_error deny where nothing can be denied", func(m *pluginapi.Manifest) { m.Hooks[1].OnError = pluginapi.OnErrorDeny }, "hooks[1].on_error"},
		{"on_error abort at an observer", func(m *pluginapi.Manifest) { m.Hooks[2].OnError = pluginapi.OnErrorAbort }, "hooks[2].on_error"},
		{"mutates where nothing can be rewritten", func(m *pluginapi.Manifest) { m.Hooks[1].Mutates = true }, "hooks[1].mutates"},
		{"a tool without a name", func(m *pluginapi.Manifest) { m.Tools[0].Name = "" }, "tools[0].name"},
		{"a tool's name with a dot", func(m *pluginapi.Manifest) { m.Tools[0].Name = "fs.read" }, "tools[0].name"},
		{"a tool's name of 65 bytes", func(m *pluginapi.Manifest) { m.Tools[0].Name = strings.Repeat("t", 65) }, "tools[0].name"},
		{"a tool's description that is not UTF-8", func(m *pluginapi.Manifest) { m.Tools[0].Description = "\xff" }, "tools[0].description"},
		{"a tool's name twice", func(m *pluginapi.Manifest) { m.Tools[1].Name = m.Tools[0].Name }, "tools[1].name"},
		{"a tool without a schema", func(m *pluginapi.Manifest) { m.Tools[0].InputSchema = nil }, "tools[0].input_schema"},
		{"a tool's schema that is true", func(m *pluginapi.Manifest) { m.Tools[0].InputSchema = json.RawMessage("true") }, "tools[0].input_schema"},
		{"a tool's schema that is cut", func(m *pluginapi.Manifest) { m.Tools[0].InputSchema = json.RawMessage("{") }, "tools[0].input_schema"},
		{"an unknown capability", func(m *pluginapi.Manifest) { m.Capabilities[0] = "network" }, "capabilities[0]"},
		{"a capability twice", func(m *pluginapi.Manifest) { m.Capabilities[1] = pluginapi.CapKV }, "capabilities[1]"},
		{"an unknown lease", func(m *pluginapi.Manifest) { m.Lease = "forever" }, "lease"},
		{"a negative memory limit", func(m *pluginapi.Manifest) { m.Limits.MemoryPages = -1 }, "limits.memory_pages"},
		{"a negative output limit", func(m *pluginapi.Manifest) { m.Limits.OutputBytes = -1 }, "limits.output_bytes"},
		{"a negative timeout", func(m *pluginapi.Manifest) { m.Limits.TimeoutMS = -1 }, "limits.timeout_ms"},
		{"a configuration schema that is a string", func(m *pluginapi.Manifest) { m.Config = json.RawMessage(`"any"`) }, "config"},
		{"a configuration schema that is null", func(m *pluginapi.Manifest) { m.Config = json.RawMessage("null") }, "config"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := goodManifest()
			c.change(&m)
			wantInvalid(t, m.Validate(), "manifest", c.field)
		})
	}
}

func TestHookDeclValidateNamesTheAlias(t *testing.T) {
	err := pluginapi.HookDecl{Point: "PreToolUse"}.Validate()
	wantInvalid(t, err, "hook declaration", "point")
	if !strings.Contains(err.Error(), `"before_tool"`) {
		t.Errorf("got %v, want the point's own name in it", err)
	}
}

func TestToolSpecValidate(t *testing.T) {
	wantInvalid(t, pluginapi.ToolSpec{Name: "read", InputSchema: json.RawMessage("{}")}.Validate(), "tool", "")
	wantInvalid(t, pluginapi.ToolSpec{Name: "read"}.Validate(), "tool", "input_schema")
}

func TestADecodedPointHasItsOwnName(t *testing.T) {
	for text, want := range map[string]pluginapi.HookPoint{
		"PreToolUse": pluginapi.BeforeTool, "PostToolUse": pluginapi.AfterTool, "UserPromptSubmit": pluginapi.BeforePrompt,
		"Stop": pluginapi.BeforeFinalize, "SessionStart": pluginapi.SessionStart, "SessionEnd": pluginapi.SessionEnd,
		"PreCompact": pluginapi.BeforeCompaction, "Notification": pluginapi.Notification,
		"before_tool": pluginapi.BeforeTool, "midnight": "midnight",
	} {
		var d pluginapi.HookDecl
		if err := json.Unmarshal([]byte(`{"point":"`+text+`"}`), &d); err != nil || d.Point != want {
			t.Errorf("%s: got %q, %v; want %q", text, d.Point, err, want)
		}
	}
}
