package wasm

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func request(do, arg string) *plugin.Request {
	return &plugin.Request{ProviderRequest: pluginapi.ProviderRequest{
		Model: "m", System: "be <brief>", Options: command(do, arg),
		Messages: []pluginapi.Message{{Role: pluginapi.RoleUser, Text: "hi"}, {Role: pluginapi.RoleAssistant, Text: "ho"}, {Role: pluginapi.RoleUser, Text: "äöü"}},
	}}
}

// complete makes one attempt and gives the chunks as well.
func complete(ctx context.Context, p *Plugin, do, arg string) (*pluginapi.ProviderResult, []pluginapi.Chunk, error) {
	var chunks []pluginapi.Chunk
	res, err := p.Provider().Complete(ctx, session, request(do, arg), func(c pluginapi.Chunk) error {
		chunks = append(chunks, c)
		return nil
	})
	return res, chunks, err
}

// pieces makes the argument of "stream": each part is one output_write.
func pieces(parts ...string) string {
	for i := range parts {
		parts[i] = hex.EncodeToString([]byte(parts[i]))
	}
	return strings.Join(parts, "|")
}

func TestProviderPutsChunksTogether(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	got, chunks, err := complete(t.Context(), p, "stream", pieces(
		`{"type":"reasoning","text":"hm"}`+"\n"+`{"type":"te`, `xt","text":"he`, `llo"}`+"\n",
		`{"type":"tool_call","tool_call":{"id":"1","name":"do","arguments":{"a":1}}}`+"\n"+`{"type":"usage","usage":{"input_tokens":1,"output_tokens":null}}`+"\n",
		`{"type":"text","text":" world"}`+"\n"+`{"type":"usage","usage":{"input_tokens":3,"output_tokens":4}}`+"\n",
		`{"type":"result","finish":"tool_calls"}`)) // the last line's end may be missing
	if err != nil {
		t.Fatal(err)
	}
	three, four := uint64(3), uint64(4)
	want := &pluginapi.ProviderResult{
		Message: pluginapi.Message{
			Role: pluginapi.RoleAssistant, Text: "hello world", Reasoning: "hm",
			ToolCalls: []pluginapi.ToolCall{{ID: "1", Name: "do", Arguments: pluginapi.Raw(`{"a":1}`)}},
		},
		Usage: &pluginapi.Usage{InputTokens: &three, OutputTokens: &four}, Finish: pluginapi.FinishToolCalls,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	var types []string
	for _, c := range chunks {
		types = append(types, string(c.Type))
	}
	if got, want := strings.Join(types, " "), "reasoning text tool_call usage text usage result"; got != want {
		t.Errorf("got chunks %s, want %s", got, want)
	}
}

func TestProviderAnswersThatBreakTheContract(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	end := `{"type":"result","finish":"stop"}` + "\n"
	for name, out := range map[string]string{
		"a chunk after the result":             end + `{"type":"text","text":"x"}` + "\n",
		"two results":                          end + end,
		"an empty line":                        "\n" + end,
		"half a line":                          `{"type":"te`,
		"an unknown type":                      `{"type":"image"}` + "\n" + end,
		"an unknown field":                     `{"type":"text","text":"x","y":1}` + "\n" + end,
		"a text with a finish reason":          `{"type":"text","text":"x","finish":"stop"}` + "\n" + end,
		"a result without a reason":            `{"type":"result"}` + "\n",
		"a result for an unknown reason":       `{"type":"result","finish":"bored"}` + "\n",
		"a result with a text":                 `{"type":"result","finish":"stop","text":"x"}` + "\n",
		"a tool call without a call":           `{"type":"tool_call"}` + "\n" + end,
		"a tool call without an id":            `{"type":"tool_call","tool_call":{"id":"","name":"n","arguments":{}}}` + "\n" + end,
		"a tool call without arguments":        `{"type":"tool_call","tool_call":{"id":"1","name":"n"}}` + "\n" + end,
		"a tool call whose arguments are text": `{"type":"tool_call","tool_call":{"id":"1","name":"n","arguments":"{}"}}` + "\n" + end,
		"two tool calls of one id":             strings.Repeat(`{"type":"tool_call","tool_call":{"id":"1","name":"n","arguments":{}}}`+"\n", 2) + end,
		"usage without usage":                  `{"type":"usage"}` + "\n" + end,
		"invalid UTF-8":                        "{\"type\":\"text\",\"text\":\"\xff\"}\n" + end,
	} {
		t.Run(name, func(t *testing.T) {
			res, _, err := complete(t.Context(), p, "stream", pieces(out))
			wantFault(t, err, plugin.FaultMalformed)
			if res != nil {
				t.Errorf("got the result %+v beside the fault", res)
			}
		})
	}
}

func TestProviderStreamWithoutAResultIsAProtocolFailure(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	for name, arg := range map[string]string{"nothing": "", "a text only": pieces(`{"type":"text","text":"x"}` + "\n")} {
		_, _, err := complete(t.Context(), p, "stream", arg)
		var f *pluginapi.Failure
		if !errors.As(err, &f) || f.Kind != pluginapi.FailProtocol {
			t.Errorf("%s: got %v, want a failure of kind protocol", name, err)
		}
	}
}

func TestProviderChunksArriveBeforeTheEnd(t *testing.T) {
	p := load(t, Config{Limits: Limits{ProviderSilence: 300 * time.Millisecond}}, Grants{}, nil)
	_, chunks, err := complete(t.Context(), p, "drip", "")
	wantFault(t, err, plugin.FaultTimeout)
	if len(chunks) != 1 || chunks[0].Text != "one" {
		t.Errorf("got chunks %+v, want the one before the silence", chunks)
	}
}

func TestProviderHasNoLimitButSilence(t *testing.T) {
	p := load(t, Config{Limits: Limits{ProviderSilence: 300 * time.Millisecond}}, Grants{Clock: true}, nil)
	release := make(chan struct{})
	time.AfterFunc(600*time.Millisecond, func() { close(release) })
	// The receiver takes longer than the silence limit: that is not the plugin's silence.
	res, err := p.Provider().Complete(t.Context(), session, request("calls", ""), func(pluginapi.Chunk) error {
		<-release
		return nil
	})
	if err != nil || res.Message.Text != "1" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestProviderEndsWithTheReceiversError(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	no := errors.New("enough")
	calls := 0
	_, err := p.Provider().Complete(t.Context(), session, request("drip", ""), func(pluginapi.Chunk) error {
		calls++
		return no
	})
	if !errors.Is(err, no) || calls != 1 {
		t.Errorf("got %v after %d chunks, want the receiver's error after one", err, calls)
	}
}

func TestProviderOutputIsBounded(t *testing.T) {
	p := load(t, Config{Limits: Limits{OutputBytes: 1 << 20}}, Grants{}, nil)
	_, _, err := complete(t.Context(), p, "flood output", "")
	wantFault(t, err, plugin.FaultOutput)
}

func TestProviderEndsWithItsContext(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := p.Provider().Complete(ctx, session, request("drip", ""), func(pluginapi.Chunk) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err = complete(ctx, p, "drip", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestProviderRequestIsTheDocument(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	for name, encoded := range map[string]bool{"encoded by the host": true, "encoded here": false} {
		req := request("checksum", "")
		req.Tools = manifest().Tools
		if encoded {
			for _, m := range req.Messages {
				req.Encoded = append(req.Encoded, encode(t, m))
			}
		}
		res, err := p.Provider().Complete(t.Context(), session, req, func(pluginapi.Chunk) error { return nil })
		if want := checksum(encode(t, req.ProviderRequest)); err != nil || res.Message.Text != want {
			t.Errorf("%s: got %+v, %v; want %s", name, res, err, want)
		}
	}
	req := request("size", "")
	req.Encoded = [][]byte{[]byte("{}")}
	if _, err := p.Provider().Complete(t.Context(), session, req, nil); err == nil {
		t.Error("a request whose encoded messages are not in step was taken")
	}
	req = request("size", "")
	req.Messages = nil
	if _, err := p.Provider().Complete(t.Context(), session, req, func(pluginapi.Chunk) error { return nil }); err != nil {
		t.Errorf("a request without messages: %v", err)
	}
}
