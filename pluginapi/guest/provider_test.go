package guest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

func TestAProviderStreamsChunks(t *testing.T) {
	n := uint64(3)
	call := pluginapi.ToolCall{ID: "c", Name: "n", Arguments: pluginapi.Raw(`{}`)}
	p := guest.Plugin{Provider: func(c *guest.ProviderCall) error {
		for _, err := range []error{
			c.Reasoning("hm"), c.Reasoning(""), c.Text(""), c.Text("a\nb"), c.ToolCall(call),
			c.Usage(pluginapi.Usage{InputTokens: &n}), c.Finish(pluginapi.FinishToolCalls),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	}}
	got, err := new(guesttest.Host).Provider(p, pluginapi.ProviderRequest{})
	want := []pluginapi.Chunk{
		{Type: pluginapi.ChunkReasoning, Text: "hm"},
		{Type: pluginapi.ChunkText, Text: "a\nb"},
		{Type: pluginapi.ChunkToolCall, ToolCall: &call},
		{Type: pluginapi.ChunkUsage, Usage: &pluginapi.Usage{InputTokens: &n}},
		{Type: pluginapi.ChunkResult, Finish: pluginapi.FinishToolCalls},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestAnAnswerEndsOnceAndOnlyOnce(t *testing.T) {
	_, err := new(guesttest.Host).Provider(guest.Plugin{Provider: func(c *guest.ProviderCall) error { return c.Text("a") }}, pluginapi.ProviderRequest{})
	if f := failureOf(err); f.Kind != pluginapi.FailInternal || !strings.Contains(f.Message, "without a finish") {
		t.Errorf("without a finish: got %v", err)
	}
	_, err = new(guesttest.Host).Provider(guest.Plugin{Provider: func(c *guest.ProviderCall) error {
		if err := c.Finish(pluginapi.FinishStop); err != nil {
			return err
		}
		return c.Text("more")
	}}, pluginapi.ProviderRequest{})
	if f := failureOf(err); f.Kind != pluginapi.FailInternal || !strings.Contains(f.Message, "after its result") {
		t.Errorf("text after the finish: got %v", err)
	}
}

func TestARequestIsReadAsFarAsItIsAsked(t *testing.T) {
	req := pluginapi.ProviderRequest{
		Call: pluginapi.CallInfo{Ordinal: 4, Iteration: 1, Round: 2, Attempt: 2}, Model: "m", System: strings.Repeat("s", 6000),
		MaxTokens: 7, Tools: []pluginapi.ToolSpec{{Name: "a", InputSchema: pluginapi.Raw(`{}`)}},
		Messages: []pluginapi.Message{{Role: pluginapi.RoleUser, Text: strings.Repeat("u", 100_000)}},
	}
	head := req
	head.Messages = nil
	run := func(t *testing.T, read func(*guest.ProviderCall) error) int {
		t.Helper()
		h := new(guesttest.Host)
		_, err := h.Provider(guest.Plugin{Provider: func(c *guest.ProviderCall) error {
			if err := read(c); err != nil {
				return err
			}
			return c.Finish(pluginapi.FinishStop)
		}}, req)
		if err != nil {
			t.Fatal(err)
		}
		return h.BytesRead
	}
	same := func(t *testing.T, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	t.Run("the call's numbers need only the front", func(t *testing.T) {
		if n := run(t, func(c *guest.ProviderCall) error {
			info, err := c.Info()
			same(t, req.Call, info)
			return err
		}); n > 4096 {
			t.Errorf("read %d bytes, want 4096 at most", n)
		}
	})
	t.Run("in steps, and each step twice", func(t *testing.T) {
		run(t, func(c *guest.ProviderCall) error {
			for range 2 {
				if info, err := c.Info(); err != nil || info != req.Call {
					t.Errorf("call %+v, %v", info, err)
				}
			}
			for range 2 {
				h, err := c.Head()
				if err != nil {
					return err
				}
				same(t, &head, h)
			}
			for range 2 {
				all, err := c.Request()
				if err != nil {
					return err
				}
				same(t, &req, all)
			}
			return nil
		})
	})
}
