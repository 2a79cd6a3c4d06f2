package main

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

// request is the n-th provider call, with a history that a lean provider never reads.
func request(n uint64) pluginapi.ProviderRequest {
	return pluginapi.ProviderRequest{
		Call:     pluginapi.CallInfo{Ordinal: n, Iteration: 1, Round: uint32(n), Attempt: 1},
		Messages: []pluginapi.Message{{Role: pluginapi.RoleUser, Text: strings.Repeat("long ago ", 10_000)}},
	}
}

// play makes one provider call and gives its chunks and how long the plugin asked to sleep.
func play(config string, n uint64) (*guesttest.Host, []pluginapi.Chunk, time.Duration, error) {
	var slept time.Duration
	p := player{config: guest.Cached[script]{Decode: decodeConfig}, sleep: func(d time.Duration) { slept += d }}
	h := &guesttest.Host{Config: config}
	chunks, err := h.Provider(guest.Plugin{Provider: p.complete}, request(n))
	return h, chunks, slept, err
}

func text(s string) pluginapi.Chunk { return pluginapi.Chunk{Type: pluginapi.ChunkText, Text: s} }

func finish(f pluginapi.Finish) pluginapi.Chunk {
	return pluginapi.Chunk{Type: pluginapi.ChunkResult, Finish: f}
}

func TestPlay(t *testing.T) {
	two := uint64(2)
	cases := []struct {
		name    string
		script  string
		ordinal uint64
		want    []pluginapi.Chunk
		slept   time.Duration
		failure *pluginapi.Failure
	}{
		{
			name:    "the first call plays the first step",
			script:  `{"steps": [{"text": "one"}, {"text": "two"}]}`,
			ordinal: 1,
			want:    []pluginapi.Chunk{text("one"), finish(pluginapi.FinishStop)},
		},
		{
			name:    "the second call plays the second step",
			script:  `{"steps": [{"text": "one"}, {"text": "two"}]}`,
			ordinal: 2,
			want:    []pluginapi.Chunk{text("two"), finish(pluginapi.FinishStop)},
		},
		{
			name:    "a script that repeats starts again after its last step",
			script:  `{"repeat": true, "steps": [{"text": "one"}, {"text": "two"}]}`,
			ordinal: 5,
			want:    []pluginapi.Chunk{text("one"), finish(pluginapi.FinishStop)},
		},
		{
			name:    "a script that doesn't repeat runs out",
			script:  `{"steps": [{"text": "one"}, {"text": "two"}], "repeat": false}`,
			ordinal: 3,
			failure: &pluginapi.Failure{Kind: pluginapi.FailExhausted, Message: `the script has 2 steps and this is provider call 3; add steps or set "repeat": true`},
		},
		{
			name:    "chunks cut the text on characters",
			script:  `{"steps": [{"text": "äöü!", "chunks": 3}]}`,
			ordinal: 1,
			want:    []pluginapi.Chunk{text("ä"), text("ö"), text("ü!"), finish(pluginapi.FinishStop)},
		},
		{
			name:    "tool calls get ids of their own and one-line arguments",
			script:  "{\"steps\": [{\"text\": \"look\", \"tool_calls\": [{\"name\": \"a\", \"arguments\": {\"x\":\n 1}}, {\"name\": \"b\"}]}]}",
			ordinal: 1,
			want: []pluginapi.Chunk{
				text("look"),
				{Type: pluginapi.ChunkToolCall, ToolCall: &pluginapi.ToolCall{ID: "call-1-1", Name: "a", Arguments: pluginapi.Raw(`{"x":1}`)}},
				{Type: pluginapi.ChunkToolCall, ToolCall: &pluginapi.ToolCall{ID: "call-1-2", Name: "b", Arguments: pluginapi.Raw(`{}`)}},
				finish(pluginapi.FinishToolCalls),
			},
		},
		{
			name:    "an error step fails with its kind after its delay",
			script:  `{"steps": [{"delay_ms": 40, "error": {"kind": "rate_limited", "message": "slow down", "retry_after_ms": 1500}}]}`,
			ordinal: 1,
			slept:   40 * time.Millisecond,
			failure: &pluginapi.Failure{Kind: pluginapi.FailRateLimited, Message: "slow down", RetryAfterMS: 1500},
		},
		{
			name:    "an error after text breaks the stream",
			script:  `{"steps": [{"text": "half an", "error": {"kind": "network", "message": "reset"}}]}`,
			ordinal: 1,
			want:    []pluginapi.Chunk{text("half an")},
			failure: &pluginapi.Failure{Kind: pluginapi.FailNetwork, Message: "reset"},
		},
		{
			name:    "an empty text is an answer with nothing in it",
			script:  `{"steps": [{"text": ""}]}`,
			ordinal: 1,
			want:    []pluginapi.Chunk{finish(pluginapi.FinishStop)},
		},
		{
			name:    "reasoning, usage and finish are as written",
			script:  `{"steps": [{"reasoning": "hm", "text": "cut", "usage": {"output_tokens": 2}, "finish": "length"}]}`,
			ordinal: 1,
			want: []pluginapi.Chunk{
				{Type: pluginapi.ChunkReasoning, Text: "hm"},
				text("cut"),
				{Type: pluginapi.ChunkUsage, Usage: &pluginapi.Usage{OutputTokens: &two}},
				finish(pluginapi.FinishLength),
			},
		},
		{
			name:    "a request without an ordinal is refused",
			script:  `{"steps": [{"text": "one"}]}`,
			ordinal: 0,
			failure: &pluginapi.Failure{Kind: pluginapi.FailInvalidRequest, Message: "the request has no call.ordinal; it counts from 1"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for form, config := range map[string]string{
				"object": `{"script": ` + c.script + `}`,
				"text":   `{"script": ` + strconv.Quote(c.script) + `}`,
			} {
				h, got, slept, err := play(config, c.ordinal)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s: chunks (-want +got):\n%s", form, diff)
				}
				if slept != c.slept {
					t.Errorf("%s: slept %v, want %v", form, slept, c.slept)
				}
				var f *pluginapi.Failure
				errors.As(err, &f)
				if diff := cmp.Diff(c.failure, f); diff != "" {
					t.Errorf("%s: failure (-want +got), error %v:\n%s", form, err, diff)
				}
				if h.BytesRead > 8<<10 {
					t.Errorf("%s: read %d bytes of the request, want only its front", form, h.BytesRead)
				}
			}
		})
	}
}

func TestDemoTakesTwoRoundsAnIteration(t *testing.T) {
	for n := uint64(1); n <= 4; n++ {
		_, chunks, _, err := play("", n)
		if err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		want := pluginapi.FinishStop
		if n%2 == 1 {
			want = pluginapi.FinishToolCalls
		}
		if got := chunks[len(chunks)-1].Finish; got != want {
			t.Errorf("call %d finishes with %q, want %q", n, got, want)
		}
		for _, c := range chunks {
			if c.ToolCall != nil && c.ToolCall.Name != "count_words" {
				t.Errorf("call %d asks for the tool %q, want count_words", n, c.ToolCall.Name)
			}
		}
	}
}

func TestPiecesKeepTheText(t *testing.T) {
	const text = "zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich 🌊"
	for n := range 80 {
		got := pieces(text, n)
		if joined := strings.Join(got, ""); joined != text {
			t.Fatalf("%d pieces: got %q, want %q", n, joined, text)
		}
		if want := min(max(n, 1), 65); len(got) != want {
			t.Errorf("%d pieces asked, got %d, want %d", n, len(got), want)
		}
		for _, p := range got {
			if p == "" || !strings.Contains(text, p) || p[0]&0xC0 == 0x80 {
				t.Errorf("%d pieces: %q is empty or cuts a character", n, p)
			}
		}
	}
}
