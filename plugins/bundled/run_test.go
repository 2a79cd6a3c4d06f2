package bundled_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

func request(n uint64) *plugin.Request {
	return &plugin.Request{ProviderRequest: pluginapi.ProviderRequest{
		Call:     pluginapi.CallInfo{Ordinal: n, Iteration: 1, Round: 1, Attempt: 1},
		Messages: []pluginapi.Message{{Role: pluginapi.RoleUser, Text: strings.Repeat("long ago ", 10_000)}},
	}}
}

func TestScriptedStreamsTheDemoAndItsToolAnswers(t *testing.T) {
	p := load(t, "scripted", "", wasm.Grants{Clock: true})
	pieces := 0
	res, err := p.Provider().Complete(t.Context(), plugin.Session{Info: info}, request(1), func(c pluginapi.Chunk) error {
		if c.Type == pluginapi.ChunkText {
			pieces++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pieces != 6 || res.Finish != pluginapi.FinishToolCalls || len(res.Message.ToolCalls) != 1 || res.Usage != nil {
		t.Fatalf("got %+v in %d pieces", res, pieces)
	}
	asked := res.Message.ToolCalls[0]
	out, _, err := p.Tool().Call(t.Context(), plugin.Session{Info: info}, asked)
	if want := (pluginapi.ToolOutput{Text: `{"lines":1,"words":14,"characters":67}`}); err != nil || out != want {
		t.Errorf("%s answers %+v, %v; want %+v", asked.Name, out, err, want)
	}
	res, err = p.Provider().Complete(t.Context(), plugin.Session{Info: info}, request(2), func(pluginapi.Chunk) error { return nil })
	if err != nil || res.Finish != pluginapi.FinishStop || len(res.Message.ToolCalls) != 0 {
		t.Errorf("second call: %+v, %v", res, err)
	}
}

func TestScriptedFailsAsItsScriptSays(t *testing.T) {
	p := load(t, "scripted", `{"script": "{\"steps\": [{\"error\": {\"kind\": \"rate_limited\", \"message\": \"slow down\", \"retry_after_ms\": 1500}}]}"}`, wasm.Grants{})
	for n, want := range []*pluginapi.Failure{
		{Kind: pluginapi.FailRateLimited, Message: "slow down", RetryAfterMS: 1500},
		{Kind: pluginapi.FailExhausted, Message: `the script has 1 step and this is provider call 2; add steps or set "repeat": true`},
	} {
		_, err := p.Provider().Complete(t.Context(), plugin.Session{Info: info}, request(uint64(n+1)), func(pluginapi.Chunk) error { return nil })
		var f *pluginapi.Failure
		errors.As(err, &f)
		if diff := cmp.Diff(want, f); diff != "" {
			t.Errorf("call %d: %v (-want +got):\n%s", n+1, err, diff)
		}
	}
}

func TestScriptedIsInterruptedWhileItWaits(t *testing.T) {
	p := load(t, "scripted", `{"script": {"steps": [{"text": "late", "delay_ms": 3600000}]}}`, wasm.Grants{Clock: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	// Without the interruption the call would end after an hour, with an answer.
	_, err := p.Provider().Complete(ctx, plugin.Session{Info: info}, request(1), func(pluginapi.Chunk) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestStopWhenCountsAcrossInstances(t *testing.T) {
	p := load(t, "stop-when", `{"pattern": "ALL DONE", "unchanged_rounds": 2}`, wasm.Grants{KV: true})
	kv := entries{}
	same := pluginapi.RoundEndDoc{Round: 1, Message: pluginapi.Message{Role: pluginapi.RoleAssistant, Text: "still at it"}}
	for i, want := range []pluginapi.Action{pluginapi.Continue, pluginapi.Continue, pluginapi.Stop} {
		if d := decide(t, p, kv, pluginapi.AfterRound, same); d.Action != want || (want == pluginapi.Stop) != (d.Code == pluginapi.CodeNoProgress) {
			t.Errorf("round %d: got %+v, want %s", i+1, d, want)
		}
	}
	done := pluginapi.RoundEndDoc{Message: pluginapi.Message{Role: pluginapi.RoleAssistant, Text: "ALL DONE"}}
	if d := decide(t, p, kv, pluginapi.AfterRound, done); d.Action != pluginapi.Stop || d.Code != "" {
		t.Errorf("got %+v, want a stop by the pattern", d)
	}
}

func TestToolGuardDeniesAndRewrites(t *testing.T) {
	p := load(t, "tool-guard", `{"rules": [
		{"tool": "write_*", "arguments": {"path": "^secrets/"}, "action": "deny", "reason": "not yours"},
		{"tool": "search_*", "action": "mutate", "set": {"limit": 20}}
	], "default": "allow"}`, wasm.Grants{})
	for _, c := range []struct {
		call pluginapi.ToolCall
		want pluginapi.Decision
	}{
		{pluginapi.ToolCall{ID: "1", Name: "write_file", Arguments: pluginapi.Raw(`{"path":"secrets/a"}`)}, pluginapi.Decision{Action: pluginapi.Deny, Reason: "not yours"}},
		{pluginapi.ToolCall{ID: "2", Name: "read_file", Arguments: pluginapi.Raw(`{"path":"secrets/a"}`)}, pluginapi.Decision{Action: pluginapi.Continue}},
		{
			pluginapi.ToolCall{ID: "3", Name: "search_files", Arguments: pluginapi.Raw(`{"pattern":"x"}`)},
			pluginapi.Decision{
				Action: pluginapi.Mutate, Reason: "tool-guard: rule 2 says mutate",
				Document: pluginapi.Raw(`{"id":"3","name":"search_files","arguments":{"pattern":"x","limit":20}}`),
			},
		},
	} {
		if diff := cmp.Diff(c.want, decide(t, p, nil, pluginapi.BeforeTool, c.call)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.call.Name, diff)
		}
	}
}

func TestRedactTakesSecretsOut(t *testing.T) {
	p := load(t, "redact", `{"literals": [{"name": "pw", "text": "hunter22"}]}`, wasm.Grants{})
	d := decide(t, p, nil, pluginapi.BeforePrompt, pluginapi.PromptDoc{Text: "log in with hunter22 at postgres://app:s3same@db"})
	want := pluginapi.Decision{
		Action: pluginapi.Mutate, Reason: "redacted 2: pw, url-password",
		Document: pluginapi.Raw(`{"text":"log in with [redacted:pw] at postgres://app:[redacted:url-password]@db"}`),
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := decide(t, p, nil, pluginapi.BeforeProvider, request(1).ProviderRequest); d.Action != pluginapi.Continue {
		t.Errorf("before_provider: got %+v, want continue", d)
	}
}

func TestWorkspaceWorksInItsFolderAndNowhereElse(t *testing.T) {
	outer, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outer, "secret"), []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outer, "secret"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	p := load(t, "workspace", "", wasm.Grants{Workspace: root})
	for _, c := range []struct {
		tool, args, want string
		isError          bool
	}{
		{"write_file", `{"path":"a/b/c.txt","content":"one\ntwo\n"}`, "created a/b/c.txt (8 bytes)", false},
		{"write_file", `{"path":"top.txt","content":"two"}`, "created top.txt (3 bytes)", false},
		{"edit_file", `{"path":"a/b/c.txt","old_text":"one","new_text":"1"}`, "edited a/b/c.txt at line 1", false},
		{"read_file", `{"path":"/workspace/a/b/c.txt"}`, "1\ntwo\n", false},
		{"write_file", `{"path":"top.txt","content":"two!"}`, "replaced top.txt (4 bytes)", false},
		{"search_files", `{"pattern":"tw."  ,"regexp":true}`, "a/b/c.txt:2:two\ntop.txt:1:two!", false},
		{"list_files", `{"recursive":true}`, "a/\na/b/\na/b/c.txt\nlink (link)\ntop.txt", false},
		{"read_file", `{"path":"nope"}`, "nope does not exist; list_files shows what there is", true},
		{"read_file", `{"path":"a"}`, "a is a folder", true},
		{"read_file", `{"path":"../secret"}`, "../secret is outside the workspace; give a path relative to the workspace, such as docs/notes.txt", true},
	} {
		if out := call(t, p, c.tool, c.args); out.Text != c.want || out.IsError != c.isError {
			t.Errorf("%s %s:\ngot  %q (error %v)\nwant %q (error %v)", c.tool, c.args, out.Text, out.IsError, c.want, c.isError)
		}
	}
	if out := call(t, p, "read_file", `{"path":"link"}`); !out.IsError || strings.Contains(out.Text, "s3cret") {
		t.Errorf("a link out of the folder: got %q (error %v)", out.Text, out.IsError)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a", "b", "c.txt")); err != nil || string(b) != "1\ntwo\n" {
		t.Errorf("on disk: %q, %v", b, err)
	}
}

func TestAnEditKeepsPermissionsAndANewFileHasTheUsualOnes(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run.sh": 0o755, "usual": 0o666} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY, mode)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("echo one"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	modeOf := func(name string) os.FileMode {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return st.Mode()
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	script := modeOf("run.sh")
	p := load(t, "workspace", "", wasm.Grants{Workspace: root})
	for tool, args := range map[string]string{"edit_file": `{"path":"run.sh","old_text":"one","new_text":"two"}`, "write_file": `{"path":"new.txt","content":"x"}`} {
		if out := call(t, p, tool, args); out.IsError {
			t.Fatalf("%s: %s", tool, out.Text)
		}
	}
	if got := modeOf("run.sh"); got != script {
		t.Errorf("the edited script has mode %v, want %v", got, script)
	}
	if got, want := modeOf("new.txt"), modeOf("usual"); got != want {
		t.Errorf("the new file has mode %v, want %v as any new file", got, want)
	}
}

func TestWorkspaceWithoutAGrantSaysWhatToDo(t *testing.T) {
	p := load(t, "workspace", "", wasm.Grants{})
	_, _, err := p.Tool().Call(t.Context(), plugin.Session{Info: info}, pluginapi.ToolCall{ID: "c", Name: "list_files", Arguments: pluginapi.Raw(`{}`)})
	var f *pluginapi.Failure
	if !errors.As(err, &f) || !strings.Contains(f.Message, "--workspace DIR") {
		t.Errorf("got %v, want a Failure that names --workspace", err)
	}
}
