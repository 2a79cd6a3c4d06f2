package schema_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/schema"
)

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	b, err := fs.ReadFile(schema.Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, doc string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEncodedDocumentsFitTheirSchemas(t *testing.T) {
	n := uint64(1<<64 - 1)
	call := pluginapi.ToolCall{ID: "c", Name: "n", Arguments: pluginapi.Raw(`{"a":1}`)}
	result := pluginapi.ToolResult{CallID: "c", Name: "n", Status: pluginapi.ResultUnknown}
	message := pluginapi.Message{Role: pluginapi.RoleAssistant, Text: "t", ToolCalls: []pluginapi.ToolCall{call}}
	tool := pluginapi.Message{Role: pluginapi.RoleTool, Result: &result}
	usage := &pluginapi.Usage{InputTokens: &n}
	cases := map[string][]any{
		"manifest.json": {pluginapi.Manifest{
			Schema: 1, Name: "a", Version: "1", APIMin: 1, APIMax: 1, Kinds: []pluginapi.Kind{pluginapi.KindHook},
			Hooks: []pluginapi.HookDecl{{Point: pluginapi.AfterRound, OnError: pluginapi.OnErrorAbort, Order: -1}}, Config: pluginapi.Raw(`{}`),
			Limits: &pluginapi.Limits{MemoryPages: 1}, Capabilities: []pluginapi.Capability{pluginapi.CapKV}, Lease: pluginapi.LeaseFresh,
			Tools: []pluginapi.ToolSpec{{Name: "n", InputSchema: pluginapi.Raw(`{}`)}},
		}},
		"hook-input.json":       {pluginapi.HookInput{Point: pluginapi.AfterRound, Document: pluginapi.Raw(`{}`)}, pluginapi.HookInput{Point: pluginapi.BeforeCompaction}},
		"decision.json":         {pluginapi.Decision{Action: pluginapi.Continue}, pluginapi.Decision{Action: pluginapi.Mutate, Document: pluginapi.Raw(`{}`)}},
		"start-doc.json":        {pluginapi.StartDoc{}},
		"prompt-doc.json":       {pluginapi.PromptDoc{}},
		"round-doc.json":        {pluginapi.RoundDoc{}},
		"answer-doc.json":       {pluginapi.AnswerDoc{Message: message}, pluginapi.AnswerDoc{Message: message, Usage: usage}},
		"tool-call.json":        {call},
		"tool-result-doc.json":  {pluginapi.ToolResultDoc{Call: call, Result: result}},
		"round-end-doc.json":    {pluginapi.RoundEndDoc{Message: message}, pluginapi.RoundEndDoc{Message: message, Results: []pluginapi.ToolResult{result}}},
		"finalize-doc.json":     {pluginapi.FinalizeDoc{}},
		"end-doc.json":          {pluginapi.EndDoc{}},
		"notification-doc.json": {pluginapi.NotificationDoc{}},
		"provider-request.json": {pluginapi.ProviderRequest{}, pluginapi.ProviderRequest{Options: pluginapi.Raw(`{}`), Messages: []pluginapi.Message{message, tool}}},
		"chunk.json": {
			pluginapi.Chunk{Type: pluginapi.ChunkText, Text: "t"},
			pluginapi.Chunk{Type: pluginapi.ChunkToolCall, ToolCall: &call},
			pluginapi.Chunk{Type: pluginapi.ChunkUsage, Usage: usage},
			pluginapi.Chunk{Type: pluginapi.ChunkResult, Finish: pluginapi.FinishStop},
		},
		"tool-input.json":  {pluginapi.ToolInput{Call: call}},
		"tool-output.json": {pluginapi.ToolOutput{IsError: true}},
		"failure.json":     {pluginapi.Failure{Kind: pluginapi.FailAuth}},
	}
	names, err := fs.Glob(schema.Files(), "*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(cases) {
		t.Errorf("%d schemas, %d cases", len(names), len(cases))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			s := compile(t, name)
			if len(cases[name]) == 0 {
				t.Fatal("no case")
			}
			for _, v := range cases[name] {
				doc := encode(t, v)
				if err := validate(t, s, doc); err != nil {
					t.Errorf("%s: %v", doc, err)
				}
				more := strings.TrimSuffix(doc, "}") + `,"more":1}`
				if err := validate(t, s, more); err == nil {
					t.Errorf("%s: an unknown field is accepted", more)
				}
			}
			if err := validate(t, s, `{}`); err == nil {
				t.Error("an empty object is accepted")
			}
		})
	}
}

func TestTheBundledManifestsFitTheirSchema(t *testing.T) {
	manifests, err := filepath.Glob("../../plugins/*/" + pluginapi.ManifestFile)
	if err != nil || len(manifests) < 5 {
		t.Fatalf("found %d manifests, %v", len(manifests), err)
	}
	s := compile(t, "manifest.json")
	for _, file := range manifests {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, string(b)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestAManifestMayUseAliasesOfHookPoints(t *testing.T) {
	s := compile(t, "manifest.json")
	const doc = `{"schema":1,"name":"a","version":"1","api_min":1,"api_max":1,"kinds":["hook"],"hooks":[{"point":"POINT"}]}`
	for _, name := range []string{"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd", "PreCompact", "Notification", "after_round"} {
		if err := validate(t, s, strings.Replace(doc, "POINT", name, 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := validate(t, s, doc); err == nil {
		t.Error("an unknown point is accepted")
	}
}

func TestWrongWordsAndTypesAreRefused(t *testing.T) {
	for _, c := range []struct{ name, doc string }{
		{"decision.json", `{"action":"block"}`},
		{"decision.json", `{"action":"mutate","document":[]}`},
		{"failure.json", `{"kind":"sad","message":""}`},
		{"tool-call.json", `{"id":"a","name":"b","arguments":null}`},
		{"round-doc.json", `{"iteration":-1,"round":1}`},
		{"round-doc.json", `{"iteration":4294967296,"round":1}`},
		{"chunk.json", `{"type":"text","usage":{}}`},
	} {
		if err := validate(t, compile(t, c.name), c.doc); err == nil {
			t.Errorf("%s accepts %s", c.name, c.doc)
		}
	}
}
