package pluginapi_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/loophost/loophost/pluginapi"
)

var update = flag.Bool("update", false, "write docs/decision-table.md anew")

var actions = []pluginapi.Action{
	pluginapi.Continue, pluginapi.Allow, pluginapi.Deny, pluginapi.Ask,
	pluginapi.Mutate, pluginapi.Inject, pluginapi.Stop, pluginapi.Abort,
}

// effects says what each action does; denyEffects says it for deny, which differs by point.
var (
	effects = map[pluginapi.Action]string{
		pluginapi.Continue: "nothing",
		pluginapi.Allow:    "nothing; it says yes, it does not overrule a later hook",
		pluginapi.Ask:      "a person decides; with nobody to answer, a deny that says so; ends the chain",
		pluginapi.Mutate:   "later hooks and the host see the rewrite; the original is not stored",
		pluginapi.Inject:   "the text is added as a user message; the texts of several hooks add up, in order",
		pluginapi.Stop:     "raises stop: nothing more is admitted (L-7); the first one gives the reason",
		pluginapi.Abort:    "the run fails with the reason (L-12); ends the chain",
	}
	denyEffects = map[pluginapi.HookPoint]string{
		pluginapi.BeforeTool:     "the tool does not run; the model gets the reason as an error result; ends the chain",
		pluginapi.BeforePrompt:   "the run fails; ends the chain",
		pluginapi.BeforeProvider: "the run fails; ends the chain",
		pluginapi.BeforeFinalize: "the reason is injected and one more round is admitted, five times in a row at most (L-13); ends the chain",
	}
)

// TestDecisionTableDocument keeps docs/decision-table.md true: it is what the
// values of this package say. Write it anew with
//
//	go test ./pluginapi -run DecisionTable -update
func TestDecisionTableDocument(t *testing.T) {
	got := decisionTable(t)
	path := filepath.Join("..", "docs", "decision-table.md")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what pluginapi says; run the test with -update.\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func decisionTable(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# What a hook may decide, and what it does\n\n" +
		"Written by a test of `pluginapi` from the package's own values.\n\n" +
		"Hooks of a point run in their declared order, lower first; each sees what the one before it rewrote.\n" +
		"An answer that is not in this table is a fault of the hook.\n\n" +
		"## Decisions\n\n| point | action | effect |\n|---|---|---|\n")
	for _, p := range pluginapi.HookPoints() {
		if p.Observer() {
			fmt.Fprintf(&b, "| `%s` | any | none: this point only watches; all its hooks run, and nothing is journaled |\n", p)
			continue
		}
		for _, a := range actions {
			if !p.Accepts(a) {
				continue
			}
			effect := effects[a]
			if a == pluginapi.Deny {
				effect = denyEffects[p]
			}
			if effect == "" {
				t.Fatalf("%s accepts %s, and this test has no effect for it", p, a)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p, a, effect)
		}
	}
	b.WriteString("\n## Faults\n\n" +
		"A trap, a timeout, a crash, an oversized or malformed answer: `on_error` of the hook's declaration says what it does.\n" +
		"`allow` goes on and records the fault as a warning. Without `on_error`:\n\n" +
		"| point | a hook that only reads | a hook that may mutate | `on_error` may say |\n|---|---|---|---|\n")
	for _, p := range pluginapi.HookPoints() {
		mutating := "–"
		if p.MayMutate() {
			mutating = string(pluginapi.DefaultOnError(p, true))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p, pluginapi.DefaultOnError(p, false), mutating, onErrorChoices(p))
	}
	b.WriteString("\nAt a point that only watches, `allow` records nothing.\n\n" +
		"## Names from other agents\n\n| alias | point |\n|---|---|\n")
	for _, alias := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreCompact", "Stop", "SessionEnd", "Notification"} {
		p, ok := pluginapi.ParseHookPoint(alias)
		if !ok {
			t.Fatalf("%s is no alias", alias)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", alias, p)
	}
	return b.Bytes()
}

func onErrorChoices(p pluginapi.HookPoint) string {
	list := ""
	for _, e := range []pluginapi.OnError{pluginapi.OnErrorAllow, pluginapi.OnErrorDeny, pluginapi.OnErrorAbort} {
		if (pluginapi.HookDecl{Point: p, OnError: e}).Validate() != nil {
			continue
		}
		if list != "" {
			list += ", "
		}
		list += string(e)
	}
	return list
}
