package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

func call(tool, args string) pluginapi.ToolCall {
	return pluginapi.ToolCall{ID: "call-1", Name: tool, Arguments: pluginapi.Raw(args)}
}

func TestRules(t *testing.T) {
	const rules = `{"rules": [
		{"tool": "write_*", "arguments": {"path": "^secrets/"}, "action": "deny", "reason": "not yours"},
		{"tool": "run", "arguments": {"cmd": "rm", "dry": "^true$"}, "action": "allow"},
		{"tool": "run", "action": "ask", "reason": "may it run?"},
		{"tool": "search", "action": "mutate", "set": {"limit": 20, "where": {"a": "b"}}},
		{"arguments": {"force": "true"}, "action": "deny"},
		{"tool": "[rw]*_file", "action": "allow", "reason": "plain files"}
	]`
	cases := []struct {
		name, dflt string
		call       pluginapi.ToolCall
		want       pluginapi.Decision
	}{
		{"the first rule that matches decides", "", call("write_file", `{"path":"secrets/a"}`), pluginapi.Decision{Action: pluginapi.Deny, Reason: "not yours"}},
		{"an escaped argument is matched as its text", "", call("write_file", `{"path":"\u0073ecrets/a"}`), pluginapi.Decision{Action: pluginapi.Deny, Reason: "not yours"}},
		{"an escaped name too", "", call("write_file", `{"p\u0061th":"secrets/a"}`), pluginapi.Decision{Action: pluginapi.Deny, Reason: "not yours"}},
		{"another path goes on to a later rule", "", call("write_file", `{"path":"docs/secrets/a"}`), pluginapi.Decision{Action: pluginapi.Allow, Reason: "plain files"}},
		{"an absent argument matches nothing", "", call("write_file", `{}`), pluginapi.Decision{Action: pluginapi.Allow, Reason: "plain files"}},
		{"all arguments must match", "", call("run", `{"cmd":"rm -r","dry":true}`), pluginapi.Decision{Action: pluginapi.Allow, Reason: "tool-guard: rule 2 says allow"}},
		{"one that doesn't is enough to go on", "", call("run", `{"cmd":"rm -r","dry":false}`), pluginapi.Decision{Action: pluginapi.Ask, Reason: "may it run?"}},
		{
			"mutate replaces and adds arguments", "", call("search", `{"q": "x", "limit": 9000}`),
			pluginapi.Decision{Action: pluginapi.Mutate, Reason: "tool-guard: rule 4 says mutate", Document: pluginapi.Raw(`{"id":"call-1","name":"search","arguments":{"q":"x","limit":20,"where":{"a":"b"}}}`)},
		},
		{"a rule without a tool is for every tool", "", call("anything", `{"force": true}`), pluginapi.Decision{Action: pluginapi.Deny, Reason: "tool-guard: rule 5 says deny"}},
		{"where no rule matches there is no opinion", "", call("other", `{}`), pluginapi.Decision{Action: pluginapi.Continue}},
		{"the same, said", `, "default": "allow"`, call("other", `{}`), pluginapi.Decision{Action: pluginapi.Continue}},
		{"unless the default is deny", `, "default": "deny"`, call("other", `{}`), pluginapi.Decision{Action: pluginapi.Deny, Reason: "tool-guard: no rule allows this call of other"}},
		{
			"a name that comes twice is denied", "", call("read_file", `{"path":"a","path":"secrets/a"}`),
			pluginapi.Decision{Action: pluginapi.Deny, Reason: `tool-guard: the arguments can't be judged: json: the name "path" comes twice at byte 19`},
		},
		{
			"arguments that are no object are denied", "", call("read_file", `["a"]`),
			pluginapi.Decision{Action: pluginapi.Deny, Reason: "tool-guard: the arguments can't be judged: json: unexpected character, want an object at byte 0"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := &guesttest.Host{Config: rules + c.dflt + "}"}
			got, err := h.Hook(newPlugin(), pluginapi.BeforeTool, c.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTooManyArgumentsAreDenied(t *testing.T) {
	var args strings.Builder
	for i := range maxMembers + 1 {
		args.WriteString(`,"a` + strconv.Itoa(i) + `":1`)
	}
	d, err := new(guesttest.Host).Hook(newPlugin(), pluginapi.BeforeTool, call("a", "{"+args.String()[1:]+"}"))
	if err != nil || d.Action != pluginapi.Deny || !strings.Contains(d.Reason, "more than 1000 members") {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestWithoutConfigurationThereIsNoOpinion(t *testing.T) {
	d, err := new(guesttest.Host).Hook(newPlugin(), pluginapi.BeforeTool, call("a", `{}`))
	if err != nil || d.Action != pluginapi.Continue {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestConfigurationErrorsNameTheRule(t *testing.T) {
	cases := []struct{ name, config, want string }{
		{"no action", `{"rules": [{"action": "allow"}, {"tool": "a"}]}`, "rule 2: action is missing"},
		{"an unknown action", `{"rules": [{"action": "block"}]}`, `rule 1: action "block" is not allow, deny, ask or mutate`},
		{"mutate without set", `{"rules": [{"action": "mutate"}]}`, `rule 1: "set" belongs to the action mutate`},
		{"set without mutate", `{"rules": [{"action": "allow", "set": {"a": 1}}]}`, `rule 1: "set" belongs to the action mutate`},
		{"a broken glob", `{"rules": [{"tool": "[", "action": "allow"}]}`, `rule 1: tool: "[" is no glob`},
		{"a broken expression", `{"rules": [{"arguments": {"p": "("}, "action": "allow"}]}`, "rule 1: arguments: p: error parsing regexp"},
		{"an expression that is no string", `{"rules": [{"arguments": {"p": 1}, "action": "allow"}]}`, "rule 1: arguments: p is not a string"},
		{"an argument twice", `{"rules": [{"arguments": {"p": "a", "p": "b"}, "action": "allow"}]}`, `the name "p" comes twice`},
		{"an unknown field", `{"rules": [{"tools": "a", "action": "allow"}]}`, `rule 1: json: unknown field "tools"`},
		{"an unknown default", `{"default": "ask"}`, `default is not "allow" or "deny"`},
		{"an unknown setting", `{"rule": []}`, `unknown field "rule"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := &guesttest.Host{Config: c.config}
			_, err := h.Hook(newPlugin(), pluginapi.BeforeTool, call("a", `{}`))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
