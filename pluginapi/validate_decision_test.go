package pluginapi_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loophost/loophost/pluginapi"
)

func TestDecisionValidate(t *testing.T) {
	doc := json.RawMessage(` {"id":"1"}`)
	long := strings.Repeat("r", pluginapi.MaxDecisionReason)
	cases := []struct {
		name    string
		point   pluginapi.HookPoint
		mutates bool
		d       pluginapi.Decision
		field   string // of the error; "": valid
	}{
		{"continue needs nothing", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Continue}, ""},
		{"continue may give a reason", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Continue, Reason: "seen"}, ""},
		{"an empty action is none", pluginapi.AfterRound, false, pluginapi.Decision{}, "action"},
		{"an unknown action", pluginapi.AfterRound, false, pluginapi.Decision{Action: "block"}, "action"},
		{"an action of another point", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Deny, Reason: "r"}, "action"},
		{"an unknown point accepts nothing", "midnight", false, pluginapi.Decision{Action: pluginapi.Continue}, "action"},
		{"an observer may continue", pluginapi.SessionEnd, false, pluginapi.Decision{Action: pluginapi.Continue}, ""},
		{"an observer may do nothing else", pluginapi.SessionEnd, false, pluginapi.Decision{Action: pluginapi.Abort, Reason: "r"}, "action"},
		{"deny with a reason", pluginapi.BeforeTool, false, pluginapi.Decision{Action: pluginapi.Deny, Reason: "r"}, ""},
		{"deny without a reason", pluginapi.BeforeTool, false, pluginapi.Decision{Action: pluginapi.Deny}, "reason"},
		{"ask without a reason", pluginapi.BeforeTool, false, pluginapi.Decision{Action: pluginapi.Ask}, "reason"},
		{"stop without a reason", pluginapi.BeforeTool, false, pluginapi.Decision{Action: pluginapi.Stop}, "reason"},
		{"abort without a reason", pluginapi.BeforeTool, false, pluginapi.Decision{Action: pluginapi.Abort}, "reason"},
		{"a reason at its bound", pluginapi.BeforeTool, false, pluginapi.Decision{Action: pluginapi.Deny, Reason: long}, ""},
		{"a reason over its bound", pluginapi.BeforeTool, false, pluginapi.Decision{Action: pluginapi.Continue, Reason: long + "r"}, "reason"},
		{"a reason that is not UTF-8", pluginapi.BeforeTool, false, pluginapi.Decision{Action: pluginapi.Deny, Reason: "\xff"}, "reason"},
		{"a stop with the known code", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Stop, Reason: "r", Code: pluginapi.CodeNoProgress}, ""},
		{"a stop with an unknown code", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Stop, Reason: "r", Code: "tired"}, "code"},
		{"a code without a stop", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Abort, Reason: "r", Code: pluginapi.CodeNoProgress}, "code"},
		{"a declared mutate with a document", pluginapi.BeforeTool, true, pluginapi.Decision{Action: pluginapi.Mutate, Document: doc}, ""},
		{"a mutate that was not declared", pluginapi.BeforeTool, false, pluginapi.Decision{Action: pluginapi.Mutate, Document: doc}, "action"},
		{"a mutate without a document", pluginapi.BeforeTool, true, pluginapi.Decision{Action: pluginapi.Mutate}, "document"},
		{"a mutate to null", pluginapi.BeforeTool, true, pluginapi.Decision{Action: pluginapi.Mutate, Document: json.RawMessage("null")}, "document"},
		{"a mutate to a list", pluginapi.BeforeTool, true, pluginapi.Decision{Action: pluginapi.Mutate, Document: json.RawMessage("[{}]")}, "document"},
		{"a document without a mutate", pluginapi.BeforeTool, true, pluginapi.Decision{Action: pluginapi.Allow, Document: doc}, "document"},
		{"an inject with a text", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Inject, Text: "t"}, ""},
		{"an inject without a text", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Inject}, "text"},
		{"an inject that is not UTF-8", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Inject, Text: "\xff"}, "text"},
		{"a text without an inject", pluginapi.AfterRound, false, pluginapi.Decision{Action: pluginapi.Continue, Text: "t"}, "text"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { wantInvalid(t, c.d.Validate(c.point, c.mutates), "decision", c.field) })
	}
}

// TestDecisionValidateAgreesWithAccepts gives each point each action, complete in itself.
func TestDecisionValidateAgreesWithAccepts(t *testing.T) {
	for _, p := range pluginapi.HookPoints() {
		for _, d := range []pluginapi.Decision{
			{Action: pluginapi.Continue},
			{Action: pluginapi.Allow},
			{Action: pluginapi.Deny, Reason: "r"},
			{Action: pluginapi.Ask, Reason: "r"},
			{Action: pluginapi.Mutate, Document: json.RawMessage("{}")},
			{Action: pluginapi.Inject, Text: "t"},
			{Action: pluginapi.Stop, Reason: "r"},
			{Action: pluginapi.Abort, Reason: "r"},
		} {
			err := d.Validate(p, true)
			if got, want := err == nil, p.Accepts(d.Action); got != want {
				t.Errorf("%s at %s: valid %v (%v), want %v", d.Action, p, got, err, want)
			}
		}
	}
}

func wantInvalid(t *testing.T, err error, document, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Fatalf("got %v, want valid", err)
		}
		return
	}
	var invalid *pluginapi.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an InvalidError for %s", err, field)
	}
	if invalid.Document != document || invalid.Field != field {
		t.Errorf("got %s %s (%v), want %s %s", invalid.Document, invalid.Field, err, document, field)
	}
	if invalid.Problem == "" {
		t.Error("the error does not say what is wrong")
	}
}
