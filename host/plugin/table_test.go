package plugin_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

var errBroken = &plugin.Fault{Plugin: "first", Kind: plugin.FaultTrap, Detail: "unreachable"}

// effect is what a verdict says, without its records.
type effect struct {
	Mutated  bool
	Injected []plugin.Injection
	Stop     string // reason
	End      pluginapi.Action
	Faulty   bool // the end is a fault's
	Later    bool // the next hook of the point was called
}

// TestDecisionTable gives every point every action, complete in itself. What a
// point does not accept is a fault, and does what a fault does there.
func TestDecisionTable(t *testing.T) {
	deny, abort, goOn := effect{End: pluginapi.Deny, Faulty: true}, effect{End: pluginapi.Abort, Faulty: true}, effect{Later: true}
	taken := map[pluginapi.Action]effect{
		pluginapi.Continue: goOn,
		pluginapi.Allow:    goOn,
		pluginapi.Deny:     {End: pluginapi.Deny},
		pluginapi.Ask:      {End: pluginapi.Ask},
		pluginapi.Mutate:   {Mutated: true, Later: true},
		pluginapi.Inject:   {Injected: []plugin.Injection{{Plugin: "first", Text: "more"}}, Later: true},
		pluginapi.Stop:     {Stop: "enough", Later: true},
		pluginapi.Abort:    {End: pluginapi.Abort},
	}
	rows := []struct {
		point   pluginapi.HookPoint
		accepts []pluginapi.Action
		fault   effect // of a hook that only reads
	}{
		{pluginapi.SessionStart, []pluginapi.Action{"continue", "inject", "stop", "abort"}, goOn},
		{pluginapi.BeforePrompt, []pluginapi.Action{"continue", "allow", "deny", "mutate", "inject", "stop", "abort"}, deny},
		{pluginapi.BeforeRound, []pluginapi.Action{"continue", "inject", "stop", "abort"}, goOn},
		{pluginapi.BeforeProvider, []pluginapi.Action{"continue", "allow", "deny", "mutate", "inject", "stop", "abort"}, deny},
		{pluginapi.AfterProvider, []pluginapi.Action{"continue", "mutate", "inject", "stop", "abort"}, goOn},
		{pluginapi.BeforeTool, []pluginapi.Action{"continue", "allow", "deny", "ask", "mutate", "inject", "stop", "abort"}, deny},
		{pluginapi.AfterTool, []pluginapi.Action{"continue", "mutate", "inject", "stop", "abort"}, goOn},
		{pluginapi.BeforeCompaction, []pluginapi.Action{"continue", "inject", "stop", "abort"}, goOn},
		{pluginapi.AfterCompaction, nil, goOn},
		{pluginapi.AfterRound, []pluginapi.Action{"continue", "inject", "stop", "abort"}, goOn},
		{pluginapi.BeforeFinalize, []pluginapi.Action{"continue", "allow", "deny", "stop", "abort"}, abort},
		{pluginapi.SessionEnd, nil, goOn},
		{pluginapi.Notification, nil, goOn},
	}
	if len(rows) != len(pluginapi.HookPoints()) {
		t.Fatalf("%d rows, want one for each of the %d points", len(rows), len(pluginapi.HookPoints()))
	}
	docs := documents(t)
	for _, row := range rows {
		for _, d := range []pluginapi.Decision{
			{Action: pluginapi.Continue},
			{Action: pluginapi.Allow},
			{Action: pluginapi.Deny, Reason: "no"},
			{Action: pluginapi.Ask, Reason: "sure?"},
			{Action: pluginapi.Mutate, Document: docs[row.point]},
			{Action: pluginapi.Inject, Text: "more"},
			{Action: pluginapi.Stop, Reason: "enough"},
			{Action: pluginapi.Abort, Reason: "over"},
		} {
			t.Run(string(row.point)+" "+string(d.Action), func(t *testing.T) {
				want := row.fault
				if slices.Contains(row.accepts, d.Action) {
					want = taken[d.Action]
				}
				decl := pluginapi.HookDecl{Point: row.point, Mutates: d.Action == pluginapi.Mutate && row.point.MayMutate()}
				got, _ := effectOf(t, decl, answers(d), docs[row.point])
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("effect (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestFaultsDoWhatOnErrorSays takes every choice at every point that has it, and the default.
func TestFaultsDoWhatOnErrorSays(t *testing.T) {
	deny, abort, goOn := effect{End: pluginapi.Deny, Faulty: true}, effect{End: pluginapi.Abort, Faulty: true}, effect{Later: true}
	cases := []struct {
		point   pluginapi.HookPoint
		mutates bool
		onError pluginapi.OnError
		want    effect
	}{
		{pluginapi.SessionStart, false, "", goOn},
		{pluginapi.SessionStart, false, "abort", abort},
		{pluginapi.BeforePrompt, false, "", deny},
		{pluginapi.BeforePrompt, true, "", abort},
		{pluginapi.BeforePrompt, true, "deny", deny},
		{pluginapi.BeforePrompt, false, "allow", goOn},
		{pluginapi.BeforeRound, false, "", goOn},
		{pluginapi.BeforeRound, false, "abort", abort},
		{pluginapi.BeforeProvider, false, "", deny},
		{pluginapi.BeforeProvider, true, "", abort},
		{pluginapi.BeforeProvider, true, "allow", goOn},
		{pluginapi.AfterProvider, false, "", goOn},
		{pluginapi.AfterProvider, true, "", abort},
		{pluginapi.AfterProvider, true, "allow", goOn},
		{pluginapi.BeforeTool, false, "", deny},
		{pluginapi.BeforeTool, true, "", abort},
		{pluginapi.BeforeTool, false, "allow", goOn},
		{pluginapi.BeforeTool, false, "abort", abort},
		{pluginapi.AfterTool, false, "", goOn},
		{pluginapi.AfterTool, true, "", abort},
		{pluginapi.BeforeCompaction, false, "", goOn},
		{pluginapi.AfterCompaction, false, "", goOn},
		{pluginapi.AfterRound, false, "", goOn},
		{pluginapi.AfterRound, false, "abort", abort},
		{pluginapi.BeforeFinalize, false, "", abort},
		{pluginapi.BeforeFinalize, false, "deny", deny},
		{pluginapi.BeforeFinalize, false, "allow", goOn},
		{pluginapi.SessionEnd, false, "", goOn},
		{pluginapi.Notification, false, "allow", goOn},
	}
	docs := documents(t)
	for _, c := range cases {
		name := string(c.point) + " on_error " + string(c.onError)
		if c.mutates {
			name += " of a hook that may mutate"
		}
		t.Run(name, func(t *testing.T) {
			decl := pluginapi.HookDecl{Point: c.point, Mutates: c.mutates, OnError: c.onError}
			got, v := effectOf(t, decl, fails(errBroken), docs[c.point])
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("effect (-want +got):\n%s", diff)
			}
			if v.End != nil && (!errors.Is(v.End.Fault, errBroken) || v.End.Reason != errBroken.Error()) {
				t.Errorf("the end: got fault %v and reason %q, want %v", v.End.Fault, v.End.Reason, errBroken)
			}
			if !c.point.Observer() && v.Records[0].Fault != errBroken.Error() {
				t.Errorf("the record: got fault %q, want %q", v.Records[0].Fault, errBroken)
			}
		})
	}
}

// effectOf runs fn before a hook that only notes that it was called.
func effectOf(t *testing.T, decl pluginapi.HookDecl, fn decide, doc []byte) (effect, plugin.Verdict) {
	t.Helper()
	later := &called{next: answers(pluginapi.Decision{Action: pluginapi.Continue})}
	c := chain(t, hook("first", decl, fn), hook("second", pluginapi.HookDecl{Point: decl.Point}, later.decide))
	v, err := c.Run(t.Context(), env, decl.Point, doc)
	if err != nil {
		t.Fatal(err)
	}
	got := effect{Mutated: v.Mutated, Injected: v.Injected, Later: later.times == 1}
	if v.Stop != nil {
		got.Stop = v.Stop.Reason
	}
	if v.End != nil {
		got.End, got.Faulty = v.End.Action, v.End.Fault != nil
	}
	want := 1
	if got.Later {
		want = 2
	}
	if decl.Point.Observer() {
		want = 0
	}
	if len(v.Records) != want {
		t.Errorf("got %d records, want %d", len(v.Records), want)
	}
	return got, v
}
