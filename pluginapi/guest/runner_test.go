package guest_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

func hook(f func(*guest.HookCall) (pluginapi.Decision, error)) guest.Plugin {
	return guest.Plugin{Hook: f}
}

// failureOf is err as a Failure; the zero Failure where it is none.
func failureOf(err error) pluginapi.Failure {
	var f *pluginapi.Failure
	if errors.As(err, &f) {
		return *f
	}
	return pluginapi.Failure{}
}

func TestAHookReadsTheDocumentOfItsPoint(t *testing.T) {
	call := pluginapi.ToolCall{ID: "c", Name: "n", Arguments: pluginapi.Raw(`{"a":1}`)}
	message := pluginapi.Message{Role: pluginapi.RoleAssistant, Text: "t"}
	result := pluginapi.ToolResult{CallID: "c", Name: "n", Status: pluginapi.ResultOK, Text: "r"}
	cases := map[pluginapi.HookPoint]struct {
		doc  any
		read func(*guest.HookCall) (any, error)
	}{
		pluginapi.SessionStart:   {pluginapi.StartDoc{Objective: "o", Messages: 1}, func(c *guest.HookCall) (any, error) { return c.Start() }},
		pluginapi.BeforePrompt:   {pluginapi.PromptDoc{Text: "p"}, func(c *guest.HookCall) (any, error) { return c.Prompt() }},
		pluginapi.BeforeRound:    {pluginapi.RoundDoc{Iteration: 1, Round: 2}, func(c *guest.HookCall) (any, error) { return c.Round() }},
		pluginapi.BeforeProvider: {pluginapi.ProviderRequest{Model: "m", Messages: []pluginapi.Message{message}}, func(c *guest.HookCall) (any, error) { return c.Request() }},
		pluginapi.AfterProvider:  {pluginapi.AnswerDoc{Message: message}, func(c *guest.HookCall) (any, error) { return c.Answer() }},
		pluginapi.BeforeTool:     {call, func(c *guest.HookCall) (any, error) { return c.ToolCall() }},
		pluginapi.AfterTool:      {pluginapi.ToolResultDoc{Call: call, Result: result}, func(c *guest.HookCall) (any, error) { return c.ToolResult() }},
		pluginapi.AfterRound:     {pluginapi.RoundEndDoc{Round: 3, Message: message, Results: []pluginapi.ToolResult{result}}, func(c *guest.HookCall) (any, error) { return c.RoundEnd() }},
		pluginapi.BeforeFinalize: {pluginapi.FinalizeDoc{FinalText: "f", Denies: 2}, func(c *guest.HookCall) (any, error) { return c.Finalize() }},
		pluginapi.SessionEnd:     {pluginapi.EndDoc{Status: "completed", Reason: "r"}, func(c *guest.HookCall) (any, error) { return c.End() }},
		pluginapi.Notification:   {pluginapi.NotificationDoc{Kind: "ask", Text: "t"}, func(c *guest.HookCall) (any, error) { return c.Notification() }},
	}
	for point, c := range cases {
		t.Run(string(point), func(t *testing.T) {
			var got any
			_, err := new(guesttest.Host).Hook(hook(func(hc *guest.HookCall) (pluginapi.Decision, error) {
				var err error
				got, err = c.read(hc)
				return guest.Continue(), err
			}), point, c.doc)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.doc, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// The same hook at another point asks for a document that isn't there.
			other := pluginapi.AfterCompaction
			_, err = new(guesttest.Host).Hook(hook(func(hc *guest.HookCall) (pluginapi.Decision, error) {
				_, err := c.read(hc)
				return guest.Continue(), err
			}), other, struct{}{})
			if f := failureOf(err); f.Kind != pluginapi.FailInternal || !strings.Contains(f.Message, string(point)) {
				t.Errorf("at another point: got %v, want a failure that names %s", err, point)
			}
		})
	}
}

func TestWhatAHookDecodedOutlivesItsCall(t *testing.T) {
	var kept []pluginapi.ToolCall
	p := hook(func(c *guest.HookCall) (pluginapi.Decision, error) {
		for range 2 { // the second time it is not in place
			call, err := c.ToolCall()
			if err != nil {
				return pluginapi.Decision{}, err
			}
			kept = append(kept, call)
		}
		return guest.Continue(), nil
	})
	host := new(guesttest.Host)
	for _, name := range []string{"first", "other"} {
		if _, err := host.Hook(p, pluginapi.BeforeTool, pluginapi.ToolCall{ID: name, Name: name, Arguments: pluginapi.Raw(`{"a":"` + name + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, call := range kept {
		want := []string{"first", "other"}[i/2]
		if call.ID != want || call.Name != want || string(call.Arguments) != `{"a":"`+want+`"}` {
			t.Errorf("kept call %d: got %+v with %s, want those of %q", i, call, call.Arguments, want)
		}
	}
}

func TestADocumentIsFoundWhereverItStands(t *testing.T) {
	const session, loop = `{"id":"s","execution_id":"e","generation":"g","revision":3}`, `{"status":"running","max_iterations":1,"max_total_rounds":1,"iterations_started":1,"iterations_completed":0,"rounds_started":1}`
	for _, c := range []struct{ name, input, want string }{
		{"at the end", `{"point":"before_prompt","session":` + session + `,"loop":` + loop + `,"document":{"text":"t"}}`, "t"},
		{"before the point", `{"document":{"text":"t"},"point":"before_prompt","session":` + session + `,"loop":` + loop + `}`, "t"},
		{"in the middle", `{"point":"before_prompt","session":` + session + `,"document":{"text":"t"},"loop":` + loop + `}`, "t"},
		{"nowhere", `{"point":"before_prompt","session":` + session + `,"loop":` + loop + `}`, "missing field document"},
		{"twice", `{"point":"before_prompt","document":{"text":"t"},"document":{"text":"u"}}`, "duplicate field"},
		{"of another kind", `{"point":"before_prompt","document":{"txt":"t"}}`, "unknown field"},
		{"cut", `{"point":"before_prompt","document":{"text":"t"}`, "unexpected end"},
		{"with something behind it", `{"point":"before_prompt","document":{"text":"t"}}{}`, "after the document"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			p := hook(func(call *guest.HookCall) (pluginapi.Decision, error) {
				doc, err := call.Prompt()
				if err != nil {
					got = err.Error()
					return pluginapi.Decision{}, err
				}
				got = doc.Text
				s, err := call.Session()
				if err == nil && strings.Contains(c.input, `"session"`) && s.Revision != 3 {
					t.Errorf("got the session %+v behind the document, want revision 3", s)
				}
				return guest.Continue(), nil
			})
			host := &inputHost{input: c.input}
			guest.NewRunner(p, host).Call(pluginapi.OpHook, len(c.input))
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// inputHost gives one input, whatever it is.
type inputHost struct {
	guesttest.Host
	input string
}

func (h *inputHost) InputRead(p []byte, off int) int { return copy(p, h.input[off:]) }

func TestAHookKnowsSessionAndLoop(t *testing.T) {
	_, err := new(guesttest.Host).Hook(hook(func(c *guest.HookCall) (pluginapi.Decision, error) {
		s, err := c.Session()
		if err != nil || s.ID == "" || s.Revision != 7 {
			t.Errorf("session %+v, %v", s, err)
		}
		l, err := c.Loop()
		if err != nil || l.Status != "running" || l.MaxTotalRounds != 20 {
			t.Errorf("loop %+v, %v", l, err)
		}
		doc, err := c.Document()
		if c.Point() != pluginapi.AfterRound || string(doc) != "{}" || err != nil {
			t.Errorf("point %q, document %q, %v", c.Point(), doc, err)
		}
		return guest.Continue(), nil
	}), pluginapi.AfterRound, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAHookThatOnlyLooksAtThePointReadsOnlyTheFront(t *testing.T) {
	h := new(guesttest.Host)
	_, err := h.Hook(hook(func(c *guest.HookCall) (pluginapi.Decision, error) {
		if c.Point() != pluginapi.BeforePrompt {
			t.Errorf("point %q", c.Point())
		}
		return guest.Continue(), nil
	}), pluginapi.BeforePrompt, pluginapi.PromptDoc{Text: strings.Repeat("p", 100_000)})
	if err != nil || h.BytesRead > 4096 {
		t.Errorf("read %d bytes, %v; want 4096 at most", h.BytesRead, err)
	}
}

func TestDecisionsArriveAsTheyWereMade(t *testing.T) {
	cases := []struct {
		point pluginapi.HookPoint
		made  pluginapi.Decision
		want  pluginapi.Decision
	}{
		{pluginapi.AfterRound, guest.Continue(), pluginapi.Decision{Action: pluginapi.Continue}},
		{pluginapi.BeforeTool, guest.Allow("a"), pluginapi.Decision{Action: pluginapi.Allow, Reason: "a"}},
		{pluginapi.BeforeTool, guest.Deny("d"), pluginapi.Decision{Action: pluginapi.Deny, Reason: "d"}},
		{pluginapi.BeforeTool, guest.Ask("q"), pluginapi.Decision{Action: pluginapi.Ask, Reason: "q"}},
		{pluginapi.AfterRound, guest.Stop("s"), pluginapi.Decision{Action: pluginapi.Stop, Reason: "s"}},
		{pluginapi.AfterRound, guest.StopNoProgress("s"), pluginapi.Decision{Action: pluginapi.Stop, Reason: "s", Code: pluginapi.CodeNoProgress}},
		{pluginapi.AfterRound, guest.Abort("x"), pluginapi.Decision{Action: pluginapi.Abort, Reason: "x"}},
		{pluginapi.AfterRound, guest.Inject("more", "i"), pluginapi.Decision{Action: pluginapi.Inject, Text: "more", Reason: "i"}},
		{
			pluginapi.BeforePrompt, guest.Mutate(wire.AppendPromptDoc(nil, &pluginapi.PromptDoc{Text: "new"}), "m"),
			pluginapi.Decision{Action: pluginapi.Mutate, Document: pluginapi.Raw(`{"text":"new"}`), Reason: "m"},
		},
	}
	for _, c := range cases {
		t.Run(string(c.want.Action), func(t *testing.T) {
			got, err := new(guesttest.Host).Hook(hook(func(*guest.HookCall) (pluginapi.Decision, error) { return c.made, nil }), c.point, struct{}{})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestALongReasonIsCutBetweenCharacters(t *testing.T) {
	d := guest.Deny("x" + strings.Repeat("ä", pluginapi.MaxDecisionReason))
	if len(d.Reason) != pluginapi.MaxDecisionReason-1 || !utf8.ValidString(d.Reason) {
		t.Errorf("got %d bytes (valid: %v), want %d", len(d.Reason), utf8.ValidString(d.Reason), pluginapi.MaxDecisionReason-1)
	}
}

func TestAReasonIsAlwaysValidUTF8(t *testing.T) {
	d := guest.Deny(strings.Repeat("\xff", pluginapi.MaxDecisionReason))
	if !utf8.ValidString(d.Reason) || len(d.Reason) > pluginapi.MaxDecisionReason || !strings.HasPrefix(d.Reason, "\ufffd") {
		t.Errorf("got %d bytes (valid: %v)", len(d.Reason), utf8.ValidString(d.Reason))
	}
}

func TestErrorsBecomeFailures(t *testing.T) {
	typed := &pluginapi.Failure{Kind: pluginapi.FailOverloaded, Message: "busy", RetryAfterMS: 5}
	cases := []struct {
		name string
		err  error
		want pluginapi.Failure
	}{
		{"a Failure stays as it is", typed, *typed},
		{"a wrapped Failure too", errors.Join(errors.New("around"), typed), *typed},
		{"any other is internal", errors.New("oh"), pluginapi.Failure{Kind: pluginapi.FailInternal, Message: "oh"}},
		{"a very long message is cut", errors.New(strings.Repeat("\x00", 100_000)), pluginapi.Failure{Kind: pluginapi.FailInternal, Message: strings.Repeat("\x00", 8192)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := guest.Plugin{
				Hook:     func(*guest.HookCall) (pluginapi.Decision, error) { return guest.Continue(), c.err },
				Tool:     func(*guest.ToolCall) (pluginapi.ToolOutput, error) { return guest.Answer("no"), c.err },
				Provider: func(*guest.ProviderCall) error { return c.err },
			}
			h := new(guesttest.Host)
			_, hookErr := h.Hook(p, pluginapi.AfterRound, struct{}{})
			_, toolErr := h.Tool(p, "t", "{}")
			_, providerErr := h.Provider(p, pluginapi.ProviderRequest{})
			for _, err := range []error{hookErr, toolErr, providerErr} {
				if diff := cmp.Diff(c.want, failureOf(err)); diff != "" {
					t.Errorf("got %v (-want +got):\n%s", err, diff)
				}
			}
		})
	}
}

func TestWhatAPluginLacksIsUnsupported(t *testing.T) {
	h := new(guesttest.Host)
	_, hookErr := h.Hook(guest.Plugin{}, pluginapi.AfterRound, struct{}{})
	_, toolErr := h.Tool(guest.Plugin{}, "t", "{}")
	_, providerErr := h.Provider(guest.Plugin{}, pluginapi.ProviderRequest{})
	for _, err := range []error{hookErr, toolErr, providerErr} {
		if !errors.Is(err, guesttest.ErrUnsupported) {
			t.Errorf("got %v, want ErrUnsupported", err)
		}
	}
	p := hook(func(*guest.HookCall) (pluginapi.Decision, error) { return guest.Continue(), nil })
	if got := guest.NewRunner(p, h).Call(99, 0); got != pluginapi.StatusUnsupported {
		t.Errorf("an unknown operation: got status %d, want %d", got, pluginapi.StatusUnsupported)
	}
}

// shortHost announces more input than it gives.
type shortHost struct{ guesttest.Host }

func (*shortHost) InputRead([]byte, int) int { return 0 }

func TestMalformedInputIsAFailure(t *testing.T) {
	called := false
	p := guest.Plugin{
		Hook:     func(*guest.HookCall) (pluginapi.Decision, error) { called = true; return guest.Continue(), nil },
		Tool:     func(*guest.ToolCall) (pluginapi.ToolOutput, error) { called = true; return guest.Answer(""), nil },
		Provider: func(c *guest.ProviderCall) error { _, err := c.Info(); return err },
	}
	for _, op := range []pluginapi.Op{pluginapi.OpHook, pluginapi.OpProvider, pluginapi.OpTool} {
		if got := guest.NewRunner(p, &shortHost{}).Call(op, 100); got != pluginapi.StatusError || called {
			t.Errorf("%v: got status %d, plugin called %v; want an error before the call", op, got, called)
		}
	}
	h := new(guesttest.Host)
	if _, err := h.Tool(p, "t", `{"a":1}{`); err == nil || called {
		t.Errorf("got %v, plugin called %v", err, called)
	}
	_, err := h.Provider(guest.Plugin{Provider: func(c *guest.ProviderCall) error { _, err := c.Request(); return err }}, pluginapi.ProviderRequest{})
	if f := failureOf(err); f.Kind != pluginapi.FailInternal { // it read well, and wrote no finish
		t.Errorf("got %v", err)
	}
}

func TestKeyValueEntriesLastOnlyWithASuccessfulCall(t *testing.T) {
	h := new(guesttest.Host)
	var fail error
	p := hook(func(c *guest.HookCall) (pluginapi.Decision, error) {
		old, ok, err := c.KVGet("n")
		if err != nil {
			return guest.Continue(), err
		}
		if !ok {
			old = nil
		}
		if err := c.KVPut("n", append(old, 'x')); err != nil {
			return guest.Continue(), err
		}
		return guest.Continue(), fail
	})
	run := func() error {
		_, err := h.Hook(p, pluginapi.AfterRound, struct{}{})
		return err
	}
	if err := run(); err != nil || h.KV["n"] != "x" {
		t.Errorf("first call: %q, %v", h.KV["n"], err)
	}
	fail = errors.New("no")
	if err := run(); err == nil || h.KV["n"] != "x" {
		t.Errorf("failed call: %q, %v; want the entry as it was", h.KV["n"], err)
	}
	fail = nil
	if err := run(); err != nil || h.KV["n"] != "xx" {
		t.Errorf("third call: %q, %v", h.KV["n"], err)
	}
	h.DenyKV = true
	if err := run(); err == nil || !strings.Contains(err.Error(), "kv_get n: not granted") {
		t.Errorf("without the grant: %v", err)
	}
}

func TestHostErrorsNameTheRequestAndTheReason(t *testing.T) {
	h := &guesttest.Host{}
	_, err := h.Hook(hook(func(c *guest.HookCall) (pluginapi.Decision, error) {
		for _, try := range []struct {
			key    string
			size   int
			status pluginapi.HostStatus
		}{
			{"", 1, pluginapi.HostInvalid},
			{strings.Repeat("k", pluginapi.MaxKVKeyBytes+1), 1, pluginapi.HostTooLarge},
			{"k", pluginapi.MaxKVValueBytes + 1, pluginapi.HostTooLarge},
		} {
			var he *guest.HostError
			if err := c.KVPut(try.key, make([]byte, try.size)); !errors.As(err, &he) || he.Status != try.status || he.Op != pluginapi.HostKVPut {
				t.Errorf("key of %d bytes, value of %d: got %v, want status %d", len(try.key), try.size, err, try.status)
			}
		}
		return guest.Continue(), c.KVPut("k", nil)
	}), pluginapi.AfterRound, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConfigurationIsDecodedOnceAndAgainWhenItChanges(t *testing.T) {
	decoded := 0
	cfg := guest.Cached[string]{Decode: func(s string) (string, error) {
		decoded++
		if s == "bad" {
			return "", errors.New("bad configuration")
		}
		return s, nil
	}}
	var got string
	p := hook(func(c *guest.HookCall) (pluginapi.Decision, error) {
		var err error
		got, err = cfg.Get(c.Call)
		return guest.Continue(), err
	})
	h := new(guesttest.Host)
	for i, step := range []struct {
		config, want string
		fails        bool
		decoded      int
	}{
		{"", "{}", false, 1},
		{"", "{}", false, 1},
		{`{"a":1}`, `{"a":1}`, false, 2},
		{"bad", "", true, 3},
		{"bad", "", true, 3},
		{`{"a":1}`, `{"a":1}`, false, 4},
	} {
		h.Config = step.config
		_, err := h.Hook(p, pluginapi.AfterRound, struct{}{})
		if (err != nil) != step.fails || got != step.want || decoded != step.decoded {
			t.Errorf("step %d: got %q after %d decodings, %v; want %q after %d", i, got, decoded, err, step.want, step.decoded)
		}
	}
}

func TestLogDeadlineAndConfig(t *testing.T) {
	h := &guesttest.Host{Deadline: 1500 * time.Millisecond, Config: `{"x":1}`}
	p := hook(func(c *guest.HookCall) (pluginapi.Decision, error) {
		c.Log(pluginapi.LogWarn, "careful")
		d, ok := c.Deadline()
		b, err := c.Config()
		if d != 1500 || !ok || string(b) != `{"x":1}` {
			t.Errorf("deadline %d (%v), configuration %q", d, ok, b)
		}
		return guest.Continue(), err
	})
	if _, err := h.Hook(p, pluginapi.AfterRound, struct{}{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]guesttest.Line{{Level: pluginapi.LogWarn, Text: "careful"}}, h.Logs); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	_, err := new(guesttest.Host).Hook(hook(func(c *guest.HookCall) (pluginapi.Decision, error) {
		if d, ok := c.Deadline(); ok {
			t.Errorf("got the deadline %d, want none", d)
		}
		return guest.Continue(), nil
	}), pluginapi.AfterRound, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
}
