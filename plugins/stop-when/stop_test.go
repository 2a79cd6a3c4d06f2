package main

import (
	"strings"
	"testing"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

func round(text string, args string, result string) pluginapi.RoundEndDoc {
	d := pluginapi.RoundEndDoc{Iteration: 1, Round: 1, Message: pluginapi.Message{Role: pluginapi.RoleAssistant, Text: text}}
	if args != "" {
		d.Message.ToolCalls = []pluginapi.ToolCall{{ID: "x", Name: "read_file", Arguments: pluginapi.Raw(args)}}
		d.Results = []pluginapi.ToolResult{{CallID: "x", Name: "read_file", Status: pluginapi.ResultOK, Text: result}}
	}
	return d
}

func TestThePatternRaisesStop(t *testing.T) {
	cases := []struct {
		name, config string
		doc          pluginapi.RoundEndDoc
		reason       string // "": continue
	}{
		{"in the answer", `{"pattern": "ALL (DONE|GREEN)"}`, round("now ALL GREEN!", "", ""), "the pattern ALL (DONE|GREEN) appears in the answer"},
		{"in a tool result", `{"pattern": "^ok$"}`, round("see", `{}`, "ok"), "the pattern ^ok$ appears in the result of the tool read_file"},
		{"not in the arguments", `{"pattern": "secret"}`, round("see", `{"q":"secret"}`, "none"), ""},
		{"nowhere", `{"pattern": "DONE"}`, round("done", "", ""), ""},
		{"a line of its own", `{"pattern": "(?m)^DONE$"}`, round("so\nDONE\n", "", ""), "the pattern (?m)^DONE$ appears in the answer"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := &guesttest.Host{Config: c.config, DenyKV: true} // a pattern alone needs no store
			d, err := h.Hook(newPlugin(), pluginapi.AfterRound, c.doc)
			if err != nil {
				t.Fatal(err)
			}
			want := pluginapi.Decision{Action: pluginapi.Continue}
			if c.reason != "" {
				want = pluginapi.Decision{Action: pluginapi.Stop, Reason: c.reason}
			}
			if d.Action != want.Action || d.Reason != want.Reason || d.Code != "" {
				t.Errorf("got %+v, want %+v", d, want)
			}
		})
	}
}

func TestUnchangedRoundsRaiseStop(t *testing.T) {
	a, b := round("a", `{"x": 1}`, "r"), round("a", `{"x": 2}`, "r")
	spaced := round("a", `{ "x" : 1 }`, "r")
	spaced.Message.ToolCalls[0].ID, spaced.Results[0].CallID = "y", "y"
	failed := round("a", `{"x": 1}`, "r")
	failed.Results[0].Status = pluginapi.ResultError
	cases := []struct {
		name   string
		n      string
		rounds []pluginapi.RoundEndDoc
		stopAt int // index of the first round that raises stop; -1: none
	}{
		{"the second like the first, limit 1", "1", []pluginapi.RoundEndDoc{a, a}, 1},
		{"limit 2 needs three alike", "2", []pluginapi.RoundEndDoc{a, a, a}, 2},
		{"a change starts the count again", "2", []pluginapi.RoundEndDoc{a, a, b, b, a, a}, -1},
		{"ids and white space don't count", "1", []pluginapi.RoundEndDoc{a, spaced}, 1},
		{"another status is a change", "1", []pluginapi.RoundEndDoc{a, failed}, -1},
		{"another result is a change", "1", []pluginapi.RoundEndDoc{a, round("a", `{"x":1}`, "s")}, -1},
		{"another text is a change", "1", []pluginapi.RoundEndDoc{round("a", "", ""), round("b", "", "")}, -1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := &guesttest.Host{Config: `{"unchanged_rounds": ` + c.n + `}`}
			got := -1
			for i, doc := range c.rounds {
				// A plugin of its own for each round: the state is not the instance's.
				d, err := h.Hook(newPlugin(), pluginapi.AfterRound, doc)
				if err != nil {
					t.Fatal(err)
				}
				if d.Action == pluginapi.Stop {
					if d.Code != pluginapi.CodeNoProgress || !strings.HasPrefix(d.Reason, "nothing has changed for "+map[string]string{"1": "a round:", "2": "2 rounds:"}[c.n]) {
						t.Errorf("got %+v", d)
					}
					got = i
					break
				}
			}
			if got != c.stopAt {
				t.Errorf("stop after round %d, want %d", got, c.stopAt)
			}
		})
	}
}

func TestTheCountBelongsToOneLoop(t *testing.T) {
	doc := round("a", "", "")
	other := "0190a000-0000-7000-8000-0000000000ff " + fingerprint(&doc) + " 5"
	h := &guesttest.Host{Config: `{"unchanged_rounds": 1}`, KV: map[string]string{stateKey: other}}
	if d, err := h.Hook(newPlugin(), pluginapi.AfterRound, doc); err != nil || d.Action != pluginapi.Continue {
		t.Errorf("got %+v, %v, want continue", d, err)
	}
}

func TestFaults(t *testing.T) {
	doc := round("a", "", "")
	cases := []struct {
		name string
		host guesttest.Host
		want string
	}{
		{"no setting", guesttest.Host{}, "has neither pattern nor unchanged_rounds"},
		{"a pattern that doesn't compile", guesttest.Host{Config: `{"pattern": "("}`}, "missing closing )"},
		{"an empty pattern", guesttest.Host{Config: `{"pattern": ""}`}, "pattern is empty"},
		{"zero rounds", guesttest.Host{Config: `{"unchanged_rounds": 0}`}, "is not 1 or more"},
		{"an unknown setting", guesttest.Host{Config: `{"patern": "x"}`}, `unknown field "patern"`},
		{"no key-value store", guesttest.Host{Config: `{"unchanged_rounds": 1}`, DenyKV: true}, "not granted"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.host.Hook(newPlugin(), pluginapi.AfterRound, doc)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	damaged := guesttest.Host{Config: `{"unchanged_rounds": 1}`}
	damaged.KV = map[string]string{stateKey: "0190a000-0000-7000-8000-000000000003 " + fingerprint(&doc) + " many"}
	if _, err := damaged.Hook(newPlugin(), pluginapi.AfterRound, doc); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a damaged entry: got %v", err)
	}
}
