package plugin_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// called counts the calls of a hook and keeps their inputs.
type called struct {
	times  int
	inputs []pluginapi.HookInput
	next   decide
}

func (c *called) decide(ctx context.Context, s plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error) {
	c.times++
	c.inputs = append(c.inputs, *in)
	return c.next(ctx, s, in)
}

// measured is a hook with a digest and costs, as a loaded plugin has them.
type measured struct {
	plugin.FuncHook
	stats plugin.CallStats
}

func (m measured) Info() plugin.Info {
	return plugin.Info{Name: m.Name, Version: "1", Digest: "sha256:00", Isolation: "wasm"}
}

func (m measured) Run(ctx context.Context, s plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, plugin.CallStats, error) {
	d, err := m.Fn(ctx, s, in)
	return d, m.stats, err
}

func TestHooksRunInDeclaredOrderThenInTheOperators(t *testing.T) {
	var order []string
	noting := func(name string, at int) plugin.FuncHook {
		return hook(name, pluginapi.HookDecl{Point: pluginapi.AfterRound, Order: at}, func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
			order = append(order, name)
			return pluginapi.Decision{Action: pluginapi.Continue}, nil
		})
	}
	c := chain(t, noting("late", 5), noting("zero-a", 0), noting("early", -5), noting("zero-b", 0), noting("zero-c", 0))
	if _, err := c.Run(t.Context(), env, pluginapi.AfterRound, documents(t)[pluginapi.AfterRound]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"early", "zero-a", "zero-b", "zero-c", "late"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestEachHookSeesTheRewriteBeforeIt(t *testing.T) {
	rewrite := func(suffix string) *called {
		return &called{next: func(_ context.Context, _ plugin.Session, in *pluginapi.HookInput) (pluginapi.Decision, error) {
			var p pluginapi.PromptDoc
			if err := json.Unmarshal(in.Document, &p); err != nil {
				return pluginapi.Decision{}, err
			}
			doc, err := json.Marshal(pluginapi.PromptDoc{Text: p.Text + suffix})
			return pluginapi.Decision{Action: pluginapi.Mutate, Document: doc}, err
		}}
	}
	a, b := rewrite("a"), rewrite("b")
	decl := pluginapi.HookDecl{Point: pluginapi.BeforePrompt, Mutates: true}
	v, err := chain(t, hook("a", decl, a.decide), hook("b", decl, b.decide)).Run(t.Context(), env, pluginapi.BeforePrompt, []byte(`{"text":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(a.inputs[0].Document); got != `{"text":"x"}` {
		t.Errorf("the first hook saw %s", got)
	}
	if got := string(b.inputs[0].Document); got != `{"text":"xa"}` {
		t.Errorf("the second hook saw %s", got)
	}
	if !v.Mutated || string(v.Document) != `{"text":"xab"}` {
		t.Errorf("got %s, mutated %v", v.Document, v.Mutated)
	}
}

func TestAFaultyRewriteLeavesTheDocumentAsItWas(t *testing.T) {
	later := &called{next: answers(pluginapi.Decision{Action: pluginapi.Continue})}
	c := chain(t,
		hook("bad", pluginapi.HookDecl{Point: pluginapi.BeforePrompt, Mutates: true, OnError: pluginapi.OnErrorAllow},
			answers(pluginapi.Decision{Action: pluginapi.Mutate, Document: json.RawMessage(`{"txt":"y"}`)})),
		hook("later", pluginapi.HookDecl{Point: pluginapi.BeforePrompt}, later.decide))
	v, err := c.Run(t.Context(), env, pluginapi.BeforePrompt, []byte(`{"text":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if v.Mutated || string(v.Document) != `{"text":"x"}` || string(later.inputs[0].Document) != `{"text":"x"}` {
		t.Errorf("got %s (mutated %v), the later hook saw %s; want the original", v.Document, v.Mutated, later.inputs[0].Document)
	}
	if r := v.Records[0]; r.Action != pluginapi.Continue || !strings.Contains(r.Fault, "malformed") {
		t.Errorf("got record %+v, want continue with a malformed fault", r)
	}
}

func TestInjectionsAddUpAndTheFirstStopCounts(t *testing.T) {
	decl := pluginapi.HookDecl{Point: pluginapi.AfterRound}
	c := chain(t,
		hook("a", decl, answers(pluginapi.Decision{Action: pluginapi.Inject, Text: "one"})),
		hook("b", decl, answers(pluginapi.Decision{Action: pluginapi.Stop, Reason: "stuck", Code: pluginapi.CodeNoProgress})),
		hook("c", decl, answers(pluginapi.Decision{Action: pluginapi.Inject, Text: "two"})),
		hook("d", decl, answers(pluginapi.Decision{Action: pluginapi.Stop, Reason: "late"})),
		hook("e", decl, answers(pluginapi.Decision{Action: pluginapi.Abort, Reason: "over"})),
		hook("f", decl, answers(pluginapi.Decision{Action: pluginapi.Inject, Text: "never"})))
	v, err := c.Run(t.Context(), env, pluginapi.AfterRound, documents(t)[pluginapi.AfterRound])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]plugin.Injection{{Plugin: "a", Text: "one"}, {Plugin: "c", Text: "two"}}, v.Injected); diff != "" {
		t.Errorf("injections (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&plugin.Ruling{Plugin: "b", Action: pluginapi.Stop, Reason: "stuck", Code: pluginapi.CodeNoProgress}, v.Stop); diff != "" {
		t.Errorf("stop (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&plugin.Ruling{Plugin: "e", Action: pluginapi.Abort, Reason: "over"}, v.End); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
}

func TestTheRecordHoldsTheDecisionAndItsCost(t *testing.T) {
	doc := documents(t)[pluginapi.AfterRound]
	stats := plugin.CallStats{Duration: 1500 * time.Microsecond, BytesIn: 10, BytesOut: 20, PeakMemory: 65536, Grants: []string{"kv"}}
	decl := pluginapi.HookDecl{Point: pluginapi.AfterRound}
	c := chain(t,
		measured{hook("ok", decl, answers(pluginapi.Decision{Action: pluginapi.Stop, Reason: "stuck", Code: pluginapi.CodeNoProgress})), stats},
		measured{hook("bad", decl, fails(&plugin.Fault{Plugin: "bad", Kind: plugin.FaultStart, Detail: "no such file"})), stats})
	v, err := c.Run(t.Context(), env, pluginapi.AfterRound, doc)
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(pluginapi.HookInput{Point: pluginapi.AfterRound, Session: env.Session, Loop: env.Loop, Document: doc})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(input)
	want := plugin.Record{
		Point: pluginapi.AfterRound, Plugin: "ok", Digest: "sha256:00", InputSHA256: hex.EncodeToString(sum[:]),
		Action: pluginapi.Stop, Reason: "stuck", Code: pluginapi.CodeNoProgress,
		DurationUS: 1500, BytesIn: 10, BytesOut: 20, PeakMemory: 65536, Grants: []string{"kv"},
	}
	faulty := want
	faulty.Plugin, faulty.Action, faulty.Reason, faulty.Code = "bad", pluginapi.Continue, "", ""
	faulty.Fault = "plugin bad: start: no such file"
	if diff := cmp.Diff([]plugin.Record{want, faulty}, v.Records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestAFaultsTextIsBounded(t *testing.T) {
	fault := &plugin.Fault{Plugin: "bad", Kind: plugin.FaultTrap, Detail: "\xff" + strings.Repeat("€", pluginapi.MaxDecisionReason)}
	v, err := chain(t, hook("bad", pluginapi.HookDecl{Point: pluginapi.BeforeTool}, fails(fault))).
		Run(t.Context(), env, pluginapi.BeforeTool, documents(t)[pluginapi.BeforeTool])
	if err != nil {
		t.Fatal(err)
	}
	got := v.Records[0].Fault
	if len(got) > pluginapi.MaxDecisionReason || len(got) < pluginapi.MaxDecisionReason-3 || strings.ToValidUTF8(got, "") != got {
		t.Errorf("got %d bytes ending in %q, want valid UTF-8 up to the bound", len(got), got[len(got)-4:])
	}
	if v.End.Reason != got {
		t.Error("the ruling's reason is not the record's fault")
	}
}

func TestObserversAllRunAndChangeNothing(t *testing.T) {
	doc := documents(t)[pluginapi.SessionEnd]
	decl := pluginapi.HookDecl{Point: pluginapi.SessionEnd}
	last := &called{next: answers(pluginapi.Decision{Action: "nonsense"})}
	c := chain(t,
		hook("a", decl, answers(pluginapi.Decision{Action: pluginapi.Abort, Reason: "over"})),
		hook("b", decl, fails(errBroken)),
		hook("c", decl, answers(pluginapi.Decision{Action: pluginapi.Mutate, Document: json.RawMessage(`{}`)})),
		hook("d", decl, last.decide))
	v, err := c.Run(t.Context(), env, pluginapi.SessionEnd, doc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plugin.Verdict{Document: doc}, v); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
	if last.times != 1 {
		t.Errorf("the last hook was called %d times, want once", last.times)
	}
}

func TestErrorsThatAreNoFaultsBecomeOne(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		kind plugin.FaultKind
	}{
		"a fault keeps its kind":           {&plugin.Fault{Plugin: "h", Kind: plugin.FaultMemory}, plugin.FaultMemory},
		"a hook's own typed error":         {&pluginapi.Failure{Kind: pluginapi.FailInternal, Message: "m"}, plugin.FaultFailure},
		"a deadline that is not the run's": {context.DeadlineExceeded, plugin.FaultTimeout},
		"any other error":                  {errors.New("boom"), plugin.FaultTrap},
	} {
		t.Run(name, func(t *testing.T) {
			h := measured{FuncHook: hook("h", pluginapi.HookDecl{Point: pluginapi.BeforeTool}, fails(c.err))}
			v, err := chain(t, h).Run(t.Context(), env, pluginapi.BeforeTool, documents(t)[pluginapi.BeforeTool])
			if err != nil {
				t.Fatal(err)
			}
			fault, ok := errors.AsType[*plugin.Fault](v.End.Fault)
			if !ok || fault.Kind != c.kind || fault.Plugin != "h" || !errors.Is(fault, c.err) {
				t.Errorf("got %v, want kind %s around %v", v.End.Fault, c.kind, c.err)
			}
		})
	}
}

func TestContextEndsTheChain(t *testing.T) {
	cause := errors.New("cancelled by the operator")
	trap := &plugin.Fault{Plugin: "cut", Kind: plugin.FaultTrap}
	timeout := &plugin.Fault{Plugin: "cut", Kind: plugin.FaultTimeout}
	for name, c := range map[string]struct {
		err     error // of the hook that ran while ctx ended
		want    error
		records int
	}{
		"an interrupted hook is not at fault":                      {context.Canceled, cause, 1},
		"a trap while ctx ends is the interruption":                {trap, cause, 1},
		"an error of its own while ctx ends is the interruption":   {errors.New("closed"), cause, 1},
		"a decision taken while ctx ended is recorded":             {nil, cause, 2},
		"a timeout of the hook's own is its fault, then ctx shows": {timeout, cause, 2},
	} {
		for _, point := range []pluginapi.HookPoint{pluginapi.AfterRound, pluginapi.Notification} {
			t.Run(name+" at "+string(point), func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				decl := pluginapi.HookDecl{Point: point}
				never := &called{next: answers(pluginapi.Decision{Action: pluginapi.Continue})}
				cut := hook("cut", decl, func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
					cancel(cause)
					return pluginapi.Decision{Action: pluginapi.Continue}, c.err
				})
				chained := chain(t, hook("before", decl, answers(pluginapi.Decision{Action: pluginapi.Continue})), measured{FuncHook: cut}, hook("never", decl, never.decide))
				v, err := chained.Run(ctx, env, point, documents(t)[point])
				if err != c.want {
					t.Errorf("got error %v, want %v", err, c.want)
				}
				want := c.records
				if point.Observer() {
					want = 0
				}
				if len(v.Records) != want {
					t.Errorf("got %d records, want %d", len(v.Records), want)
				}
				if never.times != 0 {
					t.Error("a hook was called after ctx had ended")
				}
			})
		}
	}
}

func TestATimeoutOfTheLastHookIsAFaultAlsoWhereContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := hook("slow", pluginapi.HookDecl{Point: pluginapi.BeforeTool}, func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
		cancel()
		return pluginapi.Decision{}, &plugin.Fault{Plugin: "slow", Kind: plugin.FaultTimeout}
	})
	v, err := chain(t, h).Run(ctx, env, pluginapi.BeforeTool, documents(t)[pluginapi.BeforeTool])
	if err != nil || v.End == nil || v.End.Action != pluginapi.Deny {
		t.Errorf("got %+v, %v; want a deny", v.End, err)
	}
}

func TestADocumentThatIsNotThePointsIsTheHostsMistake(t *testing.T) {
	mutate := answers(pluginapi.Decision{Action: pluginapi.Mutate, Document: json.RawMessage(`{"text":"y"}`)})
	c := chain(t, hook("m", pluginapi.HookDecl{Point: pluginapi.BeforePrompt, Mutates: true}, mutate))
	for name, doc := range map[string]string{"nothing": "", "another point's": `{"iteration":1}`, "no JSON": `{`} {
		t.Run(name, func(t *testing.T) {
			v, err := c.Run(t.Context(), env, pluginapi.BeforePrompt, []byte(doc))
			if !errors.Is(err, plugin.ErrDocument) || len(v.Records) != 0 {
				t.Errorf("got %v and %d records, want ErrDocument and none", err, len(v.Records))
			}
		})
	}
}

func TestHasAndMayMutate(t *testing.T) {
	c := chain(t, plugin.FuncHook{Name: "h", Decls: []pluginapi.HookDecl{
		{Point: pluginapi.BeforeTool}, {Point: pluginapi.AfterProvider, Mutates: true},
	}}, hook("i", pluginapi.HookDecl{Point: pluginapi.BeforeTool, Order: 1}, nil))
	for _, p := range pluginapi.HookPoints() {
		if got, want := c.Has(p), p == pluginapi.BeforeTool || p == pluginapi.AfterProvider; got != want {
			t.Errorf("Has(%s): got %v, want %v", p, got, want)
		}
		if got, want := c.MayMutate(p), p == pluginapi.AfterProvider; got != want {
			t.Errorf("MayMutate(%s): got %v, want %v", p, got, want)
		}
	}
}

func TestAChainWithoutHooksGivesTheDocumentBack(t *testing.T) {
	var zero plugin.Chain
	for _, c := range []*plugin.Chain{chain(t), &zero} {
		v, err := c.Run(t.Context(), env, pluginapi.BeforeTool, []byte(`{}`))
		if diff := cmp.Diff(plugin.Verdict{Document: []byte(`{}`)}, v); diff != "" || err != nil {
			t.Errorf("error %v, verdict (-want +got):\n%s", err, diff)
		}
	}
}

func TestNewChainRefuses(t *testing.T) {
	good := pluginapi.HookDecl{Point: pluginapi.BeforeTool}
	for name, hooks := range map[string][]plugin.Hook{
		"a hook without a name":       {hook("", good, nil)},
		"a name that is none":         {hook("Guard Dog", good, nil)},
		"two hooks of one name":       {hook("h", good, nil), hook("h", pluginapi.HookDecl{Point: pluginapi.AfterTool}, nil)},
		"an unknown point":            {hook("h", pluginapi.HookDecl{Point: "midnight"}, nil)},
		"a point twice":               {plugin.FuncHook{Name: "h", Decls: []pluginapi.HookDecl{good, good}}},
		"mutates where nothing can":   {hook("h", pluginapi.HookDecl{Point: pluginapi.AfterRound, Mutates: true}, nil)},
		"an on_error that is unknown": {hook("h", pluginapi.HookDecl{Point: pluginapi.BeforeTool, OnError: "shrug"}, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := plugin.NewChain(hooks)
			if fault, ok := errors.AsType[*plugin.Fault](err); !ok || fault.Kind != plugin.FaultLoad {
				t.Errorf("got %v, want a fault of kind load", err)
			}
		})
	}
}

// memory is a KV that tells what was kept.
type memory struct {
	kept, staged map[string]string
	open         int
	owners       []string
}

func (m *memory) Get(key string) ([]byte, bool) {
	if v, ok := m.staged[key]; ok {
		return []byte(v), true
	}
	v, ok := m.kept[key]
	return []byte(v), ok
}

func (m *memory) Put(key string, value []byte) error {
	m.staged[key] = string(value)
	return nil
}

func (m *memory) begin(owner string) (plugin.KV, func(bool)) {
	m.staged, m.open, m.owners = map[string]string{}, m.open+1, append(m.owners, owner)
	return m, func(keep bool) {
		m.open--
		if keep {
			for k, v := range m.staged {
				m.kept[k] = v
			}
		}
	}
}

func TestPutsAreKeptWithTheirDecisionOnly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	putting := func(name string, d pluginapi.Decision, err error) plugin.Hook {
		return hook(name, pluginapi.HookDecl{Point: pluginapi.AfterRound}, func(_ context.Context, s plugin.Session, _ *pluginapi.HookInput) (pluginapi.Decision, error) {
			if name == "cut" {
				cancel()
			}
			if _, ok := s.KV.Get("taken"); !ok && name != "taken" {
				t.Errorf("%s does not see what an earlier hook's call kept", name)
			}
			if e := s.KV.Put(name, []byte("v")); e != nil {
				t.Error(e)
			}
			return d, err
		})
	}
	m := &memory{kept: map[string]string{}}
	with := env
	with.KV = m.begin
	ok := pluginapi.Decision{Action: pluginapi.Continue}
	c := chain(t, putting("taken", ok, nil), putting("faulty", ok, errBroken), putting("malformed", pluginapi.Decision{Action: pluginapi.Deny, Reason: "r"}, nil), putting("cut", ok, context.Canceled))
	if _, err := c.Run(ctx, with, pluginapi.AfterRound, documents(t)[pluginapi.AfterRound]); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the end of ctx", err)
	}
	if diff := cmp.Diff(map[string]string{"taken": "v"}, m.kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if m.open != 0 || !cmp.Equal(m.owners, []string{"taken", "faulty", "malformed", "cut"}) {
		t.Errorf("got %d calls left open, opened for %v", m.open, m.owners)
	}
}

func TestAHookIsToldItsSession(t *testing.T) {
	h := &called{next: func(_ context.Context, s plugin.Session, _ *pluginapi.HookInput) (pluginapi.Decision, error) {
		if s.Info != env.Session || s.KV != nil {
			t.Errorf("got session %+v, want %+v without a key-value store", s, env.Session)
		}
		return pluginapi.Decision{Action: pluginapi.Continue}, nil
	}}
	doc := documents(t)[pluginapi.BeforeTool]
	if _, err := chain(t, hook("h", pluginapi.HookDecl{Point: pluginapi.BeforeTool}, h.decide)).Run(t.Context(), env, pluginapi.BeforeTool, doc); err != nil {
		t.Fatal(err)
	}
	want := []pluginapi.HookInput{{Point: pluginapi.BeforeTool, Session: env.Session, Loop: env.Loop, Document: doc}}
	if diff := cmp.Diff(want, h.inputs, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
}
