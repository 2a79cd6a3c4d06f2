package plugin_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

var env = plugin.Env{
	Session: pluginapi.SessionInfo{ID: "s1", ExecutionID: "e1", Generation: "g1", Revision: 7},
	Loop:    pluginapi.LoopInfo{Status: "running", MaxIterations: 2, MaxTotalRounds: 4, IterationsStarted: 1, RoundsStarted: 1},
}

// documents holds a document of every point, as a host would encode it.
func documents(t testing.TB) map[pluginapi.HookPoint][]byte {
	t.Helper()
	call := pluginapi.ToolCall{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a","n":9007199254740993}`)}
	result := pluginapi.ToolResult{CallID: "c1", Name: "read", Status: pluginapi.ResultOK, Text: "text"}
	answer := pluginapi.Message{Role: pluginapi.RoleAssistant, Text: "I read", ToolCalls: []pluginapi.ToolCall{call}}
	tokens := uint64(10)
	docs := map[pluginapi.HookPoint]any{
		pluginapi.SessionStart: pluginapi.StartDoc{Objective: "o"},
		pluginapi.BeforePrompt: pluginapi.PromptDoc{Text: "o"},
		pluginapi.BeforeRound:  pluginapi.RoundDoc{Iteration: 1, Round: 1},
		pluginapi.BeforeProvider: pluginapi.ProviderRequest{
			Call: pluginapi.CallInfo{Ordinal: 1, Iteration: 1, Round: 1, Attempt: 1}, Model: "m",
			Tools: []pluginapi.ToolSpec{{Name: "read", InputSchema: json.RawMessage(`{}`)}},
			Messages: []pluginapi.Message{
				{Role: pluginapi.RoleUser, Text: "o"}, answer, {Role: pluginapi.RoleTool, Result: &result},
			},
		},
		pluginapi.AfterProvider:    pluginapi.AnswerDoc{Message: answer, Usage: &pluginapi.Usage{InputTokens: &tokens}},
		pluginapi.BeforeTool:       call,
		pluginapi.AfterTool:        pluginapi.ToolResultDoc{Call: call, Result: result},
		pluginapi.BeforeCompaction: pluginapi.RoundDoc{Iteration: 1, Round: 1},
		pluginapi.AfterCompaction:  pluginapi.RoundDoc{Iteration: 1, Round: 1},
		pluginapi.AfterRound:       pluginapi.RoundEndDoc{Iteration: 1, Round: 1, Message: answer, Results: []pluginapi.ToolResult{result}},
		pluginapi.BeforeFinalize:   pluginapi.FinalizeDoc{FinalText: "done"},
		pluginapi.SessionEnd:       pluginapi.EndDoc{Status: "completed"},
		pluginapi.Notification:     pluginapi.NotificationDoc{Kind: "retry", Text: "t"},
	}
	encoded := map[pluginapi.HookPoint][]byte{}
	for p, doc := range docs {
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		encoded[p] = data
	}
	return encoded
}

// decide is what a hook of these tests does.
type decide = func(ctx context.Context, s plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error)

// answers always gives d.
func answers(d pluginapi.Decision) decide {
	return func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) { return d, nil }
}

// fails always gives err.
func fails(err error) decide {
	return func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
		return pluginapi.Decision{}, err
	}
}

// hook subscribes fn to one point.
func hook(name string, decl pluginapi.HookDecl, fn decide) plugin.FuncHook {
	return plugin.FuncHook{Name: name, Decls: []pluginapi.HookDecl{decl}, Fn: fn}
}

func chain(t testing.TB, hooks ...plugin.Hook) *plugin.Chain {
	t.Helper()
	c, err := plugin.NewChain(hooks)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
