package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// scripted is a hook whose answer is known beforehand.
type scripted struct {
	Name   string
	Decl   pluginapi.HookDecl
	Answer pluginapi.Decision
	Err    error
	Sound  bool // the answer is well formed, whether or not the point accepts it
}

// outcome is what a run of a chain shows, in plain words.
type outcome struct {
	Seen     []string // "plugin document", as the hooks were called
	Document string
	Mutated  bool
	Injected []string // "plugin text"
	Stop     string   // "plugin reason"
	End      string   // "plugin action", with " fault" for a fault's
	Records  []string // "plugin action", with " fault" for a fault's
}

// marks are the texts of each point's document that a rewrite may change.
var marks = map[pluginapi.HookPoint]string{
	pluginapi.BeforePrompt: `"text":"o"`, pluginapi.BeforeProvider: `"model":"m"`, pluginapi.AfterProvider: `"text":"I read"`,
	pluginapi.BeforeTool: `"name":"read"`, pluginapi.AfterTool: `"text":"text"`,
}

// rewritten is the point's document with its mark set to text.
func rewritten(point pluginapi.HookPoint, doc []byte, text string) []byte {
	mark := marks[point]
	if mark == "" {
		return doc
	}
	field, _, _ := strings.Cut(mark, ":")
	return []byte(strings.Replace(string(doc), mark, field+`:"`+text+`"`, 1))
}

// expected says what the rules of the decision table come to, one rule after
// the other and without a loop over the chain's state.
func expected(point pluginapi.HookPoint, hooks []scripted, doc []byte) outcome {
	var inOrder []scripted
	for order := -2; order <= 2; order++ {
		for _, h := range hooks {
			if h.Decl.Order == order {
				inOrder = append(inOrder, h)
			}
		}
	}
	if point.Observer() {
		want := outcome{Document: string(doc)}
		for _, h := range inOrder {
			want.Seen = append(want.Seen, h.Name+" "+string(doc))
		}
		return want
	}

	words := make([]string, len(inOrder)) // what each would come to
	for i, h := range inOrder {
		words[i] = string(h.Answer.Action)
		undeclared := h.Answer.Action == pluginapi.Mutate && !h.Decl.Mutates
		if h.Err != nil || !h.Sound || undeclared || !point.Accepts(h.Answer.Action) {
			words[i] = faultWord(point, h.Decl)
		}
	}
	asked := len(inOrder)
	for i := len(words) - 1; i >= 0; i-- {
		switch word, _, _ := strings.Cut(words[i], " "); word {
		case "abort", "deny", "ask":
			asked = i + 1
		}
	}

	want := outcome{}
	for i := range asked {
		current, n := documentAfter(inOrder[:i], words, doc)
		want.Seen = append(want.Seen, inOrder[i].Name+" "+string(current))
		want.Records = append(want.Records, inOrder[i].Name+" "+words[i])
		if words[i] == "inject" {
			want.Injected = append(want.Injected, inOrder[i].Name+" "+inOrder[i].Answer.Text)
		}
		if words[i] == "stop" && want.Stop == "" {
			want.Stop = inOrder[i].Name + " " + inOrder[i].Answer.Reason
		}
		want.Mutated = n > 0 || words[i] == "mutate"
	}
	final, _ := documentAfter(inOrder[:asked], words, doc)
	want.Document = string(final)
	if asked > 0 {
		switch word, _, _ := strings.Cut(words[asked-1], " "); word {
		case "abort", "deny", "ask":
			want.End = inOrder[asked-1].Name + " " + words[asked-1]
		}
	}
	return want
}

// documentAfter is the last rewrite among hooks, or doc, and how many there were.
func documentAfter(hooks []scripted, words []string, doc []byte) (last []byte, n int) {
	last = doc
	for i, h := range hooks {
		if words[i] == "mutate" {
			last, n = h.Answer.Document, n+1
		}
	}
	return last, n
}

// faultWord restates what a fault does, without the package's own function.
func faultWord(point pluginapi.HookPoint, decl pluginapi.HookDecl) string {
	gate := point == pluginapi.BeforeTool || point == pluginapi.BeforePrompt || point == pluginapi.BeforeProvider
	switch {
	case decl.OnError == pluginapi.OnErrorAllow:
		return "continue fault"
	case decl.OnError != "":
		return string(decl.OnError) + " fault"
	case decl.Mutates || point == pluginapi.BeforeFinalize:
		return "abort fault"
	case gate:
		return "deny fault"
	}
	return "continue fault"
}

// observed runs the chain and puts what it shows in the model's words.
func observed(t *rapid.T, point pluginapi.HookPoint, script []scripted, doc []byte) outcome {
	var got outcome
	hooks := make([]plugin.Hook, len(script))
	for i, s := range script {
		hooks[i] = hook(s.Name, s.Decl, func(_ context.Context, _ plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error) {
			got.Seen = append(got.Seen, s.Name+" "+string(in.Document))
			return s.Answer, s.Err
		})
	}
	c, err := plugin.NewChain(hooks)
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.Run(context.Background(), env, point, doc)
	if err != nil {
		t.Fatal(err)
	}
	got.Document, got.Mutated = string(v.Document), v.Mutated
	for _, in := range v.Injected {
		got.Injected = append(got.Injected, in.Plugin+" "+in.Text)
	}
	if v.Stop != nil {
		got.Stop = v.Stop.Plugin + " " + v.Stop.Reason
	}
	if v.End != nil {
		got.End = v.End.Plugin + " " + string(v.End.Action) + faultSuffix(v.End.Fault != nil)
	}
	for _, r := range v.Records {
		got.Records = append(got.Records, r.Plugin+" "+string(r.Action)+faultSuffix(r.Fault != ""))
	}
	return got
}

func faultSuffix(fault bool) string {
	if fault {
		return " fault"
	}
	return ""
}

func drawHook(t *rapid.T, point pluginapi.HookPoint, doc []byte, i int) scripted {
	s := scripted{Name: fmt.Sprintf("h%d", i), Sound: true}
	s.Decl = pluginapi.HookDecl{Point: point, Order: rapid.IntRange(-2, 2).Draw(t, "order")}
	s.Decl.Mutates = point.MayMutate() && rapid.Bool().Draw(t, "mutates")
	choices := []pluginapi.OnError{pluginapi.OnErrorDefault}
	for _, e := range []pluginapi.OnError{pluginapi.OnErrorAllow, pluginapi.OnErrorDeny, pluginapi.OnErrorAbort} {
		if (pluginapi.HookDecl{Point: point, OnError: e}).Validate() == nil {
			choices = append(choices, e)
		}
	}
	s.Decl.OnError = rapid.SampledFrom(choices).Draw(t, "on error")
	// Endings are rare, so that chains get long.
	action := rapid.SampledFrom([]pluginapi.Action{
		pluginapi.Continue, pluginapi.Allow, pluginapi.Mutate, pluginapi.Mutate, pluginapi.Inject, pluginapi.Inject, pluginapi.Stop, pluginapi.Stop,
		pluginapi.Deny, pluginapi.Ask, pluginapi.Abort,
	}).Draw(t, "action")
	s.Answer = pluginapi.Decision{Action: action}
	switch action {
	case pluginapi.Mutate:
		s.Answer.Document = rewritten(point, doc, s.Name)
	case pluginapi.Inject:
		s.Answer.Text = "from " + s.Name
	case pluginapi.Stop, pluginapi.Deny, pluginapi.Ask, pluginapi.Abort:
		s.Answer.Reason = "because of " + s.Name
	}
	switch rapid.IntRange(0, 9).Draw(t, "flaw") {
	case 0:
		s.Err = errors.New("boom")
	case 1:
		s.Sound, s.Answer.Code = false, "unheard of"
	case 2:
		if action == pluginapi.Mutate {
			s.Sound, s.Answer.Document = false, json.RawMessage(`{"no such field":1}`)
		}
	}
	return s
}

func TestAChainDoesWhatItsRulesSayOneByOne(t *testing.T) {
	docs := documents(t)
	rapid.Check(t, func(t *rapid.T) {
		point := rapid.SampledFrom(pluginapi.HookPoints()).Draw(t, "point")
		script := make([]scripted, rapid.IntRange(0, 7).Draw(t, "hooks"))
		for i := range script {
			script[i] = drawHook(t, point, docs[point], i)
		}
		want, got := expected(point, script, docs[point]), observed(t, point, script, docs[point])
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", point, diff)
		}
	})
}
