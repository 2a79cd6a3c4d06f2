package plugin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// TestRewrites gives each point that has a document one rewrite: the document
// with one text put in another's place.
func TestRewrites(t *testing.T) {
	cases := []struct {
		name     string
		point    pluginapi.HookPoint
		old, new string
		field    string // of the fault; "": the rewrite is taken; "decode": it is no document of the point
	}{
		{"a prompt may change", pluginapi.BeforePrompt, `"o"`, `"p"`, ""},
		{"a prompt may not be empty", pluginapi.BeforePrompt, `"o"`, `""`, "text"},
		{"a prompt has no other field", pluginapi.BeforePrompt, `"o"`, `"o","role":"user"`, "decode"},
		{"a prompt is a text", pluginapi.BeforePrompt, `"o"`, `1`, "decode"},
		{"a field may not come twice", pluginapi.BeforePrompt, `"o"`, `"o","text":"p"`, "decode"},

		{"a request may change its model", pluginapi.BeforeProvider, `"model":"m"`, `"model":"n"`, ""},
		{"a request may gain options", pluginapi.BeforeProvider, `"model":"m"`, `"model":"m","options":{"a":1}`, ""},
		{"a request keeps its number", pluginapi.BeforeProvider, `"ordinal":1`, `"ordinal":2`, "call"},
		{"a request's tool keeps a valid name", pluginapi.BeforeProvider, `"name":"read","description"`, `"name":"r d","description"`, "tools[0]"},
		{"a request names a tool once", pluginapi.BeforeProvider, `"tools":[`, `"tools":[{"name":"read","input_schema":{}},`, "tools[1].name"},
		{"a request has no other field", pluginapi.BeforeProvider, `"model":"m"`, `"model":"m","temperature":1`, "decode"},
		{"a request's message has a role", pluginapi.BeforeProvider, `"role":"user"`, `"role":"system"`, "messages[0].role"},
		{"a request's message is not null", pluginapi.BeforeProvider, `"messages":[`, `"messages":[null,`, "messages[0].role"},
		{"a user's message may have an origin", pluginapi.BeforeProvider, `"text":"o"`, `"text":"o","origin":"hook:h"`, ""},
		{"a user's message has no tool calls", pluginapi.BeforeProvider, `"text":"o"`, `"text":"o","tool_calls":[{"id":"1","name":"n","arguments":{}}]`, "messages[0].tool_calls"},
		{"a user's message has no reasoning", pluginapi.BeforeProvider, `"text":"o"`, `"text":"o","reasoning":"r"`, "messages[0].reasoning"},
		{"a user's message has no result", pluginapi.BeforeProvider, `"text":"o"`, `"text":"o","result":{}`, "messages[0].result"},
		{"an assistant's message has no origin", pluginapi.BeforeProvider, `"text":"I read"`, `"text":"I read","origin":"o"`, "messages[1].origin"},
		{"a tool's message has no text of its own", pluginapi.BeforeProvider, `"role":"tool"`, `"role":"tool","text":"t"`, "messages[2].text"},
		{"a tool's message has a result", pluginapi.BeforeProvider, `"messages":[`, `"messages":[{"role":"tool"},`, "messages[0].result"},
		{"a tool's message answers a call", pluginapi.BeforeProvider, `"call_id":"c1"`, `"call_id":""`, "messages[2].result.call_id"},
		{"a tool's message has a known status", pluginapi.BeforeProvider, `"status":"ok"`, `"status":"fine"`, "messages[2].result.status"},

		{"an answer may change its text", pluginapi.AfterProvider, `I read`, `I write`, ""},
		{"an answer may change its tool calls", pluginapi.AfterProvider, `"tool_calls":[`, `"tool_calls":[{"id":"c0","name":"ls","arguments":{}},`, ""},
		{"an answer stays the assistant's", pluginapi.AfterProvider, `"role":"assistant"`, `"role":"user"`, "message.role"},
		{"an answer is not nothing", pluginapi.AfterProvider, `"text":"I read","tool_calls":[{"id":"c1","name":"read","arguments":{"path":"a","n":9007199254740993}}]`, `"tool_calls":[]`, "message"},
		{"an answer's calls have ids", pluginapi.AfterProvider, `"id":"c1"`, `"id":""`, "message.tool_calls[0].id"},
		{"an answer's calls have names", pluginapi.AfterProvider, `"name":"read"`, `"name":""`, "message.tool_calls[0].name"},
		{"an answer's calls have an object of arguments", pluginapi.AfterProvider, `{"path":"a","n":9007199254740993}`, `[]`, "message.tool_calls[0].arguments"},
		{"an answer's ids are used once", pluginapi.AfterProvider, `"tool_calls":[`, `"tool_calls":[{"id":"c1","name":"ls","arguments":{}},`, "message.tool_calls[1].id"},
		{"an answer's token counts stay", pluginapi.AfterProvider, `"input_tokens":10`, `"input_tokens":1`, "usage"},
		{"an unknown count does not become known", pluginapi.AfterProvider, `"output_tokens":null`, `"output_tokens":0`, "usage"},
		{"an answer's usage does not vanish", pluginapi.AfterProvider, `"usage":{"input_tokens":10,"output_tokens":null}`, `"usage":null`, "usage"},

		{"a call may change its name", pluginapi.BeforeTool, `"name":"read"`, `"name":"write"`, ""},
		{"a call may change its arguments", pluginapi.BeforeTool, `"path":"a"`, `"path":"b"`, ""},
		{"a call keeps its id", pluginapi.BeforeTool, `"id":"c1"`, `"id":"c2"`, "id"},
		{"a call has a name", pluginapi.BeforeTool, `"name":"read"`, `"name":""`, "name"},
		{"a call's arguments are an object", pluginapi.BeforeTool, `{"path":"a","n":9007199254740993}`, `["a"]`, "arguments"},
		{"a call's arguments are not null", pluginapi.BeforeTool, `{"path":"a","n":9007199254740993}`, `null`, "arguments"},
		{"a call's arguments are not absent", pluginapi.BeforeTool, `,"arguments":{"path":"a","n":9007199254740993}`, ``, "arguments"},

		{"a result may change its text", pluginapi.AfterTool, `"text":"text"`, `"text":"cut"`, ""},
		{"a result may become an error", pluginapi.AfterTool, `"status":"ok"`, `"status":"error"`, ""},
		{"a result that is there was started", pluginapi.AfterTool, `"status":"ok"`, `"status":"not_started"`, "result.status"},
		{"a result that is there is known", pluginapi.AfterTool, `"status":"ok"`, `"status":"unknown"`, "result.status"},
		{"a result keeps its call", pluginapi.AfterTool, `"call_id":"c1"`, `"call_id":"c2"`, "result.call_id"},
		{"a result keeps its tool", pluginapi.AfterTool, `"name":"read","status"`, `"name":"write","status"`, "result.name"},
		{"a result's call keeps its id", pluginapi.AfterTool, `"id":"c1"`, `"id":"c2"`, "call"},
		{"a result's call keeps its name", pluginapi.AfterTool, `"name":"read","arguments"`, `"name":"write","arguments"`, "call"},
		{"a result's call keeps its arguments", pluginapi.AfterTool, `"path":"a"`, `"path":"b"`, "call"},
		{"a result's call keeps its numbers exactly", pluginapi.AfterTool, `9007199254740993`, `9007199254740992`, "call"},
		{"a result's call may be encoded anew", pluginapi.AfterTool, `{"path":"a","n":9007199254740993}`, `{ "n": 9007199254740993, "path": "\u0061" }`, ""},
	}
	docs := documents(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := string(docs[c.point])
			after := strings.Replace(before, c.old, c.new, 1)
			if after == before {
				t.Fatalf("%s does not hold %s", before, c.old)
			}
			v := runRewrite(t, c.point, docs[c.point], []byte(after))
			if c.field == "" {
				if v.End != nil || string(v.Document) != after {
					t.Fatalf("got %s and end %+v, want the rewrite taken", v.Document, v.End)
				}
				return
			}
			if v.Mutated || v.End == nil || string(v.Document) != before {
				t.Fatalf("got %s, mutated %v, want a fault", v.Document, v.Mutated)
			}
			fault, ok := errors.AsType[*plugin.Fault](v.End.Fault)
			if !ok || fault.Kind != plugin.FaultMalformed {
				t.Fatalf("got %v, want a fault of kind malformed", v.End.Fault)
			}
			got := "decode"
			if invalid, ok := errors.AsType[*pluginapi.InvalidError](fault); ok {
				got = invalid.Field
			}
			if got != c.field {
				t.Errorf("got a fault at %s (%v), want %s", got, fault, c.field)
			}
		})
	}
}

func TestARequestWithoutMessagesIsRefused(t *testing.T) {
	before := documents(t)[pluginapi.BeforeProvider]
	v := runRewrite(t, pluginapi.BeforeProvider, before, []byte(`{"call":{"ordinal":1,"iteration":1,"round":1,"attempt":1},"messages":[]}`))
	if invalid, ok := errors.AsType[*pluginapi.InvalidError](v.End.Fault); !ok || invalid.Field != "messages" {
		t.Errorf("got %v, want a fault at messages", v.End.Fault)
	}
}

func TestAResultThatNeverRanStaysSo(t *testing.T) {
	for _, status := range []pluginapi.ResultStatus{pluginapi.ResultNotStarted, pluginapi.ResultUnknown} {
		before := strings.Replace(string(documents(t)[pluginapi.AfterTool]), `"ok"`, `"`+string(status)+`"`, 1)
		after := strings.Replace(before, string(status), "ok", 1)
		v := runRewrite(t, pluginapi.AfterTool, []byte(before), []byte(after))
		if v.End == nil || v.Mutated {
			t.Errorf("%s became ok", status)
		}
	}
}

func runRewrite(t testing.TB, point pluginapi.HookPoint, before, after []byte) plugin.Verdict {
	t.Helper()
	d := pluginapi.Decision{Action: pluginapi.Mutate, Document: json.RawMessage(after)}
	v, err := chain(t, hook("m", pluginapi.HookDecl{Point: point, Mutates: true}, answers(d))).Run(t.Context(), env, point, before)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
